"""Compares the time of `batchscan pull` with the usual Python loop: python clients/race.py [--batches N] [--rounds N].

The loop uses requests for the pages and csv for the file. Both must write the same rows. Not part of the tests.
"""

import argparse
import csv
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import requests

from service import EXECUTABLE, Service, start_demo


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as folder, start_demo("--batches", str(arguments.batches)) as service:
        loop_file, pull_file = Path(folder, "loop.csv"), Path(folder, "pull.csv")
        for number in range(1, arguments.rounds + 1):
            loop_secs = measure(lambda: loop(service, loop_file))
            pull_secs = measure(lambda: pull(service, pull_file))
            rows = compare(loop_file, pull_file)
            ratios.append(loop_secs / pull_secs)
            times = f"loop {loop_secs:.1f} s, pull {pull_secs:.1f} s, {ratios[-1]:.1f}×"
            print(f"round {number}: {rows:,} batches, {times}", flush=True)
    print(f"median {median(ratios):.1f}×, from {min(ratios):.1f}× to {max(ratios):.1f}×")


def measure(work: Callable[[], None]) -> float:
    # Neither should pay for the other's unwritten data.
    os.sync()
    start = time.monotonic()
    work()
    return time.monotonic() - start


def loop(service: Service, path: Path) -> None:
    form = {"grant_type": "client_credentials", "client_id": service.client_id, "client_secret": service.client_secret}
    session = requests.Session()
    token = session.post(f"{service.url}/v2/auth", data=form).json()["access_token"]
    session.headers["Authorization"] = f"Bearer {token}"
    query: dict[str, str] = {}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = None
        while True:
            response = session.get(f"{service.url}/v2/batches", params=query)
            response.raise_for_status()
            page = response.json()
            if writer is None:
                writer = csv.DictWriter(file, fieldnames=list(page["data"][0]))
                writer.writeheader()
            writer.writerows(page["data"])
            if page["next_token"] is None:
                return
            query = {"next_token": page["next_token"]}


def pull(service: Service, path: Path) -> None:
    command = [EXECUTABLE, "pull", "--force", "--output", str(path)]
    subprocess.run(command, env=service.environment(path.parent), stdout=subprocess.DEVNULL, check=True)


def compare(loop_file: Path, pull_file: Path) -> int:
    """The number of rows. Python writes booleans as True, pull as true."""
    with loop_file.open(newline="") as one, pull_file.open(newline="") as other:
        rows = -1
        for expected, found in zip(csv.reader(one), csv.reader(other), strict=True):
            expected[-1] = expected[-1].lower()
            assert expected == found
            rows += 1
    return rows


if __name__ == "__main__":
    main()
