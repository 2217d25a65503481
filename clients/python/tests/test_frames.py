"""Frames hold what v1 says, digit for digit, in columns that know what they are."""

import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from conftest import Service

from batchscan import BadSettings
from batchscan.batch import KINDS

EMPTY = (date(1999, 1, 1), date(1999, 1, 2))


@pytest.mark.parametrize("decimals", ["float", "decimal"])
@pytest.mark.parametrize("window", [(None, None), EMPTY])
def test_pandas_dtypes_do_not_depend_on_the_data(service: Service, decimals: Any, window: Any) -> None:
    frame = service.client().to_pandas(*window, decimals=decimals)
    expected = {
        "text": "string",
        "instant": "datetime64[us, UTC]",
        "integer": "Int64",
        "decimal": "float64" if decimals == "float" else "object",
        "boolean": "boolean",
    }
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == {
        name: expected[kind] for name, kind in KINDS.items()
    }
    assert list(frame.columns) == list(KINDS) and len(frame) == (0 if window is EMPTY else 2500)


@pytest.mark.parametrize("decimals", ["float", "decimal"])
@pytest.mark.parametrize("window", [(None, None), EMPTY])
def test_polars_dtypes_do_not_depend_on_the_data(service: Service, decimals: Any, window: Any) -> None:
    frame = service.client().to_polars(*window, decimals=decimals)
    expected = {
        "text": pl.String(),
        "instant": pl.Datetime("us", "UTC"),
        "integer": pl.Int64(),
        "decimal": pl.Float64() if decimals == "float" else pl.Decimal(precision=38, scale=2),
        "boolean": pl.Boolean(),
    }
    assert dict(frame.schema) == {name: expected[kind] for name, kind in KINDS.items()}
    assert frame.height == (0 if window is EMPTY else 2500)


@pytest.mark.parametrize("decimals", ["float", "decimal"])
def test_pandas_equals_v1(service: Service, v1_batches: list[dict[str, Any]], decimals: Any) -> None:
    frame = service.client().to_pandas(decimals=decimals)
    for name, kind in KINDS.items():
        read = [None if pd.isna(value) else value for value in frame[name]]
        assert read == [as_python(kind, decimals, batch[name]) for batch in v1_batches], name


@pytest.mark.parametrize("decimals", ["float", "decimal"])
def test_polars_equals_v1(service: Service, v1_batches: list[dict[str, Any]], decimals: Any) -> None:
    frame = service.client().to_polars(decimals=decimals)
    for name, kind in KINDS.items():
        assert frame[name].to_list() == [as_python(kind, decimals, batch[name]) for batch in v1_batches], name


def test_a_frame_becomes_a_parquet_file_and_comes_back(service: Service, tmp_path: Path) -> None:
    frame = service.client().to_polars(decimals="decimal")
    frame.write_parquet(tmp_path / "batches.parquet")
    assert pl.read_parquet(tmp_path / "batches.parquet").equals(frame)
    pandas_frame = service.client().to_pandas()
    pandas_frame.to_parquet(tmp_path / "pandas.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "pandas.parquet"), pandas_frame)


def test_a_frame_becomes_a_spreadsheet(service: Service, tmp_path: Path) -> None:
    frame = service.client().to_pandas(end=date(2026, 1, 31)).head(20)
    # As the README says.
    naive = frame.assign(batch_creation_date=frame.batch_creation_date.dt.tz_localize(None))
    naive.to_excel(tmp_path / "batches.xlsx", index=False)
    back = pd.read_excel(tmp_path / "batches.xlsx")
    assert list(back["avg_germination_rate"]) == list(frame["avg_germination_rate"])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_missing_library_says_what_to_install(
    service: Service, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"{library} is not installed; pip install 'batchscan\[{library}\]'"):
        getattr(service.client(), f"to_{library}")()


def test_decimals_are_floats_or_decimals(service: Service) -> None:
    with pytest.raises(BadSettings, match='give "float" or "decimal"'):
        service.client().to_pandas(decimals="exact")  # type: ignore[arg-type]


def as_python(kind: str, decimals: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "instant":
        return datetime.fromisoformat(value)
    if kind == "decimal":
        return float(value) if decimals == "float" else Decimal(value)
    return value
