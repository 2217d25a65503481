"""What is tried again, for how long, and what is not."""

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from conftest import Service
from scripted_service import TOKENS, Reply, ScriptedService, SetClock, broken, fault, page, token, whole

from batchscan import (
    BadRequest,
    BadSettings,
    BatchscanError,
    Client,
    CredentialsRefused,
    NotBatchscan,
    Redirected,
    ServiceFailed,
    ServiceUnavailable,
    Unreachable,
    Untrusted,
)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


def test_a_walk_outlasts_a_service_that_fails_every_other_time(failing_service: Service) -> None:
    clock = SetClock()
    client = failing_service.client(clock=clock)
    for _ in range(6):
        assert sum(1 for _ in client.batches()) == 1500
    assert clock.slept and all(3 <= secs <= 5 for secs in clock.slept)


def test_retry_after_is_waited_for_in_real_time(scripted: ScriptedService, scripted_client: Any) -> None:
    scripted.batches.extend([fault(503, Retry_After="1"), page("a")])
    began = time.monotonic()
    assert len(list(scripted_client(wait=(60.0, 60.0)).batches())) == 1
    assert 1.0 <= time.monotonic() - began < 5.0


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_passing_trouble_is_tried_again(
    scripted: ScriptedService, scripted_client: Any, clock: SetClock, status: int
) -> None:
    scripted.batches.extend([fault(status, Retry_After="7"), fault(status), page("a")])
    assert len(list(scripted_client(clock=clock).batches())) == 1
    assert clock.slept == [7.0, 4.0]


def test_a_proxy_s_web_page_is_no_reason_to_give_up(
    scripted: ScriptedService, scripted_client: Any, clock: SetClock
) -> None:
    scripted.batches.extend([Reply(502, b"<h1>Bad Gateway</h1>", {"Content-Type": "text/html"}), page("a")])
    assert len(list(scripted_client(clock=clock).batches())) == 1


@pytest.mark.parametrize(
    ("retry_after", "waited"),
    [("0", 0.1), ("Thu, 01 Jan 2026 00:00:09 GMT", 9.0), ("Wed, 01 Jan 2025 00:00:00 GMT", 0.1), ("soon", 4.0),
     (f"Thu, 01 Jan {'9' * 30} 00:00:00 GMT", 4.0), ("Thu, 01 Jan 2026 00:00:09 +" + "9" * 30, 4.0),
     ("-3", 4.0), ("", 4.0)],
)  # fmt: skip
def test_retry_after_is_read_in_both_forms(
    scripted: ScriptedService, scripted_client: Any, clock: SetClock, retry_after: str, waited: float
) -> None:
    headers = {"Retry_After": retry_after, "Date": "Thu, 01 Jan 2026 00:00:00 GMT"}
    scripted.batches.extend([fault(503, **headers), page("a")])
    list(scripted_client(clock=clock).batches())
    assert clock.slept == [waited]


@pytest.mark.parametrize("how", ["silence", "short body", "short chunks", "no length"])
@pytest.mark.parametrize("version", [1, 2])
def test_a_cut_answer_is_never_taken_for_a_whole_one(
    scripted: ScriptedService, scripted_client: Any, clock: SetClock, how: Any, version: Any
) -> None:
    good = page("a", "b") if version == 2 else whole("a", "b")
    scripted.batches.extend([broken(good, how), good])
    read = [batch.batch_id for batch in scripted_client(clock=clock).batches(version=version)]
    assert read == ["a", "b"] and clock.slept == [4.0]


def test_a_cut_token_answer_is_tried_again(scripted: ScriptedService, scripted_client: Any, clock: SetClock) -> None:
    scripted.auth.extend([broken(token("t"), "no length"), fault(503, Retry_After="3"), token("t")])
    scripted.batches.append(page("a"))
    assert len(list(scripted_client(clock=clock).batches())) == 1
    assert clock.slept == [4.0, 3.0]


