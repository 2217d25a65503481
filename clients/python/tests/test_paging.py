"""Pagination returns every batch once, in order."""

import json
from decimal import Decimal
from typing import Any

import pytest

from batchscan import BadSettings, Batch, Client, CursorRepeated, NotBatchscan
from scripted_service import Reply, array, batch, page


def test_v2_and_v1_return_the_same_batches(service, v1_batches):
    expected = [Batch.from_json(document) for document in v1_batches]
    with service.client() as client:
        assert list(client.batches()) == list(client.batches(version=1)) == expected
    assert len(expected) == 2500


def test_every_value_survives_parsing(service, v1_batches):
    read = [to_json(batch) for batch in service.client().batches()]
    assert read == json.loads(json.dumps(v1_batches))


def test_one_batch_is_read_by_its_id(service, v1_batches, scripted, connect):
    client = service.client()
    expected = Batch.from_json(v1_batches[7])
    assert client.batch(expected.batch_id) == expected
    assert client.batch("no such/id?") is None
    with pytest.raises(BadSettings):
        client.batch("")
    scripted.batches.append(Reply(404, b"<html>"))
    with pytest.raises(NotBatchscan):
        connect().batch("a")


def test_pages_are_those_of_the_service(service):
    pages = list(service.client().pages())
    assert [len(page.batches) for page in pages] == [1000, 1000, 500]
    assert [page.next_token is None for page in pages] == [False, False, True]
    assert [len(page.batches) for page in service.client().pages(version=1)] == [2500]


def test_pages_are_requested_as_needed(scripted, connect):
    scripted.batches.extend([page("a", next_token="c1"), page("b")])
    batches = connect().batches()
    assert scripted.requests == []
    next(batches)
    assert len(scripted.requests_to("/v2/batches")) == 1


def test_every_page_is_requested_with_the_date_range(scripted, connect):
    scripted.batches.extend([page("a", next_token="c/1+="), page("b", next_token="c2"), page()])
    dates = {"start_date": "2026-01-01T00:00:00Z", "end_date": "2026-02-01T00:00:00Z"}
    assert [batch.batch_id for batch in connect().batches(*dates.values())] == ["a", "b"]
    assert [request.query for request in scripted.requests_to("/v2/batches")] == [
        dates,
        {**dates, "next_token": "c/1+="},
        {**dates, "next_token": "c2"},
    ]


def test_each_version_uses_its_own_endpoints(scripted, connect):
    scripted.batches.extend([array("a", "b"), page("a", "b")])
    client: Client = connect()
    assert list(client.batches(version=1)) == list(client.batches())
    assert [request.path for request in scripted.requests] == ["/v1/auth", "/v1/batches", "/v2/auth", "/v2/batches"]


@pytest.mark.parametrize("cursors", [["c1", "c1"], ["c1", "c2", "c3", "c1"]])
def test_a_repeated_cursor_is_an_error(scripted, connect, cursors):
    scripted.batches.extend(page(str(number), next_token=cursor) for number, cursor in enumerate(cursors))
    with pytest.raises(CursorRepeated, match="loops") as caught:
        list(connect().batches())
    assert not caught.value.retryable


def test_too_many_empty_pages_are_an_error(scripted, connect, monkeypatch):
    monkeypatch.setattr("batchscan.client._EMPTY_PAGES_MAX", 3)
    scripted.batches.extend(page(next_token=f"c{number}") for number in range(4))
    with pytest.raises(CursorRepeated, match="3 empty pages in a row"):
        list(connect().batches())
    assert len(scripted.requests_to("/v2/batches")) == 3


def test_only_consecutive_empty_pages_count(scripted, connect, monkeypatch):
    monkeypatch.setattr("batchscan.client._EMPTY_PAGES_MAX", 2)
    scripted.batches.extend([page(next_token="c1"), page("a", next_token="c2"), page(next_token="c3"), page()])
    assert [batch.batch_id for batch in connect().batches()] == ["a"]


BATCH = json.dumps(batch("a"))


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (2, f'{{"data": [{BATCH}], "data": [], "next_token": null}}'),
        (2, '{"data": [], "next_token": "c1", "next_token": null}'),
        (2, f'{{"data": [{BATCH[:-1]}, "warnings": true}}], "next_token": null}}'),
        (1, f'[{BATCH[:-1]}, "w\\u0061rnings": true}}]'),
    ],
)
def test_a_duplicate_json_field_is_rejected_without_a_retry(scripted, connect, version, body):
    scripted.batches.append(Reply(200, body.encode()))
    with pytest.raises(NotBatchscan, match="duplicate field in a JSON object"):
        list(connect().batches(version=version))


def test_a_cursor_that_is_not_valid_text_is_rejected(scripted, connect):
    scripted.batches.append(page("a", next_token="c\ud800"))
    with pytest.raises(NotBatchscan, match="next_token is not valid text"):
        list(connect().batches())


def test_unknown_fields_of_a_newer_service_are_accepted(scripted, connect):
    scripted.batches.append(page("a", tray_colour="black"))
    (batch,) = connect().batches()
    assert batch.extra == {"tray_colour": "black"}


def test_an_unknown_version_is_rejected(service):
    with pytest.raises(BadSettings, match="version is 3"):
        service.client().batches(version=3)


def to_json(batch: Batch) -> dict[str, Any]:
    fields = {name: getattr(batch, name) for name in Batch.__slots__ if name != "extra"}
    seconds, _, fraction = batch.batch_creation_date.isoformat().removesuffix("+00:00").partition(".")
    fraction = f".{fraction.rstrip('0')}" if fraction else ""
    texts = {name: str(value) for name, value in fields.items() if isinstance(value, Decimal)}
    return {**fields, **texts, "batch_creation_date": f"{seconds}{fraction}Z"}
