"""Frames contain the values of v1, with the right dtypes."""

import sys
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pytest

from batchscan import BadSettings
from batchscan.batch import KINDS

EMPTY = (date(1999, 1, 1), date(1999, 1, 2))


@pytest.mark.parametrize("decimals", ["float", "decimal"])
@pytest.mark.parametrize("dates", [(None, None), EMPTY])
def test_pandas_dtypes_do_not_depend_on_the_data(service, decimals, dates):
    frame = service.client().to_pandas(*dates, decimals=decimals)
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
    assert list(frame.columns) == list(KINDS) and len(frame) == (0 if dates is EMPTY else 2500)


@pytest.mark.parametrize("decimals", ["float", "decimal"])
@pytest.mark.parametrize("dates", [(None, None), EMPTY])
def test_polars_dtypes_do_not_depend_on_the_data(service, decimals, dates):
    frame = service.client().to_polars(*dates, decimals=decimals)
    expected = {
        "text": pl.String(),
        "instant": pl.Datetime("us", "UTC"),
        "integer": pl.Int64(),
        "decimal": pl.Float64() if decimals == "float" else pl.Decimal(precision=38, scale=2),
        "boolean": pl.Boolean(),
    }
    assert dict(frame.schema) == {name: expected[kind] for name, kind in KINDS.items()}
    assert frame.height == (0 if dates is EMPTY else 2500)


@pytest.mark.parametrize("decimals", ["float", "decimal"])
def test_pandas_equals_v1(service, v1_batches, decimals):
    frame = service.client().to_pandas(decimals=decimals)
    for name, kind in KINDS.items():
        read = [None if pd.isna(value) else value for value in frame[name]]
        assert read == [as_python(kind, decimals, batch[name]) for batch in v1_batches], name


@pytest.mark.parametrize("decimals", ["float", "decimal"])
def test_polars_equals_v1(service, v1_batches, decimals):
    frame = service.client().to_polars(decimals=decimals)
    for name, kind in KINDS.items():
        assert frame[name].to_list() == [as_python(kind, decimals, batch[name]) for batch in v1_batches], name


def test_a_frame_survives_a_parquet_file(service, tmp_path):
    frame = service.client().to_polars(decimals="decimal")
    frame.write_parquet(tmp_path / "batches.parquet")
    assert pl.read_parquet(tmp_path / "batches.parquet").equals(frame)
    pandas_frame = service.client().to_pandas()
    pandas_frame.to_parquet(tmp_path / "pandas.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "pandas.parquet"), pandas_frame)


def test_a_frame_can_be_written_to_excel(service, tmp_path):
    frame = service.client().to_pandas(end=date(2026, 1, 31)).head(20)
    # As in the README.
    naive = frame.assign(batch_creation_date=frame.batch_creation_date.dt.tz_localize(None))
    naive.to_excel(tmp_path / "batches.xlsx", index=False)
    back = pd.read_excel(tmp_path / "batches.xlsx")
    assert list(back["avg_germination_rate"]) == list(frame["avg_germination_rate"])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_error_of_a_missing_library_names_the_extra(service, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"{library} is not installed; pip install 'batchscan\[{library}\]'"):
        getattr(service.client(), f"to_{library}")()


def test_another_type_of_decimals_is_rejected(service):
    with pytest.raises(BadSettings, match='give "float" or "decimal"'):
        service.client().to_pandas(decimals="exact")


def as_python(kind: str, decimals: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "instant":
        return datetime.fromisoformat(value)
    if kind == "decimal":
        return float(value) if decimals == "float" else Decimal(value)
    return value
