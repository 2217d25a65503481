"""Prints the batch ids that a file of a recipe holds, one a line, in the file's order. Judges nothing."""

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path


def ids(path: Path) -> Iterator[str]:
    match path.suffix:
        case ".csv":
            return from_csv(path)
        case ".json":
            return (batch["batch_id"] for batch in json.loads(path.read_text()))
        case ".ndjson" | ".jsonl":
            return from_lines(path)
        case ".duckdb":
            return from_duckdb(path)
    raise SystemExit(f"no reader for {path}")


def from_csv(path: Path) -> Iterator[str]:
    """The first column; a header is no batch."""
    with path.open(newline="") as file:
        yield from (row[0] for row in csv.reader(file) if row[0] != "batch_id")


def from_lines(path: Path) -> Iterator[str]:
    """Bare batches, or Airbyte's messages, of which only records hold one."""
    with path.open() as file:
        for line in map(json.loads, file):
            if "batch_id" in line:
                yield line["batch_id"]
            elif line["type"] == "RECORD":
                yield line["record"]["data"]["batch_id"]


def from_duckdb(path: Path) -> Iterator[str]:
    """A table has no order of its own, so it is put into the service's."""
    import duckdb

    with duckdb.connect(str(path), read_only=True) as database:
        query = "select batch_id from nursery.batches order by batch_creation_date, batch_id"
        yield from (row[0] for row in database.execute(query).fetchall())


for batch_id in ids(Path(sys.argv[1])):
    print(batch_id)
