"""The operator's commands during a run. What a command acknowledges with exit status 0 is remembered; nothing else
acknowledges a change. A failed command is repeated."""

import json
import os
import subprocess
import threading
import time

from expected import Expected, Position
from load import Load, LoadClient

# A command waits by itself for a primary and for other writers.
COMMAND_TIMEOUT_SECS = 300
IMPORT_PAUSE_SECS = 0.5
CREDENTIAL_PAUSE_SECS = 2
RETRY_PAUSE_SECS = 0.2
# Every third command rotates the newest credential instead of issuing one.
ROTATE_EVERY = 3


class CommandFailed(Exception):
    pass


class Cli:
    """`batchscan` commands on one database, without the developer's own settings."""

    def __init__(self, executable: str, database: str):
        self.executable = executable
        settings = {name: value for name, value in os.environ.items() if not name.startswith("BATCHSCAN_")}
        self.environment = settings | {"BATCHSCAN_DATABASE": database}

    def run(self, *arguments: str, text: str = "") -> str:
        command = [self.executable, *arguments]
        try:
            done = subprocess.run(
                command, input=text, capture_output=True, text=True, env=self.environment, timeout=COMMAND_TIMEOUT_SECS
            )
        except subprocess.TimeoutExpired as error:
            raise CommandFailed(str(error)) from error
        if done.returncode != 0:
            raise CommandFailed(f"`batchscan {' '.join(arguments[:2])}` failed: {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def import_batches(self, organisation: str, batches: list[dict]):
        lines = "".join(json.dumps(batch) + "\n" for batch in batches)
        self.run("import", "--org", organisation, "--format", "ndjson", "-", text=lines)

    def credential(self, *arguments: str) -> dict:
        """Issues or rotates one. The result has the fields of a token request."""
        issued = json.loads(self.run("credential", *arguments, "--json"))
        return {name: issued[name] for name in ("client_id", "client_secret")}


def batch(batch_id: str, date: str, **fields) -> dict:
    required = {"batch_name": batch_id, "batch_creation_date": date, "number_of_images": 1, "warnings": False}
    return {"batch_id": batch_id, **required, **fields}


class Writers:
    """One thread imports batches, one issues and rotates credentials."""

    def __init__(self, cli: Cli, organisation: str, expected: Expected, is_over: threading.Event):
        self.cli, self.organisation, self.expected, self.is_over = cli, organisation, expected, is_over
        self.credentials: list[dict] = []
        self.last_import = 0.0
        self.failed_commands: list[str] = []

    def import_batches(self):
        number = 0
        while not self.is_over.is_set():
            # A prime step spreads the batches over the base.
            position: Position = (self.expected.range(number * 1_213, 0)[0], f"added-{number:05}")
            self.expected.send(position)
            if self.succeeds(self.cli.import_batches, self.organisation, [batch(position[1], position[0] + "Z")]):
                self.expected.acknowledge(position)
                self.last_import = time.monotonic()
                number += 1
                time.sleep(IMPORT_PAUSE_SECS)

    def issue_credentials(self, load: Load):
        """Each must get a token at once."""
        client, number = LoadClient(load, 0), 0
        while not self.is_over.is_set():
            number += 1
            # The old secret stays valid for days, so both are checked in the end. A third one would end it.
            rotates = self.credentials and number % ROTATE_EVERY == 0
            arguments = ["rotate", self.credentials[-1]["client_id"]] if rotates else ["issue", "--org", self.organisation]
            if credential := self.succeeds(self.cli.credential, *arguments):
                self.credentials.append(credential)
                client.fetch_token(credential)
                time.sleep(CREDENTIAL_PAUSE_SECS)

    def succeeds(self, command, *arguments):
        """The result of a command, or `True`; `None` if it failed."""
        try:
            return command(*arguments) or True
        except CommandFailed as error:
            self.failed_commands.append(str(error))
            time.sleep(RETRY_PAUSE_SECS)
            return None

    def wait_for_import_after(self, instant: float, secs: float) -> float:
        """Waits for an import that is acknowledged after an instant; returns when it was."""
        deadline = time.monotonic() + secs
        while self.last_import <= instant:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no import was acknowledged in {secs} s")
            time.sleep(0.005)
        return self.last_import
