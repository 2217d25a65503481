"""Holds what `batchscan pull` writes against the service's own v1 answer, by libraries that are not ours.

Pulls in every format side by side, reads each file back with Python's csv and json, pyarrow, pandas and openpyxl, and
compares every value of every batch. The service and the credentials come from the environment; a failing service
(`batchscan demo --fail-rate 0.3`) is part of the proof.
"""

import argparse
import csv
import datetime
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from xml.etree import ElementTree

import openpyxl
import pandas
import pyarrow
import pyarrow.parquet
import requests

FORMATS = ["csv", "ndjson", "json", "parquet", "xlsx"]
DECIMALS = {
    "avg_germinated_seedlings", "avg_non_germinated_seedlings", "avg_germination_rate", "avg_usable_seedlings",
    "avg_non_usable_cells", "avg_usable_seedling_rate", "avg_coefficient_of_variation", "avg_median_seedling_size_mm2",
}
COUNTS = {"number_of_images", "total_cells_per_tray"}


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--executable", required=True)
    arguments.add_argument("--folder", required=True, type=Path)
    arguments = arguments.parse_args()
    v1 = whole_answer()
    batches = json.loads(v1)
    pulls = {form: begin_pull(arguments.executable, arguments.folder, form) for form in FORMATS}
    for form, (began, pull) in pulls.items():
        out, _ = pull.communicate()
        assert pull.returncode == 0, f"pull to {form} ended with {pull.returncode}"
        print(f"{form}: {out.decode().strip()} ({time.monotonic() - began:.1f} s)")
    compare_csv(arguments.folder / "batches.csv", batches)
    compare_ndjson(arguments.folder / "batches.ndjson", v1)
    compare_json(arguments.folder / "batches.json", batches)
    compare_parquet(arguments.folder / "batches.parquet", batches)
    compare_xlsx(arguments.folder / "batches.xlsx", batches)
    leftovers = sorted(path.name for path in arguments.folder.iterdir() if path.stem != "batches")
    assert not leftovers, f"left behind: {leftovers}"
    print(f"{len(batches)} batches are the same in v1 and in {', '.join(FORMATS)}")


def whole_answer() -> bytes:
    """The v1 answer, byte for byte. A service that is told to fail now and then is asked again."""
    url = os.environ["BATCHSCAN_URL"]
    form = {
        "grant_type": "client_credentials",
        "client_id": os.environ["BATCHSCAN_CLIENT_ID"],
        "client_secret": os.environ["BATCHSCAN_CLIENT_SECRET"],
    }
    token = requests.post(f"{url}/v1/auth", data=form, timeout=30).json()["access_token"]
    for _ in range(60):
        answer = requests.get(f"{url}/v1/batches", headers={"Authorization": f"Bearer {token}"}, timeout=120)
        if answer.status_code != 503:
            answer.raise_for_status()
            return answer.content
    sys.exit("the service never answered")


def begin_pull(executable: str, folder: Path, form: str) -> tuple[float, subprocess.Popen[bytes]]:
    command = [executable, "pull", "--output", str(folder / f"batches.{form}")]
    return time.monotonic(), subprocess.Popen(command, stdout=subprocess.PIPE)


def compare_csv(path: Path, batches: list[dict]) -> None:
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert len(rows) == len(batches), f"csv has {len(rows)} rows"
    for row, batch in zip(rows, batches):
        assert head == list(batch)
        assert row == [cell(value) for value in batch.values()], f"csv: {row}"


def cell(value: object) -> str:
    """A value as CSV spells it: null is an empty cell."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def compare_ndjson(path: Path, v1: bytes) -> None:
    lines = path.read_bytes().splitlines()
    assert b"[" + b",".join(lines) + b"]" == v1.strip(), "ndjson is not v1, byte for byte"


def compare_json(path: Path, batches: list[dict]) -> None:
    assert json.loads(path.read_bytes()) == batches, "json differs"


def compare_parquet(path: Path, batches: list[dict]) -> None:
    table = pyarrow.parquet.read_table(path)
    for field in table.schema:
        assert is_right_type(field), f"parquet: {field.name} is {field.type}"
    rows = table.to_pylist()
    assert len(rows) == len(batches), f"parquet has {len(rows)} rows"
    for row, batch in zip(rows, batches):
        assert row == {name: typed(name, value) for name, value in batch.items()}, f"parquet: {row}"
    frame = pandas.read_parquet(path)
    assert list(frame["batch_id"]) == [batch["batch_id"] for batch in batches]
    assert str(frame["batch_creation_date"].dtype) == "datetime64[us, UTC]", frame.dtypes


def is_right_type(field: pyarrow.Field) -> bool:
    if field.name in DECIMALS:
        return pyarrow.types.is_decimal(field.type) and field.type.scale == 2
    if field.name in COUNTS:
        return field.type == pyarrow.int64()
    special = {"batch_creation_date": pyarrow.timestamp("us", tz="UTC"), "warnings": pyarrow.bool_()}
    return field.type == special.get(field.name, pyarrow.string())


def typed(name: str, value: object) -> object:
    if value is None:
        return None
    if name in DECIMALS:
        return Decimal(str(value))
    return datetime.datetime.fromisoformat(str(value)) if name == "batch_creation_date" else value


def compare_xlsx(path: Path, batches: list[dict]) -> None:
    sheet = openpyxl.load_workbook(path, read_only=True).active
    rows = sheet.iter_rows(values_only=True)
    assert list(next(rows)) == list(batches[0]), "xlsx has another head"
    count = 0
    for row, batch, moment in zip(rows, batches, moments(path)):
        expected = {name: typed(name, value) for name, value in batch.items()}
        found = {name: in_decimal(name, value) for name, value in zip(batch, row)}
        assert moment == expected["batch_creation_date"], f"xlsx: {moment} is not {expected}"
        # openpyxl, like Excel's own display, rounds to the millisecond.
        shown = found.pop("batch_creation_date").replace(tzinfo=datetime.timezone.utc)
        assert abs(shown - expected.pop("batch_creation_date")) <= datetime.timedelta(microseconds=501), f"xlsx: {shown}"
        assert found == expected, f"xlsx: {found} is not {expected}"
        count += 1
    assert count == len(batches) and next(rows, None) is None, f"xlsx has {count} rows or more"


def moments(path: Path) -> Iterator[datetime.datetime]:
    """The creation dates by the numbers that stand in the sheet: days since the end of 1899, in UTC."""
    epoch = datetime.datetime(1899, 12, 30, tzinfo=datetime.timezone.utc)
    with zipfile.ZipFile(path).open("xl/worksheets/sheet1.xml") as sheet:
        for _, element in ElementTree.iterparse(sheet):
            if element.tag.endswith("}row"):
                if element.get("r") != "1":
                    days = Decimal(float(element[2][0].text))
                    yield epoch + datetime.timedelta(microseconds=round(days * 86_400_000_000))
                element.clear()


def in_decimal(name: str, value: object) -> object:
    """A number of a sheet by its shortest digits, which are those that a person reads."""
    assert name not in DECIMALS or value is None or isinstance(value, (int, float)), f"{name} is {value!r}, no number"
    return Decimal(repr(value)) if name in DECIMALS and value is not None else value


if __name__ == "__main__":
    main()
