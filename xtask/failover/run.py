"""Kills parts of a site under load and checks every response. `cargo xtask failover` starts it; the rules are in
docs/FAILOVER.md.

The site is a process of `cargo xtask cluster --json`, which takes commands on standard input: see `Site`.
"""

import argparse
import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True

from expected import Expected, Wrong
from load import SLOW_PAUSE_SECS, Client, Failed, Load, LoadClient, Tally, process_id
from mirrors import CommandFailed, IdleMirror, Mirrors
from report import NODE_KILLED, TABLE_HEAD, Row, WriteGap, Writes, broken_rules, update
from writers import Cli, Writers

DOCUMENT = Path("docs/FAILOVER.md")
MIXED_CLIENTS, SLOW_CLIENTS, MIRRORS = 4, 2, 3
# Right responses after a kill that show that reads continue: many from every client, about a second.
READS_SHOWN = 300
# Only to prevent hanging.
READS_TIMEOUT_SECS = WRITE_TIMEOUT_SECS = 300


class Site:
    """Three PostgreSQL servers, three nodes and HAProxy. They end with this process."""

    def __init__(self, xtask: str):
        self.process = subprocess.Popen([xtask, "cluster", "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        site = next((line for line in self.process.stdout if line.startswith("{")), None)
        if site is None:
            raise CommandFailed("the site did not start")
        site = json.loads(site)
        self.port, self.nodes, self.standbys = site["port"], site["nodes"], site["standbys"]
        self.url = f"http://127.0.0.1:{self.port}"
        self.organisation, self.credential = site["organisation"], site["credential"]
        self.imported, self.balancer_log = Path(site["imported"]).read_text(), Path(site["balancer_log"])
        self.logs = Path(site["logs"])
        self.cli = Cli(site["executable"], site["database"])

    def do(self, *commands: str):
        """Runs commands and waits for each. The process ends if one fails."""
        for command in commands:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
            if not self.process.stdout.readline():
                raise CommandFailed(f"{command} failed")


class Run:
    def __init__(self, site: Site):
        self.site, self.expected, self.tally = site, Expected(site.imported), Tally()
        self.is_over, self.rows = threading.Event(), []
        self.writers = Writers(site.cli, site.organisation, self.expected, self.is_over)
        self.mirrors = Mirrors(site.cli, site.url, self.is_over)

    def under_load(self, rounds: int) -> Writes:
        """Runs clients and writers during all events, then looks for losses."""
        load = Load(self.site.port, self.site.credential, self.expected, self.tally, self.is_over)
        jobs = [LoadClient(load, number).run_mixed for number in range(MIXED_CLIENTS)]
        jobs += [LoadClient(load, number, SLOW_PAUSE_SECS).run_slow for number in range(SLOW_CLIENTS)]
        jobs += [self.mirrors.follow] * MIRRORS + [self.mirrors.change, self.writers.import_batches]
        jobs += [lambda: self.writers.issue_credentials(load)]
        errors = []
        threads = [threading.Thread(target=record_error, args=(job, errors)) for job in jobs]
        for thread in threads:
            thread.start()
        try:
            self.all_events(rounds)
        finally:
            self.is_over.set()
            for thread in threads:
                thread.join()
        return Writes(
            len(self.expected.acknowledged()),
            len(self.writers.credentials),
            self.writers.failed_commands,
            errors + self.losses() + self.mirrors.differences(self.site.nodes[0]["port"]),
        )

    def losses(self) -> list[str]:
        """Asks every node for everything that was acknowledged."""
        self.site.do("wait")
        lost = []
        for node in self.site.nodes:
            client = Client(node["port"])
            try:
                response = client.get("/v1/batches", client.token(self.site.credential))
                self.expected.final_verifier().list(response.body)
            except (Failed, Wrong) as error:
                lost.append(str(error))
            for credential in self.writers.credentials:
                try:
                    client.token(credential)
                except (Failed, Wrong) as error:
                    lost.append(f"{credential['client_id']}: {error}")
        return lost

    def all_events(self, rounds: int):
        self.event("undisturbed", self.write_once)
        for number in range(1, rounds + 1):
            self.event("primary killed", self.replace_primary)
            self.event("standby killed", lambda: self.replace_standby(number % self.site.standbys))
            self.event(NODE_KILLED, lambda: self.replace_node(number % len(self.site.nodes)))
        for _ in range(rounds // 2):
            self.event("rolling restart", self.restart_nodes)

    def event(self, name: str, action):
        """Does something, waits until the site is healthy, and adds a row with the requests of that time."""
        gap = action()
        self.site.do("wait")
        # Requests that started during the event end before the next.
        self.wait_for_reads()
        self.rows.append(Row(name, self.tally.take(), gap))
        print(self.rows[-1].line(), flush=True)

    def write_once(self):
        self.wait_for_reads()
        self.writers.wait_for_import_after(time.monotonic(), WRITE_TIMEOUT_SECS)

    def replace_primary(self) -> WriteGap:
        self.site.do("kill primary")
        killed_at = time.monotonic()
        self.wait_for_reads()
        promoted_at = time.monotonic()
        self.site.do("promote")
        written_at = self.writers.wait_for_import_after(promoted_at, WRITE_TIMEOUT_SECS)
        self.site.do("rejoin")
        return written_at - killed_at, written_at - promoted_at

    def replace_standby(self, index: int):
        self.site.do(f"kill standby {index}")
        self.wait_for_reads()
        self.site.do(f"start standby {index}")

    def replace_node(self, index: int):
        health = Client(self.site.nodes[index]["operator_port"]).get("/healthz")
        self.tally.expect_kill(process_id(health.request_id))
        self.site.do(f"kill node {index}")
        self.wait_for_reads()
        self.site.do(f"start node {index}")

    def restart_nodes(self):
        for index in range(len(self.site.nodes)):
            self.site.do(f"stop node {index}")
            self.wait_for_reads()
            # As an operator does: the next node only when the balancer considers this one up.
            self.site.do(f"start node {index}", "wait for balancer")

    def wait_for_reads(self):
        self.tally.wait_for_right(READS_SHOWN, READS_TIMEOUT_SECS)


def record_error(job, errors: list[str]):
    """A client or writer that ends by an error would check nothing from then on."""
    try:
        job()
    except Exception as error:
        errors.append(f"a client ended: {error!r}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("xtask", help="its executable")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--write", action="store_true", help=f"update {DOCUMENT}")
    options = parser.parse_args()
    start = time.monotonic()
    site = Site(options.xtask)
    print(f"site started in {time.monotonic() - start:.1f} s\n{TABLE_HEAD}", flush=True)
    idle_mirror = IdleMirror(site.cli, site.url, site.balancer_log, site.logs)
    try:
        run = Run(site)
        writes = run.under_load(options.rounds)
        idle_mirror.receive_change()
    finally:
        idle_mirror.stop()
    print(f"acknowledged: {writes.batches} batches, {writes.secrets} secrets; lost: {len(writes.lost)}")
    for error in writes.failed_commands:
        print(f"failed and repeated: {error}")
    if options.write:
        command = f"cargo xtask failover --rounds {options.rounds} --write"
        DOCUMENT.write_text(update(DOCUMENT.read_text(), command, run.rows, writes))
        print(f"updated {DOCUMENT}")
    if broken := broken_rules(run.rows, writes):
        shutil.copy(site.balancer_log, site.logs / "haproxy.log")
        sys.exit(f"broken rules (logs are in {site.logs}):\n" + "\n".join(broken))


if __name__ == "__main__":
    main()