def test_each_page_has_its_own_patience(scripted: ScriptedService, scripted_client: Any, clock: SetClock) -> None:
    scripted.batches.extend([fault(503), page("a", next_token="c1"), fault(503), page("b")])
    assert len(list(scripted_client(clock=clock, retry_for=6.0).batches())) == 2


def test_patience_ends(scripted: ScriptedService, scripted_client: Any, clock: SetClock) -> None:
    scripted.batches.extend([fault(503, "the store is away")] * 9)
    with pytest.raises(ServiceUnavailable, match=r"503 \(the store is away\); gave up after 3 tries in 8 s") as caught:
        list(scripted_client(clock=clock, retry_for=10.0).batches())
    assert caught.value.retryable and len(scripted.asked("/v2/batches")) == 3


def test_no_patience_means_one_try(scripted: ScriptedService, scripted_client: Any, clock: SetClock) -> None:
    scripted.batches.extend([fault(503)] * 2)
    with pytest.raises(ServiceUnavailable, match="gave up after 1 try"):
        list(scripted_client(clock=clock, retry_for=0).batches())
    assert clock.slept == []


@pytest.mark.parametrize("asked", ["121", "9" * 5000])
def test_a_retry_after_beyond_the_limit_gives_up_at_once(
    scripted: ScriptedService, scripted_client: Any, clock: SetClock, asked: str
) -> None:
    scripted.batches.append(fault(429, Retry_After=asked))
    with pytest.raises(ServiceUnavailable, match="asks to wait .* longer than the 120 s that are left") as caught:
        list(scripted_client(clock=clock).batches())
    assert clock.slept == [] and caught.value.retry_after == float(asked)


