"""Whoever applies the changes has the batches."""

import json
import threading
import time

import pytest

from batchscan import BadSettings, Batch, Changes, Client, CursorRepeated, NotBatchscan, PositionGone
from scripted_service import Reply, batch, changes, error
from service import import_batches, run, start_service


def test_the_first_changes_are_every_batch(service, v1_batches):
    parts = list(service.client().changes())
    assert [len(part.batches) for part in parts] == [1000, 1000, 500]
    assert [part.more for part in parts] == [True, True, False]
    assert [batch for part in parts for batch in part.batches] == [Batch.from_json(one) for one in v1_batches]
    (current,) = service.client().changes(parts[-1].since)
    assert current == Changes((), (), parts[-1].since, more=False)


def test_a_copy_follows_imports(tmp_path):
    with start_service(tmp_path) as service, service.client() as client:
        copy: dict[str, Batch] = {}
        since = apply(client, copy, None)
        import_batches(tmp_path, [batch("a"), batch("b")])
        since = apply(client, copy, since)
        import_batches(tmp_path, [batch("b", comment="corrected late"), batch("c")])
        apply(client, copy, since)
        assert copy == {one["batch_id"]: Batch.from_json(one) for one in service.v1()}
        assert copy["b"].comment == "corrected late"


def test_wait_ends_with_the_next_import(tmp_path):
    with start_service(tmp_path) as service, service.client(timeout=(5.0, 0.5)) as client:
        since = apply(client, {}, None)
        started = time.monotonic()
        # Longer than the timeout for reading.
        assert [part.batches for part in client.changes(since, wait=2)] == [()]
        assert time.monotonic() - started > 1.9
        later = threading.Timer(1.0, import_batches, [tmp_path, [batch("a")]])
        later.start()
        (part,) = client.changes(since, wait=60)
        assert [one.batch_id for one in part.batches] == ["a"]


def test_a_position_of_a_lost_database_is_gone(tmp_path):
    lost, kept = tmp_path / "lost", tmp_path / "kept"
    for folder in (lost, kept):
        folder.mkdir()
    with start_service(lost) as service:
        import_batches(lost, [batch("a")])
        run(lost, "backup", str(kept / "batchscan.db"))
        import_batches(lost, [batch("b")])
        since = apply(service.client(), {}, None)
    with start_service(kept, service) as restored:
        with pytest.raises(PositionGone, match="cannot continue from this position .*; read everything again"):
            list(restored.client().changes(since))
        copy: dict[str, Batch] = {}
        apply(restored.client(), copy, None)
        assert list(copy) == ["a"]


def test_removed_ids_are_returned(scripted, connect):
    scripted.batches.append(changes("a", removed=["b", "c"]))
    (part,) = connect().changes("p0")
    assert ([one.batch_id for one in part.batches], part.removed) == (["a"], ("b", "c"))


def test_each_request_continues_from_the_last(scripted, connect):
    scripted.batches.extend([changes("a", since="p/1+=", more=True), changes("b", since="p2")])
    parts = connect().changes("p0", wait=5)
    assert scripted.requests == []
    assert [part.since for part in parts] == ["p/1+=", "p2"]
    assert [request.query for request in scripted.requests_to("/v2/changes")] == [
        {"since": "p0", "wait": "5"},
        {"since": "p/1+=", "wait": "5"},
    ]


def test_temporary_failures_are_retried_and_a_410_is_not(scripted, connect, clock):
    scripted.batches.extend([error(503), error(401), changes("a"), error(410, "gone")])
    client: Client = connect(clock=clock)
    assert len(list(client.changes())) == 1
    with pytest.raises(PositionGone) as caught:
        list(client.changes("p1"))
    assert not caught.value.retryable


def test_changes_that_loop_are_an_error(scripted, connect):
    scripted.batches.extend([changes(since="p1", more=True), changes(since="p1", more=True)])
    with pytest.raises(CursorRepeated, match="loop"):
        list(connect().changes())


@pytest.mark.parametrize(
    "field", [{"data": None}, {"removed": [1]}, {"removed": None}, {"since": ""}, {"since": "\ud800"}, {"more": None}]
)
def test_another_response_is_rejected(scripted, connect, field):
    document = {"data": [], "removed": [], "since": "p1", "more": False, **field}
    scripted.batches.append(Reply(200, json.dumps(document).encode()))
    with pytest.raises(NotBatchscan, match="not an object with data, removed, since and more"):
        list(connect().changes())


@pytest.mark.parametrize("wait", [-1, 61, 1.5, "1", True, None])
def test_an_invalid_wait_is_rejected(service, wait):
    with pytest.raises(BadSettings, match="wait is"):
        service.client().changes(wait=wait)


@pytest.mark.parametrize("since", ["", 7, "\ud800"])
def test_an_invalid_position_is_rejected(service, since):
    with pytest.raises(BadSettings, match="since is not a position"):
        service.client().changes(since)


def apply(client: Client, copy: dict[str, Batch], since: str | None) -> str:
    for part in client.changes(since):
        copy.update({one.batch_id: one for one in part.batches})
        for batch_id in part.removed:
            copy.pop(batch_id, None)
        since = part.since
    assert since is not None
    return since
