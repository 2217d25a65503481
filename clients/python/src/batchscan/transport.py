"""One request and its answer, whole or not at all. Knows nothing of batches, and never tries twice.

What cannot get better by trying again is raised; what can is returned as `Broken`.
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
from batchscan.secret import Secret, Sent, one_line

_CHUNK_BYTES = 1 << 16
#: Exceptions wrap each other a few deep; a circle among them must not hang us.
_CAUSES_MAX = 10


class NoJson(Enum):
    """Stands for a body that cannot be read as JSON; None would be JSON's null."""

    NO_JSON = auto()
    #: An object has a member twice: which of the two is meant, nobody can know.
    TWICE = auto()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that arrived whole."""

    status: int
    headers: Mapping[str, str]
    document: object = field(repr=False)
    #: What was asked, without the query.
    url: str


@dataclass(frozen=True, slots=True)
class Broken:
    """No whole answer came, though one may the next time."""

    why: str


class Transport:
    """A keep-alive connection to one service."""

    def __init__(self, url: str, timeout: tuple[float, float], user_agent: str) -> None:
        self._url = url
        self._timeout = timeout
        self._session = _StayingSession()
        self._session.headers["User-Agent"] = user_agent
        self._session.headers["Accept"] = "application/json"
        self._reached = False
        self._sent = Sent()

    def close(self) -> None:
        self._session.close()

    def hide_in(self, text: str) -> str:
        """What the service wrote, without any secret that it was told."""
        return self._sent.hide_in(text)

    def post(self, path: str, form: Mapping[str, str], secret: Secret, body_max: int) -> Answer | Broken:
        """Sends a form with the secret added to it as `client_secret`."""
        request = requests.Request(
            "POST", self._url + path, data={**form, "client_secret": secret.reveal()}, auth=_Anonymous()
        )
        return self._exchange(request, secret, body_max)

    def get(self, path: str, query: Mapping[str, str], token: Secret, body_max: int) -> Answer | Broken:
        request = requests.Request("GET", self._url + path, params=query, auth=_Bearer(token))
        return self._exchange(request, token, body_max)

    def _exchange(self, request: requests.Request, secret: Secret, body_max: int) -> Answer | Broken:
        self._sent.remember(secret)
        try:
            return self._answer(request, body_max)
        except requests.RequestException as error:
            failure = self._diagnosis(error)
        # Raised out here and not from the library's exception: that one holds the request, and so the secret.
        if isinstance(failure, BatchscanError):
            raise failure
        return failure

    def _answer(self, request: requests.Request, body_max: int) -> Answer | Broken:
        prepared = self._session.prepare_request(request)
        # The environment may name a proxy or a certificate store; `send` alone would not look.
        settings = self._session.merge_environment_settings(self._url, {}, True, None, None)
        with self._session.send(prepared, timeout=self._timeout, allow_redirects=False, **settings) as response:
            self._reached = True
            if response.status_code < 200:
                # The library ends at an interim answer. The real one follows, and must not be read by the next request.
                self._session.close()
                return Broken(f"{self._url} sent only the interim answer {response.status_code}")
            body = b"".join(_limited(response, str(request.url), body_max))
            document = self._document(response.status_code, body)
            if document is NoJson.NO_JSON and response.status_code == 200 and _is_cut(response, body):
                return Broken(f"the answer of {self._url} broke off")
            return Answer(response.status_code, self._headers(response, document), document, str(request.url))

    def _document(self, status: int, body: bytes) -> object:
        try:
            document: object = json.loads(body.decode("utf-8"), object_pairs_hook=_members)
            # Services exist that echo what they refuse, secrets and all. A good answer is data and stays as it is.
            return document if status == 200 else json.loads(self.hide_in(json.dumps(document, ensure_ascii=False)))
        except _Twice:
            return NoJson.TWICE
        except (ValueError, RecursionError):
            return NoJson.NO_JSON

    def _headers(self, response: requests.Response, document: object) -> Mapping[str, str]:
        # Of a good answer no header is ever shown.
        if response.status_code == 200 and not isinstance(document, NoJson):
            return response.headers
        return CaseInsensitiveDict({name: self.hide_in(text) for name, text in response.headers.items()})

    def _diagnosis(self, error: requests.RequestException) -> BatchscanError | Broken:
        """A wrong address should fail at once: only a service that has answered before is given another chance."""
        causes = list(_causes(error))
        # Hidden before it is cut to length: half a secret would be left.
        why = one_line(self.hide_in(_reason(causes)))
        if _any(causes, ssl.SSLCertVerificationError) or (not self._reached and _any(causes, ssl.SSLError)):
            return Untrusted(f"cannot trust {self._url}: {why}; check the address and the certificate")
        if not self._reached and _any(causes, _CONNECTING):
            return Unreachable(f"cannot reach {self._url}: {why}; check the address, and that the service runs")
        if not self._reached and _speaks_no_http(causes):
            return NotBatchscan(f"{self._url} does not speak HTTP; check the port, and http against https")
        return Broken(f"the connection to {self._url} broke: {why}")


class _StayingSession(requests.Session):
    """Stays at the address it was given: a redirect must not carry credentials elsewhere."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        return None


class _Anonymous(AuthBase):
    """Adds nothing. Without it, requests would look for a password in `.netrc`, and send it along."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        return request


class _Bearer(AuthBase):
    """Adds the token. A plain header would lose against an entry in `.netrc`."""

    def __init__(self, token: Secret) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token.reveal()}"
        return request


def _limited(response: requests.Response, url: str, body_max: int) -> Iterator[bytes]:
    received = 0
    for chunk in response.iter_content(_CHUNK_BYTES):
        received += len(chunk)
        if received > body_max:
            raise NotBatchscan(f"{url} answers with more than {body_max >> 20} MiB; check the address")
        yield chunk


class _Twice(Exception):
    """A JSON object has a member twice."""


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    # Python would keep the last of two: rows would be lost without a word.
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Twice
    return members


def _is_cut(response: requests.Response, body: bytes) -> bool:
    """Whether this is the beginning of JSON, rather than something else from its first character."""
    start = body.lstrip()[:1]
    return start in (b"{", b"[") or (not start and "json" in response.headers.get("Content-Type", ""))


#: What fails before anything was sent.
_CONNECTING = (
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.ConnectTimeoutError,
    urllib3.exceptions.ProxyError,
    requests.exceptions.InvalidURL,
)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what it wraps, each library in its own way."""
    for _ in range(_CAUSES_MAX):
        if error is None:
            return
        yield error
        wrapped = [arg for arg in (*error.args, getattr(error, "reason", None)) if isinstance(arg, BaseException)]
        error = wrapped[-1] if wrapped else error.__cause__ or error.__context__


def _any(causes: list[BaseException], kinds: type[BaseException] | tuple[type[BaseException], ...]) -> bool:
    return any(isinstance(cause, kinds) for cause in causes)


def _speaks_no_http(causes: list[BaseException]) -> bool:
    # A connection closed without a word is a bad status line to Python as well; that one may be a restart.
    garbled = [cause for cause in causes if isinstance(cause, http.client.BadStatusLine)]
    return bool(garbled) and not _any(causes, http.client.RemoteDisconnected)


def _reason(causes: list[BaseException]) -> str:
    for cause in reversed(causes):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause.verify_message
        if isinstance(cause, socket.gaierror):
            return "no host of that name is known"
        if isinstance(cause, (TimeoutError, urllib3.exceptions.TimeoutError)):
            return "no answer in time"
        if isinstance(cause, http.client.IncompleteRead):
            return "the answer broke off"
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    return str(causes[-1]).strip() or type(causes[-1]).__name__