@pytest.mark.parametrize("asked", ["9" * 20, "9" * 5000, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_without_a_limit_the_longest_wait_is_a_day(
    scripted: ScriptedService, scripted_client: Any, clock: SetClock, asked: str
) -> None:
    headers = {"Retry_After": asked, "Date": "Thu, 01 Jan 2026 00:00:00 GMT"}
    scripted.batches.extend([fault(503, **headers), page("a")])
    assert len(list(scripted_client(clock=clock, retry_for=float("inf")).batches())) == 1
    assert clock.slept == [86_400.0]


@pytest.mark.parametrize("status", [101, 102, 103])
@pytest.mark.parametrize("endpoint", ["auth", "batches"])
def test_an_interim_answer_is_not_taken_for_the_answer(
    scripted: ScriptedService, scripted_client: Any, clock: SetClock, status: int, endpoint: str
) -> None:
    stale = b'HTTP/1.1 200 OK\r\nContent-Length: 32\r\n\r\n{"data": [], "next_token": null}'
    getattr(scripted, endpoint).append(Reply(status, stale))
    scripted.batches.append(page("a"))
    assert [batch.batch_id for batch in scripted_client(clock=clock).batches()] == ["a"]
    assert clock.slept == [4.0]


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [(400, BadRequest, False), (403, CredentialsRefused, False), (404, NotBatchscan, False),
     (405, NotBatchscan, False), (422, BadRequest, False), (500, ServiceFailed, True), (501, ServiceFailed, True)],
)  # fmt: skip
def test_what_asking_again_would_not_change_is_asked_once(
    scripted: ScriptedService, scripted_client: Any, status: int, kind: type[BatchscanError], retryable: bool
) -> None:
    scripted.batches.append(fault(status, "not like this"))
    with pytest.raises(kind, match=rf"{status}|refused the credentials") as caught:
        list(scripted_client().batches())
    assert "(not like this)" in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.retryable is retryable and len(scripted.asked("/v2/batches")) == 1


def test_a_token_is_got_at_first_use_and_kept(scripted: ScriptedService, scripted_client: Any) -> None:
    scripted.batches.extend([page("a", next_token="c1"), page("b"), page("c")])
    client = scripted_client()
    assert scripted.seen == []
    assert len(list(client.batches())) + len(list(client.batches())) == 3
    (asked,) = scripted.asked("/v2/auth")
    credentials = {"client_id": "bs_scripted", "client_secret": scripted.client_secret}
    assert asked.form == {"grant_type": "client_credentials", **credentials}
    assert {request.headers["Authorization"] for request in scripted.asked("/v2/batches")} == {f"Bearer {TOKENS}1"}


@pytest.mark.parametrize(
    ("expires_in", "good_for"), [(3600, 3540), ("3600", 3540), (100, 90), (10, 9), (None, None), ("soon", None)]
)
def test_a_token_is_renewed_before_it_expires(
    scripted: ScriptedService, scripted_client: Any, clock: SetClock, expires_in: object, good_for: int | None
) -> None:
    scripted.auth.append(token("first", expires_in=expires_in))
    scripted.batches.extend([page("a")] * 3)
    client = scripted_client(clock=clock)
    for passed in (0, (good_for or 10**6) - 1, 1):
        clock.now += passed
        list(client.batches())
    sent = [request.headers["Authorization"] for request in scripted.asked("/v2/batches")]
    assert sent == ["Bearer first"] * 2 + [f"Bearer {TOKENS}1" if good_for else "Bearer first"]


def test_a_token_that_expires_while_waiting_is_renewed(
    scripted: ScriptedService, scripted_client: Any, clock: SetClock
) -> None:
    scripted.auth.append(token("first", expires_in=5))
    scripted.batches.extend([fault(503, Retry_After="5"), page("a")])
    list(scripted_client(clock=clock).batches())
    assert scripted.asked("/v2/batches")[-1].headers["Authorization"] == f"Bearer {TOKENS}1"


def test_a_refused_token_is_renewed_once(scripted: ScriptedService, scripted_client: Any) -> None:
    scripted.batches.extend([fault(401), page("a", next_token="c1"), fault(401), page("b")])
    assert len(list(scripted_client().batches())) == 2
    assert len(scripted.asked("/v2/auth")) == 3


def test_a_new_token_that_is_refused_too_ends_it(scripted: ScriptedService, scripted_client: Any) -> None:
    scripted.batches.extend([fault(401, "not you")] * 3)
    with pytest.raises(CredentialsRefused, match=r"refused the credentials \(not you\); check client id and secret"):
        list(scripted_client().batches())
    assert len(scripted.asked("/v2/batches")) == 2


def test_a_wrong_secret_is_refused_at_once(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "batchscan")
    wrong = type(service)(service.url, service.client_id, "wrong-secret-42")
    with pytest.raises(CredentialsRefused, match="The client_id or client_secret is wrong") as caught:
        list(wrong.client().batches())
    assert not caught.value.retryable and not caplog.records


def test_a_redirect_is_not_followed(scripted: ScriptedService, scripted_client: Any) -> None:
    scripted.auth.append(Reply(307, b"", {"Location": "http://[elsewhere"}))
    with pytest.raises(Redirected, match=r"redirects to http://\[elsewhere; use that address") as caught:
        list(scripted_client().batches())
    assert caught.value.target == "http://[elsewhere" and len(scripted.seen) == 1


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, b"<html><body>Welcome</body></html>", {"Content-Type": "text/html"}),
        Reply(200, b"<html></html>", {"Content-Type": "application/json"}),
        Reply(200, b"", {"Content-Type": "text/plain"}),
        Reply(200, b"null"),
        Reply(200, b"[]"),
        Reply(200, b'{"data": []}'),
        Reply(200, b'{"data": {}, "next_token": null}'),
        Reply(200, b'{"data": [], "next_token": 7}'),
        Reply(200, b'{"data": [{}], "next_token": null}'),
        Reply(200, b'"' + b"\xff" + b'"'),
        Reply(201, b'{"data": [], "next_token": null}'),
        Reply(418, b"teapot"),
    ],
)
def test_a_server_that_is_something_else_is_told_so(
    scripted: ScriptedService, scripted_client: Any, reply: Reply
) -> None:
    scripted.batches.append(reply)
    with pytest.raises(NotBatchscan) as caught:
        list(scripted_client().batches())
    assert not caught.value.retryable and len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("body", [b"{}", b'{"access_token": 7}', b'{"access_token": ""}', b'{"access_token": "a\\nb"}'])
