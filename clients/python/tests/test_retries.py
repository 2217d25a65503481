"""Retries, tokens and errors."""

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from batchscan import (
    BadRequest,
    BadSettings,
    Client,
    CredentialsRefused,
    NotBatchscan,
    Redirected,
    ServiceFailed,
    ServiceUnavailable,
    Unreachable,
    Untrusted,
)
from scripted_service import TOKENS, Reply, ScriptedService, array, error, page, token, truncated
from service import Service


def test_a_failing_service_is_read_completely(failing_service, clock):
    client = failing_service.client(clock=clock)
    for _ in range(4):
        assert sum(1 for _ in client.batches()) == 3500
    assert clock.slept and all(3 <= secs <= 5 for secs in clock.slept)


def test_the_system_clock_waits(scripted, connect):
    scripted.batches.extend([error(503, Retry_After="0"), page("a")])
    start = time.monotonic()
    assert len(list(connect(wait=(60.0, 60.0)).batches())) == 1
    assert 0.1 <= time.monotonic() - start < 60.0


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_temporary_errors_are_retried(scripted, connect, clock, status):
    scripted.batches.extend([error(status, Retry_After="7"), error(status), page("a")])
    assert len(list(connect(clock=clock).batches())) == 1
    assert clock.slept == [7.0, 4.0]


def test_the_html_error_page_of_a_proxy_is_retried(scripted, connect, clock):
    scripted.batches.extend([Reply(502, b"<h1>Bad Gateway</h1>", {"Content-Type": "text/html"}), page("a")])
    assert len(list(connect(clock=clock).batches())) == 1


@pytest.mark.parametrize(
    ("retry_after", "waited"),
    [("0", 0.1), ("Thu, 01 Jan 2026 00:00:09 GMT", 9.0), ("Wed, 01 Jan 2025 00:00:00 GMT", 0.1), ("soon", 4.0),
     (f"Thu, 01 Jan {'9' * 30} 00:00:00 GMT", 4.0), ("Thu, 01 Jan 2026 00:00:09 +" + "9" * 30, 4.0),
     ("-3", 4.0), ("", 4.0)],
)  # fmt: skip
def test_retry_after_may_be_seconds_or_a_date(scripted, connect, clock, retry_after, waited):
    headers = {"Retry_After": retry_after, "Date": "Thu, 01 Jan 2026 00:00:00 GMT"}
    scripted.batches.extend([error(503, **headers), page("a")])
    list(connect(clock=clock).batches())
    assert clock.slept == [waited]


@pytest.mark.parametrize("how", ["no response", "short body", "short chunks", "no length"])
@pytest.mark.parametrize("version", [1, 2])
def test_a_truncated_response_is_retried(scripted, connect, clock, how, version):
    good = page("a", "b") if version == 2 else array("a", "b")
    scripted.batches.extend([truncated(good, how), good])
    read = [batch.batch_id for batch in connect(clock=clock).batches(version=version)]
    assert read == ["a", "b"] and clock.slept == [4.0]


def test_a_truncated_token_response_is_retried(scripted, connect, clock):
    scripted.auth.extend([truncated(token("t"), "no length"), error(503, Retry_After="3"), token("t")])
    scripted.batches.append(page("a"))
    assert len(list(connect(clock=clock).batches())) == 1
    assert clock.slept == [4.0, 3.0]


def test_each_page_has_its_own_retry_time(scripted, connect, clock):
    scripted.batches.extend([error(503), page("a", next_token="c1"), error(503), page("b")])
    assert len(list(connect(clock=clock, retry_for=6.0).batches())) == 2


def test_retries_end(scripted, connect, clock):
    scripted.batches.extend([error(503, "the database is unreachable")] * 9)
    with pytest.raises(
        ServiceUnavailable, match=r"503 \(the database is unreachable\); gave up after 3 tries in 8 s"
    ) as caught:
        list(connect(clock=clock, retry_for=10.0).batches())
    assert caught.value.retryable and len(scripted.requests_to("/v2/batches")) == 3


def test_no_retry_time_means_one_try(scripted, connect, clock):
    scripted.batches.extend([error(503)] * 2)
    with pytest.raises(ServiceUnavailable, match="gave up after 1 try"):
        list(connect(clock=clock, retry_for=0).batches())
    assert clock.slept == []


@pytest.mark.parametrize("retry_after", ["121", "9" * 5000])
def test_a_retry_after_beyond_the_limit_gives_up_at_once(scripted, connect, clock, retry_after):
    scripted.batches.append(error(429, Retry_After=retry_after))
    with pytest.raises(ServiceUnavailable, match="asks to wait .* only 120 s are left") as caught:
        list(connect(clock=clock).batches())
    assert clock.slept == [] and caught.value.retry_after == float(retry_after)


