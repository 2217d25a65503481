"""Runs the usual Python loop and `batchscan pull` against the same service in turn, and tells how much faster it is.

The loop is what most people write: requests for the pages, csv for the file. Both must end with the same rows.
"""

import argparse
import csv
import os
import subprocess
import time
from pathlib import Path

import requests


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--executable", required=True)
    arguments.add_argument("--folder", required=True, type=Path)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments = arguments.parse_args()
    ratios = []
    for number in range(arguments.rounds):
        loop_file, pull_file = arguments.folder / "loop.csv", arguments.folder / "pull.csv"
        loop_secs = timed(lambda: loop(loop_file))
        pull_secs = timed(lambda: pull(arguments.executable, pull_file))
        batches = compare(loop_file, pull_file)
        ratios.append(loop_secs / pull_secs)
        print(
            f"round {number + 1}: {batches:,} batches, loop {loop_secs:.1f} s, pull {pull_secs:.1f} s: "
            f"{ratios[-1]:.1f} times as fast",
            flush=True,
        )
    median = sorted(ratios)[len(ratios) // 2]
    print(f"{median:.1f} times as fast in the median, from {min(ratios):.1f} to {max(ratios):.1f}")


def timed(work) -> float:
    # Neither pays for what the other has left to be written.
    os.sync()
    began = time.monotonic()
    work()
    return time.monotonic() - began


def loop(path: Path) -> None:
    url = os.environ["BATCHSCAN_URL"]
    form = {
        "grant_type": "client_credentials",
        "client_id": os.environ["BATCHSCAN_CLIENT_ID"],
        "client_secret": os.environ["BATCHSCAN_CLIENT_SECRET"],
    }
    session = requests.Session()
    token = session.post(f"{url}/v2/auth", data=form).json()["access_token"]
    session.headers["Authorization"] = f"Bearer {token}"
    params = {}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = None
        while True:
            answer = session.get(f"{url}/v2/batches", params=params)
            answer.raise_for_status()
            page = answer.json()
            if writer is None:
                writer = csv.DictWriter(file, fieldnames=list(page["data"][0]))
                writer.writeheader()
            writer.writerows(page["data"])
            if page["next_token"] is None:
                return
            params = {"next_token": page["next_token"]}


def pull(executable: str, path: Path) -> None:
    command = [executable, "pull", "--force", "--output", str(path)]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def compare(loop_file: Path, pull_file: Path) -> int:
    """The number of rows, which must be the same ones. Python spells a flag True, and pull true."""
    with loop_file.open(newline="") as one, pull_file.open(newline="") as other:
        count = -1
        for mine, ours in zip(csv.reader(one), csv.reader(other), strict=True):
            mine[-1] = mine[-1].lower()
            assert mine == ours, f"{mine} is not {ours}"
            count += 1
    return count


if __name__ == "__main__":
    main()
