"""`batchscan mirror` during a run."""

import json
import subprocess
import threading
import time
from pathlib import Path

from load import Client
from writers import Cli, CommandFailed, batch

# Only to prevent hanging.
TIMEOUT_SECS = 600


class Mirrors:
    """Copies of an organisation whose batches are added, changed and removed all the time. The copies are killed every few
    seconds. In the end, each equals the service."""

    ORGANISATION = "Mirrored Nursery"
    BATCHES = 400
    # A mirror that follows is killed after this time.
    RUN_SECS = 4

    def __init__(self, cli: Cli, url: str, is_over: threading.Event):
        self.cli, self.url, self.is_over = cli, url, is_over
        self.changes, self.copies, self.errors = 0, [], []
        cli.run("org", "add", self.ORGANISATION)
        cli.import_batches(self.ORGANISATION, self.batches(0, self.BATCHES, 0))
        self.credential = cli.credential("issue", "--org", self.ORGANISATION)

    def change(self):
        """Changes batches until the load is over. A command that fails may or may not have changed them."""
        number = 0
        while not self.is_over.is_set():
            number += 1
            # A prime step, so that batches are removed, added again and moved.
            first = number * 37 % self.BATCHES
            try:
                if number % 3 == 0:
                    self.cli.run("batch", "remove", "--yes", "--org", self.ORGANISATION, mirrored_id(first))
                else:
                    self.cli.import_batches(self.ORGANISATION, self.batches(first, first + 5, number))
                self.changes += 1
            except CommandFailed:
                pass

    def follow(self):
        """Runs a mirror again and again until the load is over."""
        copy = Copy()
        try:
            while not self.is_over.is_set():
                self.run(copy, self.RUN_SECS, "--follow")
            self.copies.append(copy)
        except (CommandFailed, ValueError, KeyError) as error:
            self.errors.append(str(error))

    def differences(self, node_port: int) -> list[str]:
        """Updates all copies and compares them with the service."""
        client = Client(node_port)
        response = client.get("/v1/batches", client.token(self.credential))
        expected = {batch["batch_id"]: batch for batch in json.loads(response.body)}
        print(f"{len(self.copies)} mirrors of {len(expected)} batches: {self.changes} changes")
        differences = list(self.errors)
        for copy in self.copies:
            if not self.run(copy, TIMEOUT_SECS):
                differences.append("a mirror cannot be updated")
            elif copy.batches != expected:
                differences.append("a mirror differs from the service")
        return differences

    def run(self, copy: "Copy", secs: int, *flags: str) -> bool:
        """Runs a mirror to its end, or kills it. Returns whether it succeeded: it may fail while no node responds, but never
        because of its position."""
        command = ["timeout", "--signal=KILL", str(secs), *mirror_command(self.cli, self.url, self.credential), *flags]
        if copy.since is not None:
            command += ["--since", copy.since]
        environment = self.cli.environment | {"BATCHSCAN_CLIENT_SECRET": self.credential["client_secret"]}
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment)
        if "position" in done.stderr:
            raise CommandFailed(f"a mirror cannot continue: {done.stderr}")
        copy.apply(done.stdout)
        return done.returncode == 0

    @staticmethod
    def batches(first: int, end: int, change: int) -> list[dict]:
        """Batches with a comment and dates that depend on the number of the change."""
        date = lambda number: f"2026-01-31T{change % 24:02}:00:{number % 60:02}Z"
        return [batch(mirrored_id(n), date(n), comment=f"change {change}") for n in range(first, end)]


class Copy:
    """What a reader of the lines of a mirror has."""

    def __init__(self):
        self.since, self.batches = None, {}

    def apply(self, lines: str):
        """Applies the lines up to the last position. Later ones come again."""
        changes = []
        for line in lines.split("\n")[:-1]:
            line = json.loads(line)
            if "since" not in line:
                changes.append(line)
                continue
            self.since = line["since"]
            for change in changes:
                if "removed" in change:
                    self.batches.pop(change["removed"], None)
                else:
                    self.batches[change["batch"]["batch_id"]] = change["batch"]
            changes.clear()


class IdleMirror:
    """`mirror --follow` of an organisation that does not change: the balancer must not end its requests, which wait for a
    change. In the end there is one, and it must arrive."""

    ORGANISATION = "Idle Nursery"
    # Requests that must end by themselves. A node that is killed starts a wait again.
    WAITS = 2
    # A response without changes that comes later has waited as long as it may, 45 s.
    WAITED_MILLIS = 40_000

    def __init__(self, cli: Cli, url: str, balancer_log: Path, logs: Path):
        self.cli, self.balancer_log = cli, balancer_log
        cli.run("org", "add", self.ORGANISATION)
        credential = cli.credential("issue", "--org", self.ORGANISATION)
        self.lines, self.errors = logs / "idle-mirror.ndjson", logs / "idle-mirror.log"
        environment = cli.environment | {"BATCHSCAN_CLIENT_SECRET": credential["client_secret"]}
        command = [*mirror_command(cli, url, credential), "--follow"]
        with self.lines.open("w") as lines, self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=lines, stderr=errors, env=environment
            )

    def receive_change(self):
        """Waits until some requests have waited to their end; then a change must arrive."""
        self.wait_for("waiting requests do not end", lambda: ended_waits(self.balancer_log.read_text()) >= self.WAITS)
        self.cli.import_batches(self.ORGANISATION, [batch("late", "2026-01-31T08:00:00Z")])
        self.wait_for("a change does not arrive", lambda: '"late"' in self.lines.read_text())

    def wait_for(self, problem: str, condition):
        deadline = time.monotonic() + TIMEOUT_SECS
        while not condition():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise CommandFailed(f"idle mirror: {problem}; exit status {self.process.poll()}; see {self.errors}")
            time.sleep(0.1)

    def stop(self):
        self.process.kill()
        self.process.wait()


def ended_waits(log: str) -> int:
    """The requests in HAProxy's log that waited for a change until the service responded. An error if HAProxy ended one."""
    count = 0
    for line in log.splitlines():
        # 127.0.0.1:1 [time] clients nodes/node1 0/0/0/45001/45001 200 150 - - ---- 1/1/0/0/0 0/0 "GET …"
        fields = line.split()
        if '"GET /v2/changes?' not in line or len(fields) < 10:
            continue
        times, status, end = fields[4], fields[5], fields[9]
        # The server's timeout, before the head of the response.
        if end.startswith("sH"):
            raise CommandFailed(f"HAProxy ended a waiting request: {line}")
        count += status == "200" and int(times.split("/")[-1]) >= IdleMirror.WAITED_MILLIS
    return count


def mirror_command(cli: Cli, url: str, credential: dict) -> list[str]:
    return [cli.executable, "mirror", "--output", "-", "--url", url, "--client-id", credential["client_id"]]


def mirrored_id(number: int) -> str:
    return f"mirrored-{number:04}"
