"""Sends one request and reads its whole response. Knows nothing about batches, and never retries.

Permanent failures are raised. A failure that a retry may fix is returned as `Incomplete`.
"""

import http.client
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

import requests
import urllib3.exceptions
from requests.auth import AuthBase
from requests.structures import CaseInsensitiveDict

from batchscan.errors import BatchscanError, NotBatchscan, Unreachable, Untrusted
from batchscan.secret import Secret, SentSecrets, one_line

_CHUNK_BYTES = 1 << 16
#: Exceptions wrap each other a few levels deep. The limit guards against a cycle.
_CAUSES_MAX = 10


class InvalidJson(Enum):
    """Replaces a body that is not valid JSON; None is JSON's null."""

    SYNTAX = auto()
    DUPLICATE_FIELD = auto()


@dataclass(frozen=True, slots=True)
class Response:
    """A complete response."""

    status: int
    headers: Mapping[str, str]
    document: object = field(repr=False)
    #: The requested URL, without the query.
    url: str


@dataclass(frozen=True, slots=True)
class Incomplete:
    """No complete response arrived. A retry may help."""

    reason: str


class Transport:
    """A keep-alive connection to one service."""

    def __init__(self, url: str, timeout: tuple[float, float], user_agent: str) -> None:
        self._url = url
        self._timeout = timeout
        self._session = _Session()
        self._session.headers["User-Agent"] = user_agent
        self._session.headers["Accept"] = "application/json"
        self._reached = False
        self._sent = SentSecrets()

    def close(self) -> None:
        self._session.close()

    def redact(self, text: str) -> str:
        """Removes every secret that was sent from a text of the service."""
        return self._sent.redact(text)

    def post(self, path: str, form: Mapping[str, str], secret: Secret, body_max: int) -> Response | Incomplete:
        """Sends a form, with the secret added as `client_secret`."""
        data = {**form, "client_secret": secret.reveal()}
        return self._send(requests.Request("POST", self._url + path, data=data, auth=_NoAuth()), secret, body_max)

    def get(
        self, path: str, query: Mapping[str, str], token: Secret, body_max: int, wait: float = 0.0
    ) -> Response | Incomplete:
        """`wait`: how many seconds longer than others the response may take."""
        request = requests.Request("GET", self._url + path, params=query, auth=_Bearer(token))
        return self._send(request, token, body_max, wait)

    def _send(
        self, request: requests.Request, secret: Secret, body_max: int, wait: float = 0.0
    ) -> Response | Incomplete:
        self._sent.remember(secret)
        try:
            return self._receive(request, body_max, wait)
        except requests.RequestException as error:
            failure = self._failure(error)
        # Raised outside of the `except`: the library's exception contains the request, and with it the secret.
        if isinstance(failure, BatchscanError):
            raise failure
        return failure

    def _receive(self, request: requests.Request, body_max: int, wait: float) -> Response | Incomplete:
        prepared = self._session.prepare_request(request)
        # `send` alone ignores proxies and certificate stores from the environment.
        settings = self._session.merge_environment_settings(self._url, {}, True, None, None)
        timeout = (self._timeout[0], self._timeout[1] + wait)
        with self._session.send(prepared, timeout=timeout, allow_redirects=False, **settings) as response:
            self._reached = True
            if response.status_code < 200:
                # The library stops at an interim response. Close, so that the next request does not read the final one.
                self._session.close()
                return Incomplete(f"{self._url} sent only the interim response {response.status_code}")
            body = b"".join(_read_limited(response, str(request.url), body_max))
            document = self._parse(response.status_code, body)
            if document is InvalidJson.SYNTAX and response.status_code == 200 and _is_truncated(response, body):
                return Incomplete(f"the response of {self._url} was incomplete")
            return Response(response.status_code, self._headers(response, document), document, str(request.url))

    def _parse(self, status: int, body: bytes) -> object:
        try:
            document: object = json.loads(body.decode("utf-8"), object_pairs_hook=_unique_fields)
            # Some services echo rejected input, secrets included. A 200 is data and stays unchanged.
            return document if status == 200 else json.loads(self.redact(json.dumps(document, ensure_ascii=False)))
        except _DuplicateField:
            return InvalidJson.DUPLICATE_FIELD
        except (ValueError, RecursionError):
            return InvalidJson.SYNTAX

    def _headers(self, response: requests.Response, document: object) -> Mapping[str, str]:
        # No error quotes the headers of a valid response, so they need no redaction.
        if response.status_code == 200 and not isinstance(document, InvalidJson):
            return response.headers
        return CaseInsensitiveDict({name: self.redact(text) for name, text in response.headers.items()})

    def _failure(self, error: requests.RequestException) -> BatchscanError | Incomplete:
        """Classifies a failure. Before the first response it is permanent: most often the URL is wrong."""
        causes = list(_causes(error))
        # Redact before `one_line` shortens the text: half a secret would remain.
        reason = one_line(self.redact(_reason(causes)))
        if _any(causes, ssl.SSLCertVerificationError) or (not self._reached and _any(causes, ssl.SSLError)):
            return Untrusted(f"TLS error with {self._url}: {reason}; check the URL and the certificate")
        if not self._reached and _any(causes, _CONNECT_ERRORS):
            return Unreachable(f"cannot connect to {self._url}: {reason}; check the URL and the service")
        if not self._reached and _is_not_http(causes):
            return NotBatchscan(f"{self._url} does not speak HTTP; check the port, and whether it should be https")
        return Incomplete(f"connection to {self._url} failed: {reason}")


