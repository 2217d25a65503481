#!/usr/bin/env python3
"""Compares batchscan with other servers on the same data and machine. Writes RESULTS.md and a chart.

A missed target is a row in the results. The run fails when a server does not start, a response is wrong, or an
uncached scenario was served from the cache.
"""

import argparse
import fcntl
import json
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

import measure
from charts import draw_pages
from prepare import HOME, LARGE, ROOT, USUAL, Setup, build, install_packages, make_environment
from report import Results, document
from scenarios import DATABASES, SCENARIOS, split_entry
from servers import FASTAPI, PEERS
from wrk import BenchError, require

# The others are measured by turns.
MEASURES = {
    "v1": measure.measure_streams,
    "mixed": measure.measure_mixed,
    "import": measure.measure_imports,
    "pull": measure.measure_pulls,
}


class Plan:
    """What is measured, how often and for how long."""

    def __init__(self, options: argparse.Namespace):
        self.quick = quick = options.quick
        self.scenarios = options.scenario or list(SCENARIOS)
        self.wanted = {"batchscan", *(options.only or PEERS)}
        if not options.only and not options.release_executable and (quick or options.scenario):
            # It takes minutes to build, and says little about work on one scenario.
            self.wanted.remove("batchscan-release")
        self.command = "python3 bench/run.py" + (" --quick" if quick else "")
        cores = sorted(os.sched_getaffinity(0))
        require(len(cores) >= 2, "needs two cores: one for the server, one for the load")
        self.server_cores, self.load_cores, self.all_cores = {cores[0]}, {cores[1]}, set(cores[:2])
        self.rounds, self.stream_rounds = (2, 1) if quick else (8, 4)
        self.mixed_rounds, self.mixed_secs = (2, 2) if quick else (8, 3)
        self.organisations = 100 if quick else 1_000
        needs_large = not quick and {"scale", *MEASURES} & set(self.scenarios)
        self.largest = LARGE if needs_large else USUAL
        self.bulk_sizes = [USUAL] if quick else [USUAL, LARGE]

    def has(self, server: str) -> bool:
        return server in self.wanted

    def entries(self, scenario: str) -> list[str]:
        """Who takes part in a scenario."""
        entries = {entry: split_entry(scenario, entry) for entry in SCENARIOS[scenario].entries}
        too_large = {kind for kind, size in DATABASES.items() if self.quick and size == LARGE}
        return [entry for entry, (server, kind) in entries.items() if self.has(server) and kind not in too_large]

    def streams(self) -> list[tuple[int, int, str]]:
        """Batches, readers and server of each timing of v1. Only batchscan and nginx have the large data."""
        large = [(LARGE, 1, "batchscan"), (LARGE, 4, "batchscan"), (LARGE, 1, "nginx")]
        large = [stream for stream in large if self.has(stream[2]) and not self.quick]
        return [(USUAL, 1, name) for name in self.entries("v1")] + large

    def servers(self) -> set[str]:
        entries = {split_entry(name, entry)[0] for name in self.scenarios for entry in self.entries(name)}
        return {"batchscan"} | entries


def main() -> None:
    options = parse_arguments()
    plan = Plan(options)
    out = HOME if options.quick or options.only or options.scenario or options.executable else ROOT / "bench"
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
        install_packages()
        setup = Setup(plan, {name: find_executable(name, options) for name in plan.servers()}, stack)
        rows, started = [], time.monotonic()
        for scenario in plan.scenarios:
            other = MEASURES.get(scenario)
            rows += other(setup) if other else measure.measure_scenario(setup, scenario)
            print(f"{scenario} done after {time.monotonic() - started:.0f} s", flush=True)
        write_results(rows, describe_machine(setup), plan.command, out)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a run of a few minutes that shows that everything works")
    parser.add_argument("--only", nargs="+", choices=PEERS, help="only these servers, next to batchscan")
    parser.add_argument("--scenario", nargs="+", choices=SCENARIOS, help="only these scenarios")
    parser.add_argument("--executable", type=Path, metavar="FILE", help="this batchscan instead of a new build")
    parser.add_argument("--release-executable", type=Path, metavar="FILE",
                        help="this as batchscan-release, for example the batchscan of another commit")
    return parser.parse_args()


def find_executable(server: str, options: argparse.Namespace) -> Path:
    """Builds what is not given."""
    if server == "batchscan-release":
        return options.release_executable.resolve() if options.release_executable else build("batchscan", "release")
    if server in ("batchscan", "batchscan-postgres"):
        return options.executable.resolve() if options.executable else build("batchscan")
    if server in FASTAPI:
        return make_environment() / "bin/uvicorn"
    return Path("nginx") if server == "nginx" else build(server)


def write_results(rows: list[dict], facts: dict[str, str], command: str, out: Path) -> None:
    # Kept in case the report fails.
    (HOME / "rows.json").write_text(json.dumps(rows, indent=0))
    results = Results(rows)
    (out / "RESULTS.md").write_text(document(results, facts, command))
    if chart := draw_pages(results):
        (out / "charts/pages.svg").write_text(chart)
    print(f"written: {out / 'RESULTS.md'}")


def describe_machine(setup: Setup) -> dict[str, str]:
    cpu = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    commands = [f"git -C {ROOT} describe --always --dirty", f"{setup.executable} --version", "rustc --version", "nginx -v",
                "wrk -v", "postgres --version", "python3 --version"]
    versions = [re.match(r"[^\n[]*", subprocess.getoutput(command))[0].strip() for command in commands]
    rounds = f"{setup.plan.rounds}, with {measure.CONNECTIONS} connections"
    return {
        "date": date.today().isoformat(),
        "machine": f"{cpu[1] if cpu else platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB",
        "system": f"{platform.freedesktop_os_release()['PRETTY_NAME']}, Linux {platform.release()}",
        "versions": "; ".join(versions),
        "rounds": rounds + (". A quick run: it only shows that everything works" if setup.plan.quick else ""),
    }


if __name__ == "__main__":
    try:
        main()
    except BenchError as error:
        sys.exit(f"error: {error}")
