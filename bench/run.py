#!/usr/bin/env python3
"""Compares batchscan with other servers on the same data and machine. Writes RESULTS.md and charts.

A missed target is a row in the results. The run fails when a server does not start, a response is wrong, or an
uncached scenario was served from the cache.
"""

import argparse
import fcntl
import json
import math
import os
import platform
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from datetime import date
from pathlib import Path

sys.dont_write_bytecode = True

import charts
import measure
import prepare
import report
from prepare import HOME, LARGE, ROOT, USUAL, Setup
from servers import PEERS, REQUEST_SCENARIOS, write_nginx_files
from wrk import BenchError

SCENARIOS = [*REQUEST_SCENARIOS, "scale", "connections", "v1", "mixed", "import", "pull"]
# Pinned packages that do the peers' work.
PYTHON_PACKAGES = {"fastapi", "uvicorn", "uvloop", "httptools", "asyncpg", "pydantic", "orjson", "datasette", "roapi"}


class Plan:
    """What is measured, how often and for how long."""

    def __init__(self, options: argparse.Namespace):
        self.quick = quick = options.quick
        self.servers = [name for name in PEERS if not options.only or name in options.only]
        self.scenarios = options.scenario or SCENARIOS
        self.command = "python3 bench/run.py" + (" --quick" if quick else "")
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            raise BenchError("needs two cores: one for the server, one for the load")
        self.server_cores, self.load_cores, self.all_cores = {cores[0]}, {cores[1]}, set(cores[:2])
        # Requests in flight at the end are not counted, so slow servers are timed for longer.
        self.min_secs, self.max_secs, self.min_responses = (1, 4, 80) if quick else (3, 8, 256)
        self.warm_up_secs = 0 if quick else 1
        self.rounds = 1 if quick else 3
        self.connections, self.connection_rounds = ([1, 64], 1) if quick else ([1, 16, 64, 512], 2)
        self.scale_rounds = 2 if quick else 6
        self.stream_rounds, self.stream_sizes = (1, [USUAL]) if quick else (4, [USUAL, LARGE])
        self.mixed_rounds, self.mixed_secs = (2, 2) if quick else (5, 5)
        self.organisations = 100 if quick else 1_000

    def has(self, *servers: str) -> bool:
        return any(server in self.servers for server in servers)

    def wants(self, *scenarios: str) -> bool:
        return any(scenario in self.scenarios for scenario in scenarios)

    def needs_large(self, *scenarios: str) -> bool:
        return not self.quick and self.wants(*scenarios)

    def seconds(self, seconds_each: float, connections: int) -> int:
        """How long to time a server that needs so long for a response: within a minute, two for each connection."""
        max_secs = max(self.max_secs, min(math.ceil(2 * connections * seconds_each), 60))
        return min(max(math.ceil(self.min_responses * seconds_each), self.min_secs), max_secs)


def main() -> None:
    options = parse_arguments()
    plan = Plan(options)
    partial = options.quick or options.only or options.scenario or options.executable
    out = options.out or (HOME if partial else ROOT / "bench")
    (out / "charts").mkdir(parents=True, exist_ok=True)
    HOME.mkdir(parents=True, exist_ok=True)
    # A terminated run stops its servers, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with ExitStack() as stack:
        lock = stack.enter_context((HOME / "lock").open("w"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BenchError("another benchmark is running") from None
        prepare.install_packages()
        executable = options.executable.resolve() if options.executable else prepare.build("batchscan")
        setup = Setup(plan, executable, stack)
        rows = measure_all(setup)
        write_results(rows, describe_machine(setup), plan, out)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a run of a few minutes that shows that everything works")
    parser.add_argument("--only", nargs="+", choices=PEERS, help="only these servers")
    parser.add_argument("--scenario", nargs="+", choices=SCENARIOS, help="only these scenarios")
    parser.add_argument("--out", type=Path, metavar="FOLDER",
                        help="folder for RESULTS.md and charts (default: bench/ for a full run, else target/bench/)")
    parser.add_argument("--executable", type=Path, metavar="FILE", help="this batchscan instead of a new build")
    return parser.parse_args()


def measure_all(setup: Setup) -> list[dict]:
    plan, rows, started = setup.plan, [], time.monotonic()
    if plan.has("nginx"):
        for size in [USUAL, LARGE] if plan.needs_large("v1") else [USUAL]:
            write_nginx_files(setup, size)
    # Children inherit the core: wrk and all connections of PostgreSQL.
    os.sched_setaffinity(0, plan.load_cores)
    if setup.postgres:
        os.sched_setaffinity(setup.postgres.process.pid, plan.load_cores)
    steps = {
        measure.measure_requests: plan.wants(*REQUEST_SCENARIOS),
        measure.measure_connections: plan.wants("connections"),
        measure.measure_scale: plan.wants("scale") and plan.has("batchscan"),
        measure.measure_streams: plan.wants("v1"),
        measure.measure_mixed: plan.wants("mixed") and plan.has("batchscan"),
        measure.measure_bulk: plan.wants("import", "pull"),
    }
    for step, wanted in steps.items():
        if wanted:
            rows += step(setup)
            print(f"{step.__name__} done after {time.monotonic() - started:.0f} s", flush=True)
    return rows


def write_results(rows: list[dict], machine: dict[str, str], plan: Plan, out: Path) -> None:
    # Kept in case the report fails.
    (HOME / "rows.json").write_text(json.dumps(rows, indent=0))
    drawn = charts.all_charts(rows)
    document = report.document(rows, machine, plan, list(drawn))
    for old in (out / "charts").glob("*.svg"):
        old.unlink()
    for name, svg in drawn.items():
        (out / "charts" / f"{name}.svg").write_text(svg)
    (out / "RESULTS.md").write_text(document)
    print(document if plan.quick else "", f"written: {out / 'RESULTS.md'}", sep="\n")


def describe_machine(setup: Setup) -> dict[str, str]:
    cpu = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = [
        first_line([setup.executable, "--version"]),
        "commit " + first_line(["git", "-C", ROOT, "describe", "--always", "--dirty"]),
        first_line(["rustc", "--version"]),
        first_line(["wrk", "-v"]).split(" [")[0],
        first_line([prepare.find_program("nginx"), "-v"]).removeprefix("nginx version: "),
    ]
    if setup.postgres:
        versions.append("PostgreSQL " + setup.postgres.sql("postgres", "show server_version"))
    if setup.venv:
        versions.append("Python " + platform.python_version())
        words = (prepare.PEERS_FOLDER / "requirements.txt").read_text().split()
        pinned = (word.split("==") for word in words if "==" in word)
        versions += [f"{name} {version}" for name, version in pinned if name in PYTHON_PACKAGES]
    return {
        "date": date.today().isoformat(),
        "machine": f"{cpu[1] if cpu else platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB",
        "system": f"{platform.freedesktop_os_release()['PRETTY_NAME']}, Linux {platform.release()}",
        "versions": "; ".join(versions),
    }


def first_line(command: list) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout.partition("\n")[0].strip()


if __name__ == "__main__":
    try:
        main()
    except BenchError as error:
        sys.exit(f"error: {error}")