class _Session(requests.Session):
    """Never follows redirects: they could carry credentials to another host."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        return None


class _NoAuth(AuthBase):
    """Adds nothing. Without it, requests would send a password from `.netrc`."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        return request


class _Bearer(AuthBase):
    """Adds the token. An entry in `.netrc` would override a plain header."""

    def __init__(self, token: Secret) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token.reveal()}"
        return request


def _read_limited(response: requests.Response, url: str, body_max: int) -> Iterator[bytes]:
    received = 0
    for chunk in response.iter_content(_CHUNK_BYTES):
        received += len(chunk)
        if received > body_max:
            raise NotBatchscan(f"{url} returned more than {body_max >> 20} MiB; check the URL")
        yield chunk


class _DuplicateField(Exception):
    """A JSON object has the same field twice."""


def _unique_fields(pairs: list[tuple[str, object]]) -> dict[str, object]:
    # `json` would silently keep the last of two fields.
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _DuplicateField
    return fields


def _is_truncated(response: requests.Response, body: bytes) -> bool:
    """Whether invalid JSON starts like JSON."""
    start = body.lstrip()[:1]
    return start in (b"{", b"[") or (not start and "json" in response.headers.get("Content-Type", ""))


#: Failures before anything was sent.
_CONNECT_ERRORS = (
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.ConnectTimeoutError,
    urllib3.exceptions.ProxyError,
    requests.exceptions.InvalidURL,
)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and those it wraps. Each library wraps in its own way."""
    for _ in range(_CAUSES_MAX):
        if error is None:
            return
        yield error
        wrapped = [arg for arg in (*error.args, getattr(error, "reason", None)) if isinstance(arg, BaseException)]
        error = wrapped[-1] if wrapped else error.__cause__ or error.__context__


def _any(causes: list[BaseException], types: type[BaseException] | tuple[type[BaseException], ...]) -> bool:
    return any(isinstance(cause, types) for cause in causes)


def _is_not_http(causes: list[BaseException]) -> bool:
    # RemoteDisconnected is a BadStatusLine too, but may be a restart.
    return _any(causes, http.client.BadStatusLine) and not _any(causes, http.client.RemoteDisconnected)


def _reason(causes: list[BaseException]) -> str:
    for cause in reversed(causes):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause.verify_message
        if isinstance(cause, socket.gaierror):
            return "host name not found"
        if isinstance(cause, (TimeoutError, urllib3.exceptions.TimeoutError)):
            return "timed out waiting for a response"
        if isinstance(cause, http.client.IncompleteRead):
            return "the response was incomplete"
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    return str(causes[-1]).strip() or type(causes[-1]).__name__
