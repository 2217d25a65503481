"""Starts and ends, as the service sees them and as it answers them."""

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest
from conftest import Service

from batchscan import BadRequest, BadSettings
from batchscan.window import Moment, window

CET = timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    ("moment", "as_start", "as_end"),
    [
        (datetime(2026, 1, 31, 8, tzinfo=timezone.utc), "2026-01-31T08:00:00Z", "2026-01-31T08:00:00Z"),
        (datetime(2026, 1, 31, 0, 30, tzinfo=CET), "2026-01-30T23:30:00Z", "2026-01-30T23:30:00Z"),
        (datetime(2026, 1, 31, 8, 0, 0, 5, CET), "2026-01-31T07:00:00.000005Z", "2026-01-31T07:00:00.000005Z"),
        (date(2026, 1, 31), "2026-01-31T00:00:00Z", "2026-01-31T23:59:59.999999Z"),
        ("2026-01-31", "2026-01-31T00:00:00Z", "2026-01-31T23:59:59.999999Z"),
        ("2026-02-30", "2026-02-30", "2026-02-30"),
        ("2026-01-31T08:00:00+00:00", "2026-01-31T08:00:00+00:00", "2026-01-31T08:00:00+00:00"),
        (datetime(1, 1, 1, tzinfo=timezone.utc), "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_a_moment_becomes_the_interface_s_text(moment: Moment, as_start: str, as_end: str) -> None:
    assert window(moment, moment) == {"start_date": as_start, "end_date": as_end}


def test_an_open_side_is_not_sent() -> None:
    assert window(None, None) == {}


@pytest.mark.parametrize("side", ["start", "end"])
def test_a_naive_datetime_is_refused_before_anything_is_asked(service: Service, side: str) -> None:
    client = service.client()
    readers: list[Callable[..., Any]] = [client.batches, client.pages, client.to_pandas, client.to_polars]
    for read in readers:
        with pytest.raises(BadSettings, match=f"{side} is 2026-01-31 08:00:00, which has no timezone") as caught:
            read(**{side: datetime(2026, 1, 31, 8)})
        assert isinstance(caught.value, ValueError) and not caught.value.retryable


@pytest.mark.parametrize("moment", [1_770_000_000, 1.5, datetime.min.replace(tzinfo=CET)])
def test_what_is_no_moment_is_refused(moment: Any) -> None:
    with pytest.raises(BadSettings, match="start is"):
        window(moment, None)


def test_both_ends_belong_to_the_window(service: Service, v1_batches: list[dict[str, Any]]) -> None:
    first, last = v1_batches[100]["batch_creation_date"], v1_batches[120]["batch_creation_date"]
    read = [batch.batch_id for batch in service.client().batches(first, last)]
    assert read == [batch["batch_id"] for batch in v1_batches[100:121]]


def test_a_date_as_end_means_the_whole_day(service: Service, v1_batches: list[dict[str, Any]]) -> None:
    day = v1_batches[1200]["batch_creation_date"][:10]
    read = [batch.batch_id for batch in service.client().batches(date.fromisoformat(day), date.fromisoformat(day))]
    assert read == [batch["batch_id"] for batch in v1_batches if batch["batch_creation_date"].startswith(day)]
    assert len(read) > 1


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (date(2026, 2, 1), date(2026, 1, 1)),
        ("2026-02-01", "2026-01-31"),
        ("2026-01-31T08:00:00Z", "2026-01-31T08:30:00+01:00"),
        (date(2026, 2, 1), "2026-01-31T08:00:00Z"),
        (datetime(2026, 1, 31, 8, tzinfo=timezone.utc), datetime(2026, 1, 31, 8, 59, tzinfo=CET)),
    ],
)
def test_a_window_that_ends_before_it_begins_is_refused(service: Service, start: Moment, end: Moment) -> None:
    with pytest.raises(BadSettings, match="the window ends before it begins") as caught:
        service.client().batches(start, end)
    assert f"from {start} to {end};" in str(caught.value)


@pytest.mark.parametrize(
    ("start", "end"), [("tomorrow", "2026-01-31"), ("2026-02-01", "2026-01-31T08:00:00"), ("", "")]
)
def test_text_that_is_no_moment_is_left_to_the_service(start: str, end: str) -> None:
    assert set(window(start, end)) == {"start_date", "end_date"}


def test_text_that_cannot_be_sent_is_refused() -> None:
    with pytest.raises(BadSettings, match="start is .* not valid text"):
        window("2026-01-31\ud800", None)


def test_text_that_the_service_refuses_comes_back_with_its_detail(service: Service) -> None:
    with pytest.raises(BadRequest) as caught:
        list(service.client().batches("2026-01-31T08:00:00", "yesterday"))
    assert caught.value.status == 422 and not caught.value.retryable
    assert [(fault["loc"], fault["type"]) for fault in caught.value.detail] == [  # type: ignore[attr-defined]
        (["query", "start_date"], "timezone_aware"),
        (["query", "end_date"], "datetime_from_date_parsing"),
    ]
    assert "start_date: Input should have timezone info" in str(caught.value)
