"""An HTTP server with scripted responses, and a clock that tests can set."""

import json
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

TOKENS = "scripted-token-"


@dataclass(frozen=True)
class Reply:
    """One response. `truncated` says how it is incomplete."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    truncated: Literal["no response", "short body", "short chunks", "no length"] | None = None


@dataclass(frozen=True)
class Request:
    """One request."""

    method: str
    path: str
    query: Mapping[str, str]
    form: Mapping[str, str]
    headers: Mapping[str, str]


class ScriptedService:
    """Returns numbered tokens, and the scripted responses for batches."""

    client_secret = "scripted-secret-K7"

    def __init__(self) -> None:
        self.auth: deque[Reply] = deque()
        self.batches: deque[Reply] = deque()
        self.requests: list[Request] = []
        self._tokens = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "ScriptedService":
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def requests_to(self, path: str) -> list[Request]:
        return [request for request in self.requests if request.path == path]

    def reply_to(self, request: Request) -> Reply:
        self.requests.append(request)
        if request.path.endswith("/auth"):
            return self.auth.popleft() if self.auth else self._token()
        return self.batches.popleft() if self.batches else error(418, "end of script")

    def _token(self) -> Reply:
        self._tokens += 1
        return token(f"{TOKENS}{self._tokens}", expires_in=3600)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Header and body in one packet.
            wbufsize = -1

            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length", "0"))
                form = dict(parse_qsl(self.rfile.read(length).decode()))
                parts = urlsplit(self.path)
                query = dict(parse_qsl(parts.query, keep_blank_values=True))
                _send(self, service.reply_to(Request(self.command, parts.path, query, form, dict(self.headers))))

            do_POST = do_GET

            def log_message(self, *_: object) -> None:
                pass

        return Handler


class FakeClock:
    """Time that passes only in `sleep`; random numbers are always the middle."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, secs: float) -> None:
        self.slept.append(secs)
        self.now += secs

    def uniform(self, low: float, high: float) -> float:
        return (low + high) / 2


def token(text: str, **fields: object) -> Reply:
    return _json(200, {"access_token": text, "token_type": "bearer", **fields})


def page(*batch_ids: str, next_token: str | None = None, **fields: object) -> Reply:
    return _json(200, {"data": [batch(name, **fields) for name in batch_ids], "next_token": next_token})


def changes(
    *batch_ids: str, removed: Sequence[str] = (), since: str = "p1", more: bool = False, **fields: object
) -> Reply:
    data = [batch(name, **fields) for name in batch_ids]
    return _json(200, {"data": data, "removed": list(removed), "since": since, "more": more})


def array(*batch_ids: str) -> Reply:
    return _json(200, [batch(name) for name in batch_ids])


def error(status: int, detail: object = "no", **headers: str) -> Reply:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return _json(status, {"detail": detail}, named)


def truncated(reply: Reply, how: Literal["no response", "short body", "short chunks", "no length"]) -> Reply:
    return Reply(reply.status, reply.body, reply.headers, how)


def batch(batch_id: str, **fields: object) -> dict[str, Any]:
    decimals = {
        "avg_germinated_seedlings": "118.40",
        "avg_non_germinated_seedlings": "9.60",
        "avg_germination_rate": "92.50",
        "avg_usable_seedlings": "110.00",
        "avg_non_usable_cells": "18.00",
        "avg_usable_seedling_rate": "85.94",
        "avg_coefficient_of_variation": "14.02",
        "avg_median_seedling_size_mm2": None,
    }
    return {
        "batch_id": batch_id,
        "batch_name": f"Roma {batch_id}",
        "batch_creation_date": "2026-01-31T08:00:00Z",
        "crop_type": "Tomato 'Roma'",
        "number_of_images": 12,
        "total_cells_per_tray": 128,
        **decimals,
        "scanned_by_email": None,
        "analysis_link": "https://scans.example.org/1",
        "comment": None,
        "warnings": False,
        **fields,
    }


def _json(status: int, document: object, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(status, json.dumps(document).encode(), {"Content-Type": "application/json", **(headers or {})})


def _send(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    if reply.truncated is not None:
        handler.close_connection = True
    if reply.truncated == "no response":
        return
    body = reply.body if reply.truncated is None else reply.body[: len(reply.body) // 2]
    handler.send_response_only(reply.status)
    for name, text in reply.headers.items():
        handler.send_header(name, text)
    if reply.truncated == "short chunks":
        handler.send_header("Transfer-Encoding", "chunked")
        body = f"{len(body):x}\r\n".encode() + body + b"\r\n"
    elif reply.truncated == "no length":
        handler.send_header("Connection", "close")
    else:
        handler.send_header("Content-Length", str(len(reply.body)))
    handler.end_headers()
    handler.wfile.write(body)
