"""dlt sources that merge batches by `batch_id`.

`batchscan_source` loads the batches created since the last run. A corrected batch keeps its creation date: `reread` goes
back that far in each run, and the merge replaces what changed. `batchscan_changes` loads what changed since the last run,
and deletes what was removed.
"""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import date, datetime, time, timedelta
from typing import Any

from batchscan.batch import KINDS, REQUIRED, Batch, Kind, parse_instant
from batchscan.client import Client
from batchscan.date_range import Bound, bound_text, date_range
from batchscan.errors import BadSettings

try:
    import dlt
except ModuleNotFoundError as _missing:
    if _missing.name != "dlt":
        raise
    raise ImportError("dlt is not installed; pip install 'batchscan[dlt]'", name="dlt") from None
from dlt.common.schema.typing import TColumnSchema
from dlt.sources import DltResource

#: dlt requires a start where there is an end. No batch is older than this.
_FIRST_DAY = date(1970, 1, 1)
_TYPES: dict[Kind, TColumnSchema] = {
    "text": {"data_type": "text"},
    "instant": {"data_type": "timestamp"},
    "integer": {"data_type": "bigint"},
    "decimal": {"data_type": "decimal", "precision": 38, "scale": 2},
    "boolean": {"data_type": "bool"},
}


@dlt.source(name="batchscan", section="batchscan")
def batchscan_source(
    url: str = dlt.config.value,
    client_id: str = dlt.config.value,
    client_secret: str = dlt.secrets.value,
    start: Any = None,
    end: Any = None,
    reread: timedelta = timedelta(0),
    retry_for: float = 120.0,
) -> DltResource:
    """The batches of the organisation that the credentials belong to, as the resource `batches`.

    dlt takes missing arguments from its own configuration (`[sources.batchscan]`). `start` and `end` are those of
    `Client.batches`; with an `end`, a run loads that date range and keeps no state.
    """
    # Validated here, because dlt would wrap an error of a running pipeline.
    date_range(start, end)
    client = Client(url, client_id, client_secret, retry_for=retry_for)
    since = dlt.sources.incremental[datetime](
        "batch_creation_date",
        initial_value=_bound("start", _FIRST_DAY if start is None and end is not None else start, time.min),
        end_value=_bound("end", end, time.max),
        # The API's date ranges include both ends.
        range_end="closed",
        lag=reread.total_seconds() or None,
    )

    @dlt.resource(name="batches", primary_key="batch_id", write_disposition="merge", columns=_columns())
    def batches(batch_creation_date: dlt.sources.incremental[datetime] = since) -> Iterator[list[dict[str, Any]]]:
        for page in client.pages(batch_creation_date.last_value, batch_creation_date.end_value):
            yield [_row(batch) for batch in page.batches]

    return batches


@dlt.source(name="batchscan", section="batchscan")
def batchscan_changes(
    url: str = dlt.config.value,
    client_id: str = dlt.config.value,
    client_secret: str = dlt.secrets.value,
    retry_for: float = 120.0,
) -> DltResource:
    """The same batches, as the resource `batches`: everything in the first run, then what changed.

    Raises `PositionGone` if everything must be loaded again: `pipeline.run(…, refresh="drop_resources")`.
    """
    client = Client(url, client_id, client_secret, retry_for=retry_for)
    columns: dict[str, TColumnSchema] = {
        # Of a removed batch, only the id is known.
        **{name: {**column, "nullable": name != "batch_id"} for name, column in _columns().items()},
        "removed": {"data_type": "bool", "hard_delete": True},
        # A batch that changes during a run is read again. The merge keeps the last.
        "read_order": {"data_type": "bigint", "dedup_sort": "desc"},
    }

    @dlt.resource(name="batches", primary_key="batch_id", write_disposition="merge", columns=columns)
    def batches() -> Iterator[list[dict[str, Any]]]:
        state = dlt.current.resource_state()
        for order, changes in enumerate(client.changes(state.get("since"))):
            changed = [{**_row(batch), "read_order": order} for batch in changes.batches]
            removed = [{"batch_id": id_, "removed": True, "read_order": order} for id_ in changes.removed]
            yield changed + removed
            # dlt stores the state together with the rows.
            state["since"] = changes.since

    return batches


def _bound(name: str, bound: Bound, time_of_day: time) -> datetime | None:
    text = bound_text(name, bound, time_of_day)
    if text is None:
        return None
    try:
        return parse_instant(text)
    except ValueError as error:
        expected = str(error)
    raise BadSettings(f"{name} is {text!r}; give {expected}")


def _columns() -> dict[str, TColumnSchema]:
    columns: dict[str, TColumnSchema] = {
        name: {**_TYPES[kind], "nullable": name not in REQUIRED} for name, kind in KINDS.items()
    }
    return {**columns, "extra": {"data_type": "json", "nullable": True}}


def _row(batch: Batch) -> dict[str, Any]:
    row = asdict(batch)
    return {**row, "extra": row["extra"] or None}
