"""A walk over a real service delivers everything, once, in order."""

import json
from decimal import Decimal
from typing import Any

import pytest
from conftest import Service
from scripted_service import Reply, ScriptedService, batch, page, whole

from batchscan import BadSettings, Batch, Client, CursorRepeated, NotBatchscan


def test_paging_equals_v1_exactly(service: Service, v1_batches: list[dict[str, Any]]) -> None:
    expected = [Batch.from_json(document) for document in v1_batches]
    with service.client() as client:
        assert list(client.batches()) == list(client.batches(version=1)) == expected
    assert len(expected) == 2500


def test_every_value_survives_reading(service: Service, v1_batches: list[dict[str, Any]]) -> None:
    read = [as_on_the_wire(batch) for batch in service.client().batches()]
    assert read == json.loads(json.dumps(v1_batches))


def test_pages_are_those_of_the_service(service: Service) -> None:
    pages = list(service.client().pages())
    assert [len(page.batches) for page in pages] == [1000, 1000, 500]
    assert [page.next_token is None for page in pages] == [False, False, True]
    assert [len(page.batches) for page in service.client().pages(version=1)] == [2500]


def test_a_page_is_asked_for_when_it_is_needed(scripted: ScriptedService, scripted_client: Any) -> None:
    scripted.batches.extend([page("a", next_token="c1"), page("b")])
    batches = scripted_client().batches()
    assert scripted.seen == []
    next(batches)
    assert len(scripted.asked("/v2/batches")) == 1


def test_the_window_goes_with_every_page(scripted: ScriptedService, scripted_client: Any) -> None:
    scripted.batches.extend([page("a", next_token="c/1+="), page("b", next_token="c2"), page()])
    window = {"start_date": "2026-01-01T00:00:00Z", "end_date": "2026-02-01T00:00:00Z"}
    assert [batch.batch_id for batch in scripted_client().batches(*window.values())] == ["a", "b"]
    assert [request.query for request in scripted.asked("/v2/batches")] == [
        window,
        {**window, "next_token": "c/1+="},
        {**window, "next_token": "c2"},
    ]


def test_each_version_uses_its_own_endpoints(scripted: ScriptedService, scripted_client: Any) -> None:
    scripted.batches.extend([whole("a", "b"), page("a", "b")])
    client: Client = scripted_client()
    assert list(client.batches(version=1)) == list(client.batches())
    assert [request.path for request in scripted.seen] == ["/v1/auth", "/v1/batches", "/v2/auth", "/v2/batches"]


@pytest.mark.parametrize("circle", [["c1", "c1"], ["c1", "c2", "c3", "c1"]])
def test_a_cursor_that_repeats_is_an_error(scripted: ScriptedService, scripted_client: Any, circle: list[str]) -> None:
    scripted.batches.extend(page(str(number), next_token=cursor) for number, cursor in enumerate(circle))
    with pytest.raises(CursorRepeated, match="run in a circle") as caught:
        list(scripted_client().batches())
    assert not caught.value.retryable


def test_empty_pages_without_end_are_an_error(scripted: ScriptedService, scripted_client: Any) -> None:
    scripted.batches.extend(page(next_token=f"c{number}") for number in range(1_001))
    with pytest.raises(CursorRepeated, match="1,000 pages of .* in a row are empty"):
        list(scripted_client().batches())
    assert len(scripted.asked("/v2/batches")) == 1_000


def test_only_empty_pages_in_a_row_are_counted(
    scripted: ScriptedService, scripted_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batchscan.client._EMPTY_PAGES_MAX", 2)
    scripted.batches.extend([page(next_token="c1"), page("a", next_token="c2"), page(next_token="c3"), page()])
    assert [batch.batch_id for batch in scripted_client().batches()] == ["a"]


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
def test_a_member_that_comes_twice_is_refused_and_not_asked_for_again(
    scripted: ScriptedService, scripted_client: Any, version: Any, body: str
) -> None:
    scripted.batches.append(Reply(200, body.encode()))
    with pytest.raises(NotBatchscan, match="an object in the answer has a member twice"):
        list(scripted_client().batches(version=version))


def test_a_cursor_that_is_not_valid_text_is_refused(scripted: ScriptedService, scripted_client: Any) -> None:
    scripted.batches.append(page("a", next_token="c\ud800"))
    with pytest.raises(NotBatchscan, match="its next_token is not valid text"):
        list(scripted_client().batches())


def test_unknown_fields_of_a_newer_service_are_no_error(scripted: ScriptedService, scripted_client: Any) -> None:
    scripted.batches.append(page("a", tray_colour="black"))
    (batch,) = scripted_client().batches()
    assert batch.extra == {"tray_colour": "black"}


def test_there_is_no_third_version(service: Service) -> None:
    with pytest.raises(BadSettings, match="version is 3"):
        service.client().batches(version=3)  # type: ignore[arg-type]


def as_on_the_wire(batch: Batch) -> dict[str, Any]:
    fields = {name: getattr(batch, name) for name in Batch.__slots__ if name != "extra"}
    seconds, _, fraction = batch.batch_creation_date.isoformat().removesuffix("+00:00").partition(".")
    fraction = f".{fraction.rstrip('0')}" if fraction else ""
    texts = {name: str(value) for name, value in fields.items() if isinstance(value, Decimal)}
    return {**fields, **texts, "batch_creation_date": f"{seconds}{fraction}Z"}
