"""Date ranges."""

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest

from batchscan import BadRequest, BadSettings
from batchscan.date_range import date_range

CET = timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    ("bound", "as_start", "as_end"),
    [
        (datetime(2026, 1, 31, 8, tzinfo=timezone.utc), "2026-01-31T08:00:00Z", "2026-01-31T08:00:00Z"),
        (datetime(2026, 1, 31, 0, 30, tzinfo=CET), "2026-01-30T23:30:00Z", "2026-01-30T23:30:00Z"),
        (datetime(2026, 1, 31, 8, 0, 0, 5, CET), "2026-01-31T07:00:00.000005Z", "2026-01-31T07:00:00.000005Z"),
        (date(2026, 1, 31), "2026-01-31T00:00:00Z", "2026-01-31T23:59:59.999999Z"),
        ("2026-01-31", "2026-01-31T00:00:00Z", "2026-01-31T23:59:59.999999Z"),
        ("2026-01-31T08:00:00+00:00", "2026-01-31T08:00:00+00:00", "2026-01-31T08:00:00+00:00"),
        (datetime(1, 1, 1, tzinfo=timezone.utc), "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_bounds_are_written_in_utc(bound, as_start, as_end):
    assert date_range(bound, bound) == {"start_date": as_start, "end_date": as_end}


def test_an_open_end_is_not_sent():
    assert date_range(None, None) == {}


@pytest.mark.parametrize("side", ["start", "end"])
def test_a_naive_datetime_is_rejected_before_any_request(service, side):
    client = service.client()
    readers: list[Callable[..., Any]] = [client.batches, client.pages, client.to_pandas, client.to_polars]
    for read in readers:
        with pytest.raises(BadSettings, match=f"{side} is 2026-01-31 08:00:00, which has no timezone") as caught:
            read(**{side: datetime(2026, 1, 31, 8)})
        assert isinstance(caught.value, ValueError) and not caught.value.retryable


@pytest.mark.parametrize("bound", [1_770_000_000, 1.5, datetime.min.replace(tzinfo=CET)])
def test_a_bound_of_another_type_is_rejected(bound):
    with pytest.raises(BadSettings, match="start is"):
        date_range(bound, None)


def test_both_ends_are_included(service, v1_batches):
    first, last = v1_batches[100]["batch_creation_date"], v1_batches[120]["batch_creation_date"]
    read = [batch.batch_id for batch in service.client().batches(first, last)]
    assert read == [batch["batch_id"] for batch in v1_batches[100:121]]


def test_a_date_as_end_means_the_whole_day(service, v1_batches):
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
def test_a_start_after_the_end_is_rejected(service, start, end):
    with pytest.raises(BadSettings, match="start is after end") as caught:
        service.client().batches(start, end)
    assert f"{start} is later than {end};" in str(caught.value)


@pytest.mark.parametrize(
    ("start", "end"), [("tomorrow at noon", "2026-01-31"), ("2026-02-01", "2026-01-31T08:00:00")]
)
def test_other_text_is_validated_by_the_service(start, end):
    assert set(date_range(start, end)) == {"start_date", "end_date"}


@pytest.mark.parametrize("text", ["", "30d", "2026-09", "01/09/2026", "2026-02-30"])
def test_text_without_a_time_is_a_date(text):
    with pytest.raises(BadSettings, match=f"end is '{text}'; give a date such as 2026-01-31, or "):
        date_range(None, text)


def test_invalid_unicode_is_rejected():
    with pytest.raises(BadSettings, match="start is .* not valid text"):
        date_range("2026-01-31\ud800", None)


def test_a_422_contains_the_detail_of_the_service(service):
    with pytest.raises(BadRequest) as caught:
        list(service.client().batches("2026-01-31T08:00:00", "yesterday at noon"))
    assert caught.value.status == 422 and not caught.value.retryable
    assert [(error["loc"], error["type"]) for error in caught.value.detail] == [
        (["query", "start_date"], "timezone_aware"),
        (["query", "end_date"], "datetime_from_date_parsing"),
    ]
    assert "start_date: Input should have timezone info" in str(caught.value)
