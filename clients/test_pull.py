"""Compares every value that `batchscan pull` writes with v1, through other people's readers.

The service fails 30 % of the requests.
"""

import csv
import datetime
import json
import os
import subprocess
import zipfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from xml.etree import ElementTree

import openpyxl
import pandas
import pyarrow
import pyarrow.parquet
import pytest

from batchscan.batch import KINDS
from service import EXECUTABLE, Service

FORMATS = ["csv", "ndjson", "json", "parquet", "xlsx"]
ARROW_TYPES = {
    "text": pyarrow.string(),
    "instant": pyarrow.timestamp("us", tz="UTC"),
    "integer": pyarrow.int64(),
    "boolean": pyarrow.bool_(),
}


def test_every_format_contains_the_values_of_v1(failing_service, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    environment = failing_service.environment(tmp_path)
    # At the same time, because most of a pull is waiting for retries.
    pulls = [
        subprocess.Popen([EXECUTABLE, "pull", "--output", str(folder / f"batches.{name}")], env=environment)
        for name in FORMATS
    ]
    v1 = read_v1(failing_service)
    batches = json.loads(v1)
    assert [pull.wait(120) for pull in pulls] == [0] * len(FORMATS)
    # No partial file or journal is left.
    assert sorted(os.listdir(folder)) == sorted(f"batches.{name}" for name in FORMATS)
    compare_csv(folder / "batches.csv", batches)
    assert b"[" + b",".join((folder / "batches.ndjson").read_bytes().splitlines()) + b"]" == v1.strip()
    assert json.loads((folder / "batches.json").read_bytes()) == batches
    compare_parquet(folder / "batches.parquet", batches)
    compare_xlsx(folder / "batches.xlsx", batches)


def read_v1(service: Service) -> bytes:
    for _ in range(60):
        try:
            return service.v1_body()
        except HTTPError as error:
            if error.code != 503:
                raise
    pytest.fail("v1 failed 60 times in a row")


def compare_csv(path: Path, batches: list[dict[str, Any]]) -> None:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == list(KINDS)
    assert rows == [[csv_text(value) for value in batch.values()] for batch in batches]


def csv_text(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def compare_parquet(path: Path, batches: list[dict[str, Any]]) -> None:
    table = pyarrow.parquet.read_table(path)
    for field in table.schema:
        kind = KINDS[field.name]
        is_decimal = pyarrow.types.is_decimal(field.type) and field.type.scale == 2
        assert is_decimal if kind == "decimal" else field.type == ARROW_TYPES[kind], field
    assert table.to_pylist() == [typed(batch) for batch in batches]
    frame = pandas.read_parquet(path)
    assert list(frame["batch_id"]) == [batch["batch_id"] for batch in batches]
    assert str(frame["batch_creation_date"].dtype) == "datetime64[us, UTC]"


def typed(batch: dict[str, Any]) -> dict[str, Any]:
    types = {"decimal": Decimal, "instant": datetime.datetime.fromisoformat}
    return {
        name: types[KINDS[name]](value) if value is not None and KINDS[name] in types else value
        for name, value in batch.items()
    }


def compare_xlsx(path: Path, batches: list[dict[str, Any]]) -> None:
    rows = list(openpyxl.load_workbook(path, read_only=True).active.iter_rows(values_only=True))
    # Titles have a unit or the time zone, such as "batch_creation_date (UTC)".
    assert [title.split(" (")[0] for title in rows.pop(0)] == list(KINDS)
    for row, batch, instant in zip(rows, batches, xlsx_instants(path), strict=True):
        expected, found = typed(batch), {name: xlsx_value(name, value) for name, value in zip(KINDS, row, strict=True)}
        assert instant == expected["batch_creation_date"]
        # openpyxl rounds to milliseconds, as Excel does.
        shown = found.pop("batch_creation_date").replace(tzinfo=datetime.timezone.utc)
        assert abs(shown - expected.pop("batch_creation_date")) <= datetime.timedelta(microseconds=501)
        assert found == expected


def xlsx_instants(path: Path) -> Iterator[datetime.datetime]:
    """The creation dates from the numbers in the sheet: days since 1899-12-30, in UTC."""
    epoch = datetime.datetime(1899, 12, 30, tzinfo=datetime.timezone.utc)
    with zipfile.ZipFile(path).open("xl/worksheets/sheet1.xml") as sheet:
        for _, element in ElementTree.iterparse(sheet):
            if element.tag.endswith("}row"):
                if element.get("r") != "1":
                    days = Decimal(float(element[2][0].text or ""))
                    yield epoch + datetime.timedelta(microseconds=round(days * 86_400_000_000))
                element.clear()


def xlsx_value(name: str, value: Any) -> Any:
    if KINDS[name] != "decimal" or value is None:
        return value
    assert isinstance(value, (int, float)), f"{name} is {value!r}, not a number"
    # The shortest digits, which are those that a person reads.
    return Decimal(repr(value))