def test_an_answer_without_a_usable_token_is_no_token(
    scripted: ScriptedService, scripted_client: Any, body: bytes
) -> None:
    scripted.auth.append(Reply(200, body))
    with pytest.raises(NotBatchscan, match="no access_token"):
        list(scripted_client().batches())


def test_an_endless_answer_is_cut_off(
    scripted: ScriptedService, scripted_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batchscan.client._PAGE_BODY_MAX_BYTES", 100)
    scripted.batches.append(page("a", "b"))
    with pytest.raises(NotBatchscan, match="answers with more than"):
        list(scripted_client().batches())


def test_nobody_at_the_address_fails_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed_soon:
        url = "http://127.0.0.1:%d" % closed_soon.getsockname()[1]
    with pytest.raises(Unreachable, match=f"cannot reach {url}: Connection refused; check the address") as caught:
        list(Client(url, "bs_x", "secret").batches())
    assert caught.value.retryable


def test_an_unknown_host_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody_knows(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    # The name server is not asked: tests stay on this machine.
    monkeypatch.setattr(socket, "getaddrinfo", nobody_knows)
    with pytest.raises(Unreachable, match="no host of that name is known"):
        list(Client("http://scans.invalid", "bs_x", "secret").batches())


def test_a_server_that_speaks_no_http_is_told_so() -> None:
    with raw_server(b"SSH-2.0-OpenSSH_9.6\r\n") as url:
        with pytest.raises(NotBatchscan, match="does not speak HTTP; check the port, and http against https"):
            list(Client(url, "bs_x", "secret").batches())


def test_a_server_that_says_nothing_is_given_up_in_the_end(clock: SetClock) -> None:
    with raw_server(b"") as url:
        client = Client(url, "bs_x", "secret", timeout=(1.0, 0.05), clock=clock, retry_for=5.0)
        with pytest.raises(ServiceUnavailable, match="broke: no answer in time; gave up after 2 tries"):
            list(client.batches())


def test_http_where_tls_was_expected_fails_at_once(service: Service) -> None:
    plain = type(service)(service.url.replace("http:", "https:"), "bs_x", "secret")
    with pytest.raises(Untrusted, match="cannot trust https://"):
        list(plain.client().batches())


def test_a_connection_lost_after_the_first_contact_is_tried_again(clock: SetClock) -> None:
    with ScriptedService() as gone:
        gone.batches.append(page("a", next_token="c1"))
        client = Service(gone.url, "bs_scripted", "secret").client(clock=clock, retry_for=9.0)
        batches = client.batches()
        next(batches)
    client.close()
    with pytest.raises(ServiceUnavailable, match="broke: .* gave up after 3 tries"):
        next(batches)


def test_a_retry_is_logged(
    scripted: ScriptedService, scripted_client: Any, clock: SetClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "batchscan")
    scripted.batches.extend([fault(503, "busy"), page("a")])
    list(scripted_client(clock=clock).batches())
    assert [record.getMessage() for record in caplog.records] == [
        f"{scripted.url}/v2/batches answered 503 (busy); trying again in 4.0 s"
    ]


@pytest.mark.parametrize(
    "settings", [{"retry_for": -1}, {"wait": (5.0, 3.0)}, {"wait": (-1.0, 3.0)}, {"retry_for": float("nan")}]
)
def test_rules_that_cannot_be_kept_are_refused(service: Service, settings: dict[str, Any]) -> None:
    with pytest.raises(BadSettings, match="cannot be kept"):
        service.client(**settings)


@contextmanager
def raw_server(greeting: bytes) -> Iterator[str]:
    """Greets whoever connects, and says nothing more."""
    kept: list[socket.socket] = []

    def greet() -> None:
        with suppress(OSError):
            while True:
                kept.append(listener.accept()[0])
                kept[-1].sendall(greeting)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=greet, daemon=True).start()
        yield "http://127.0.0.1:%d" % listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    for connection in kept:
        connection.close()