@pytest.mark.parametrize("retry_after", ["9" * 20, "9" * 5000, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_without_a_limit_the_longest_wait_is_a_day(scripted, connect, clock, retry_after):
    headers = {"Retry_After": retry_after, "Date": "Thu, 01 Jan 2026 00:00:00 GMT"}
    scripted.batches.extend([error(503, **headers), page("a")])
    assert len(list(connect(clock=clock, retry_for=float("inf")).batches())) == 1
    assert clock.slept == [86_400.0]


@pytest.mark.parametrize("status", [101, 102, 103])
@pytest.mark.parametrize("endpoint", ["auth", "batches"])
def test_an_interim_response_is_retried(scripted, connect, clock, status, endpoint):
    stale = b'HTTP/1.1 200 OK\r\nContent-Length: 32\r\n\r\n{"data": [], "next_token": null}'
    getattr(scripted, endpoint).append(Reply(status, stale))
    scripted.batches.append(page("a"))
    assert [batch.batch_id for batch in connect(clock=clock).batches()] == ["a"]
    assert clock.slept == [4.0]


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [(400, BadRequest, False), (403, CredentialsRefused, False), (404, NotBatchscan, False),
     (405, NotBatchscan, False), (422, BadRequest, False), (500, ServiceFailed, True), (501, ServiceFailed, True)],
)  # fmt: skip
def test_permanent_errors_are_not_retried(scripted, connect, status, kind, retryable):
    scripted.batches.append(error(status, "not like this"))
    with pytest.raises(kind, match=rf"{status}|rejected the credentials") as caught:
        list(connect().batches())
    assert "(not like this)" in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.retryable is retryable and len(scripted.requests_to("/v2/batches")) == 1


def test_a_token_is_requested_at_first_use_and_reused(scripted, connect):
    scripted.batches.extend([page("a", next_token="c1"), page("b"), page("c")])
    client = connect()
    assert scripted.requests == []
    assert len(list(client.batches())) + len(list(client.batches())) == 3
    (retry_after,) = scripted.requests_to("/v2/auth")
    credentials = {"client_id": "bs_scripted", "client_secret": scripted.client_secret}
    assert retry_after.form == {"grant_type": "client_credentials", **credentials}
    assert {request.headers["Authorization"] for request in scripted.requests_to("/v2/batches")} == {
        f"Bearer {TOKENS}1"
    }


@pytest.mark.parametrize(
    ("expires_in", "renewed_after"), [(3600, 3540), ("3600", 3540), (100, 90), (10, 9), (None, None), ("soon", None)]
)
def test_a_token_is_renewed_before_it_expires(scripted, connect, clock, expires_in, renewed_after):
    scripted.auth.append(token("first", expires_in=expires_in))
    scripted.batches.extend([page("a")] * 3)
    client = connect(clock=clock)
    for secs in (0, (renewed_after or 10**6) - 1, 1):
        clock.now += secs
        list(client.batches())
    sent = [request.headers["Authorization"] for request in scripted.requests_to("/v2/batches")]
    assert sent == ["Bearer first"] * 2 + [f"Bearer {TOKENS}1" if renewed_after else "Bearer first"]


def test_a_token_that_expires_while_waiting_is_renewed(scripted, connect, clock):
    scripted.auth.append(token("first", expires_in=5))
    scripted.batches.extend([error(503, Retry_After="5"), page("a")])
    list(connect(clock=clock).batches())
    assert scripted.requests_to("/v2/batches")[-1].headers["Authorization"] == f"Bearer {TOKENS}1"


def test_a_rejected_token_is_renewed_once(scripted, connect):
    scripted.batches.extend([error(401), page("a", next_token="c1"), error(401), page("b")])
    assert len(list(connect().batches())) == 2
    assert len(scripted.requests_to("/v2/auth")) == 3


def test_a_second_rejection_is_an_error(scripted, connect):
    scripted.batches.extend([error(401, "not you")] * 3)
    with pytest.raises(
        CredentialsRefused, match=r"rejected the credentials \(not you\); check the client id and secret"
    ):
        list(connect().batches())
    assert len(scripted.requests_to("/v2/batches")) == 2


def test_a_wrong_secret_fails_without_a_retry(service, caplog):
    caplog.set_level(logging.INFO, "batchscan")
    wrong = type(service)(service.url, service.client_id, "wrong-secret-42")
    with pytest.raises(CredentialsRefused, match="rejected the credentials") as caught:
        list(wrong.client().batches())
    assert not caught.value.retryable and not caplog.records


def test_a_redirect_is_not_followed(scripted, connect):
    scripted.auth.append(Reply(307, b"", {"Location": "http://[elsewhere"}))
    with pytest.raises(Redirected, match=r"redirects to http://\[elsewhere; use that URL") as caught:
        list(connect().batches())
    assert caught.value.target == "http://[elsewhere" and len(scripted.requests) == 1


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
def test_a_response_that_is_not_of_the_api_is_rejected(scripted, connect, reply):
    scripted.batches.append(reply)
    with pytest.raises(NotBatchscan) as caught:
        list(connect().batches())
    assert not caught.value.retryable and len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("body", [b"{}", b'{"access_token": 7}', b'{"access_token": ""}', b'{"access_token": "a\\nb"}'])
def test_a_response_without_a_valid_token_is_rejected(scripted, connect, body):
    scripted.auth.append(Reply(200, body))
    with pytest.raises(NotBatchscan, match="has no access_token"):
        list(connect().batches())


def test_a_response_that_is_too_large_is_rejected(scripted, connect, monkeypatch):
    monkeypatch.setattr("batchscan.client._PAGE_BODY_MAX_BYTES", 100)
    scripted.batches.append(page("a", "b"))
    with pytest.raises(NotBatchscan, match="returned more than"):
        list(connect().batches())


def test_connection_refused_fails_without_a_retry():
    with socket.create_server(("127.0.0.1", 0)) as closed_soon:
        url = "http://127.0.0.1:%d" % closed_soon.getsockname()[1]
    with pytest.raises(Unreachable, match=f"cannot connect to {url}: Connection refused; check the URL") as caught:
        list(Client(url, "bs_x", "secret").batches())
    assert caught.value.retryable


def test_an_unknown_host_fails_without_a_retry(monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    # No name server is queried: tests stay on this machine.
    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(Unreachable, match="host name not found"):
        list(Client("http://scans.invalid", "bs_x", "secret").batches())


def test_a_server_that_does_not_speak_http_is_named():
    with raw_server(b"SSH-2.0-OpenSSH_9.6\r\n") as url:
        with pytest.raises(NotBatchscan, match="does not speak HTTP; check the port"):
            list(Client(url, "bs_x", "secret").batches())


def test_a_silent_server_times_out(clock):
    with raw_server(b"") as url:
        client = Client(url, "bs_x", "secret", timeout=(1.0, 0.05), clock=clock, retry_for=5.0)
        with pytest.raises(ServiceUnavailable, match="failed: timed out waiting for a response; gave up after 2 tries"):
            list(client.batches())


def test_http_instead_of_tls_fails_without_a_retry(service):
    plain = type(service)(service.url.replace("http:", "https:"), "bs_x", "secret")
    with pytest.raises(Untrusted, match="TLS error with https://"):
        list(plain.client().batches())


def test_a_connection_lost_after_the_first_response_is_retried(clock):
    with ScriptedService() as gone:
        gone.batches.append(page("a", next_token="c1"))
        client = Service(gone.url, "bs_scripted", "secret").client(clock=clock, retry_for=9.0)
        batches = client.batches()
        next(batches)
    client.close()
    with pytest.raises(ServiceUnavailable, match="failed: .* gave up after 3 tries"):
        next(batches)


def test_a_retry_is_logged(scripted, connect, clock, caplog):
    caplog.set_level(logging.INFO, "batchscan")
    scripted.batches.extend([error(503, "busy"), page("a")])
    list(connect(clock=clock).batches())
    assert [record.getMessage() for record in caplog.records] == [
        f"{scripted.url}/v2/batches returned 503 (busy); retrying in 4.0 s"
    ]


@pytest.mark.parametrize(
    "settings", [{"retry_for": -1}, {"wait": (5.0, 3.0)}, {"wait": (-1.0, 3.0)}, {"retry_for": float("nan")}]
)
def test_invalid_retry_settings_are_rejected(service, settings):
    with pytest.raises(BadSettings, match="out of range"):
        service.client(**settings)


@contextmanager
def raw_server(greeting: bytes) -> Iterator[str]:
    """Sends a greeting to every connection, and nothing else."""
    connections: list[socket.socket] = []

    def greet() -> None:
        with suppress(OSError):
            while True:
                connections.append(listener.accept()[0])
                connections[-1].sendall(greeting)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=greet, daemon=True).start()
        yield "http://127.0.0.1:%d" % listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    for connection in connections:
        connection.close()
