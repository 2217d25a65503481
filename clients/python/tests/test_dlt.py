"""The dlt source loads every batch once, and merges changes."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import dlt
import duckdb
import pytest
from dlt.pipeline.exceptions import PipelineStepFailed

from batchscan import BadSettings
from batchscan.batch import KINDS
from batchscan.dlt import batchscan_changes, batchscan_source
from scripted_service import ScriptedService, changes, error, page


@pytest.fixture
def pipeline(tmp_path: Path) -> dlt.Pipeline:
    return dlt.pipeline(
        "nursery",
        pipelines_dir=str(tmp_path / "pipelines"),
        destination=dlt.destinations.duckdb(str(tmp_path / "nursery.duckdb")),
        dataset_name="scans",
    )


@pytest.fixture
def rows(tmp_path: Path) -> Callable[[str], list[tuple[Any, ...]]]:
    def select(query: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(tmp_path / "nursery.duckdb"), read_only=True) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            return connection.execute(query).fetchall()

    return select


def test_the_table_equals_v1(service, v1_batches, pipeline, rows):
    pipeline.run(batchscan_source(service.url, service.client_id, service.client_secret))
    columns = ", ".join(KINDS)
    read = rows(f"SELECT {columns} FROM scans.batches ORDER BY batch_creation_date, batch_id")
    assert read == [tuple(as_loaded(kind, batch[name]) for name, kind in KINDS.items()) for batch in v1_batches]
    types = dict(rows("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'batches'"))
    assert types["avg_germination_rate"] == "DECIMAL(38,2)"
    assert types["batch_creation_date"] == "TIMESTAMP WITH TIME ZONE"
    assert types["total_cells_per_tray"] == "BIGINT" and types["warnings"] == "BOOLEAN"


def test_the_next_run_requests_and_merges_new_batches(scripted, pipeline, rows):
    scripted.batches.append(page("a", "b", tray_colour="black"))
    pipeline.run(source(scripted))
    scripted.batches.append(page("b", "c", batch_creation_date="2026-02-01T08:00:00Z", comment="corrected"))
    pipeline.run(source(scripted))
    assert [request.query for request in scripted.requests_to("/v2/batches")] == [
        {},
        {"start_date": "2026-01-31T08:00:00Z"},
    ]
    assert rows("SELECT batch_id, comment, extra FROM scans.batches ORDER BY batch_id") == [
        ("a", None, '{"tray_colour":"black"}'),
        ("b", "corrected", None),
        ("c", "corrected", None),
    ]


def test_reread_goes_back_for_corrections(scripted, pipeline, rows):
    scripted.batches.append(page("a", "b"))
    pipeline.run(source(scripted))
    scripted.batches.append(page("a", comment="corrected", batch_creation_date="2026-01-30T08:00:00Z"))
    pipeline.run(source(scripted, reread=timedelta(days=2)))
    assert scripted.requests_to("/v2/batches")[-1].query == {"start_date": "2026-01-29T08:00:00Z"}
    assert rows("SELECT comment FROM scans.batches ORDER BY batch_id") == [("corrected",), (None,)]


def test_a_date_range_includes_both_ends(service, v1_batches, pipeline, rows):
    first, last = v1_batches[10]["batch_creation_date"], v1_batches[20]["batch_creation_date"]
    pipeline.run(batchscan_source(service.url, service.client_id, service.client_secret, start=first, end=last))
    assert rows("SELECT count(*) FROM scans.batches") == [(11,)]


def test_an_end_needs_no_start(scripted):
    scripted.batches.append(page("a"))
    assert len(list(source(scripted, end=date(2026, 1, 31)))) == 1
    assert scripted.requests_to("/v2/batches")[0].query["end_date"] == "2026-01-31T23:59:59.999999Z"


def test_the_resource_merges_by_batch_id(scripted):
    table = source(scripted).batches.compute_table_schema()
    assert table["write_disposition"] == "merge"
    assert table["columns"]["batch_id"]["primary_key"] is True


def test_changes_replace_and_delete(scripted, pipeline, rows):
    scripted.batches.extend([changes("a", "b", since="p1", more=True), changes("c", "d", since="p2")])
    pipeline.run(changes_source(scripted))
    # Within one run, the last change of a batch counts.
    scripted.batches.extend(
        [
            changes("a", "d", removed=["b", "c", "unknown"], since="p3", more=True, comment="corrected"),
            changes("b", removed=["d"], since="p4"),
        ]
    )
    pipeline.run(changes_source(scripted))
    sent = [request.query for request in scripted.requests_to("/v2/changes")]
    assert sent == [{}, {"since": "p1"}, {"since": "p2"}, {"since": "p3"}]
    query = "SELECT batch_id, comment FROM scans.batches ORDER BY batch_id"
    assert rows(query) == [("a", "corrected"), ("b", None)]


def test_everything_is_loaded_again_after_a_410(scripted, pipeline, rows):
    scripted.batches.append(changes("a", "b", since="p1"))
    pipeline.run(changes_source(scripted))
    scripted.batches.append(error(410, "gone"))
    with pytest.raises(PipelineStepFailed, match="cannot continue from this position"):
        pipeline.run(changes_source(scripted))
    scripted.batches.append(changes("b", "c", since="p2"))
    pipeline.run(changes_source(scripted), refresh="drop_resources")
    assert scripted.requests_to("/v2/changes")[-1].query == {}
    assert rows("SELECT batch_id FROM scans.batches ORDER BY batch_id") == [("b",), ("c",)]


def test_credentials_come_from_the_dlt_configuration(scripted, monkeypatch):
    monkeypatch.setenv("SOURCES__BATCHSCAN__URL", scripted.url)
    monkeypatch.setenv("SOURCES__BATCHSCAN__CLIENT_ID", "bs_configured")
    monkeypatch.setenv("SOURCES__BATCHSCAN__CLIENT_SECRET", scripted.client_secret)
    scripted.batches.append(page("a"))
    assert [row["batch_id"] for row in batchscan_source()] == ["a"]
    assert scripted.requests_to("/v2/auth")[0].form["client_id"] == "bs_configured"


def test_no_file_of_the_pipeline_contains_the_secret(scripted, pipeline, tmp_path):
    scripted.batches.append(page("a"))
    pipeline.run(source(scripted))
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 1
    for path in written:
        assert scripted.client_secret.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("bound", [datetime(2026, 1, 31, 8), "yesterday"])
def test_an_invalid_start_is_rejected(scripted, bound):
    with pytest.raises(BadSettings, match="start is"):
        source(scripted, start=bound)


def test_a_start_after_the_end_is_rejected_by_the_source(scripted):
    with pytest.raises(BadSettings, match="start is after end: 2026-02-01 is later than 2026-01-31"):
        source(scripted, start=date(2026, 2, 1), end=date(2026, 1, 31))


def source(scripted: ScriptedService, **settings: Any) -> Any:
    return batchscan_source(scripted.url, "bs_scripted", scripted.client_secret, **settings)


def changes_source(scripted: ScriptedService) -> Any:
    return batchscan_changes(scripted.url, "bs_scripted", scripted.client_secret)


def as_loaded(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "instant":
        return datetime.fromisoformat(value)
    return Decimal(value) if kind == "decimal" else value
