"""Batches as a pandas or polars frame: one column per field, with dtypes that do not depend on the data.

Unknown fields are left out: the columns do not depend on the service's version.
"""

import importlib
from collections.abc import Iterable
from operator import attrgetter
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from batchscan.batch import KINDS, Batch
from batchscan.errors import BadSettings

if TYPE_CHECKING:
    import pandas
    import polars

Decimals = Literal["float", "decimal"]


def to_pandas(batches: Iterable[Batch], decimals: Decimals) -> "pandas.DataFrame":
    _validate(decimals)
    pd = _import("pandas")
    dtypes = {
        "text": "string",
        "instant": "datetime64[us, UTC]",
        "integer": "Int64",
        # Decimal objects are exact and, unlike an Arrow type, need no pyarrow.
        "decimal": "float64" if decimals == "float" else "object",
        "boolean": "boolean",
    }
    columns = _columns(batches, decimals)
    frame: pandas.DataFrame = pd.DataFrame(
        {name: pd.Series(columns[name], dtype=dtypes[kind]) for name, kind in KINDS.items()}
    )
    return frame


def to_polars(batches: Iterable[Batch], decimals: Decimals) -> "polars.DataFrame":
    _validate(decimals)
    pl = _import("polars")
    dtypes = {
        "text": pl.String,
        "instant": pl.Datetime("us", "UTC"),
        "integer": pl.Int64,
        "decimal": pl.Float64 if decimals == "float" else pl.Decimal(scale=2),
        "boolean": pl.Boolean,
    }
    schema = {name: dtypes[kind] for name, kind in KINDS.items()}
    frame: polars.DataFrame = pl.DataFrame(_columns(batches, decimals), schema=schema)
    return frame


def _columns(batches: Iterable[Batch], decimals: Decimals) -> dict[str, list[Any]]:
    # Row by row, so that the batches are not all in memory at once.
    columns: dict[str, list[Any]] = {name: [] for name in KINDS}
    values_of = attrgetter(*KINDS)
    appends = [column.append for column in columns.values()]
    for batch in batches:
        for append, value in zip(appends, values_of(batch)):
            append(value)
    if decimals == "float":
        for name in (name for name, kind in KINDS.items() if kind == "decimal"):
            columns[name] = [None if value is None else float(value) for value in columns[name]]
    return columns


def _validate(decimals: str) -> None:
    if decimals not in ("float", "decimal"):
        raise BadSettings(f'decimals is {decimals!r}; give "float" or "decimal"')


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
    raise ImportError(f"{name} is not installed; pip install 'batchscan[{name}]'", name=name)
