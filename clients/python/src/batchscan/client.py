"""The client: walks the pages of a date range, or the changes since a position.

An iteration that ends without an error has returned every batch: a truncated response is never accepted.
A client keeps one connection open. Use one client per thread.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, urlsplit

from batchscan import frames, responses
from batchscan.batch import Batch
from batchscan.date_range import Bound, date_range
from batchscan.errors import BadSettings, CursorRepeated
from batchscan.frames import Decimals
from batchscan.retry import Clock, Retries, RetryPolicy, SystemClock
from batchscan.secret import Secret, is_text
from batchscan.tokens import TokenCache, Version
from batchscan.transport import Response, Transport

if TYPE_CHECKING:
    import pandas
    import polars

#: A page has at most 10,000 batches of about 700 bytes. This is nine times as much.
_PAGE_BODY_MAX_BYTES = 64 << 20
#: About three million batches in one v1 response. For more, use v2.
_ARRAY_BODY_MAX_BYTES = 2 << 30
#: A page may be empty after filtering. This many in a row mean that pagination does not end.
_EMPTY_PAGES_MAX = 1_000
#: The service accepts no longer `wait`.
_WAIT_SECS_MAX = 60


@dataclass(frozen=True, slots=True)
class Page:
    """Some batches, and the cursor of the next page: None on the last page."""

    batches: tuple[Batch, ...]
    next_token: str | None


@dataclass(frozen=True, slots=True)
class Changes:
    """Batches to insert or replace and ids to delete. An id occurs once. Ids to delete may be unknown to the caller."""

    batches: tuple[Batch, ...]
    removed: tuple[str, ...]
    #: The position after these changes. It does not expire.
    since: str
    #: Whether more follow now.
    more: bool


class Client:
    """Reads the batches of the organisation that the credentials belong to.

    `retry_for`: how many seconds to retry one page; 0 tries once.
    `wait`: the shortest and longest wait in seconds between tries, if the service sends no `Retry-After`.
    `timeout`: the timeouts for connecting and for reading, in seconds.
    """

    def __init__(
        self,
        url: str,
        client_id: str,
        client_secret: str,
        *,
        retry_for: float = 120.0,
        wait: tuple[float, float] = (3.0, 5.0),
        timeout: tuple[float, float] = (5.0, 30.0),
        clock: Clock | None = None,
    ) -> None:
        self.url = _validate_url(url)
        self.client_id = _validate_credential("client_id", client_id)
        clock = clock or SystemClock()
        self._policy = RetryPolicy(retry_for, wait, clock)
        self._transport = Transport(self.url, timeout, _user_agent())
        secret = Secret(_validate_credential("client_secret", client_secret))
        self._tokens = TokenCache(self._transport, client_id, secret, clock)

    @classmethod
    def from_env(cls, **settings: Any) -> "Client":
        """A client from BATCHSCAN_URL, BATCHSCAN_CLIENT_ID and BATCHSCAN_CLIENT_SECRET."""
        names = ("BATCHSCAN_URL", "BATCHSCAN_CLIENT_ID", "BATCHSCAN_CLIENT_SECRET")
        missing = [name for name in names if not os.environ.get(name)]
        if missing:
            raise BadSettings(
                f"{' and '.join(missing)} not set; set the service's URL and your credentials "
                "(the profiles of `batchscan login` are only for the command)"
            )
        return cls(*(os.environ[name] for name in names), **settings)

    def __repr__(self) -> str:
        return f"Client(url={self.url!r}, client_id={self.client_id!r})"

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection. Another request opens a new one."""
        self._transport.close()

    def batches(self, start: Bound = None, end: Bound = None, *, version: Version = 2) -> Iterator[Batch]:
        """Every batch created from `start` to `end`, both included, oldest first. Requests pages as needed.

        A date as `end` means the whole day in UTC. `version=1` requests everything in one response.
        """
        return (batch for page in self.pages(start, end, version=version) for batch in page.batches)

    def pages(self, start: Bound = None, end: Bound = None, *, version: Version = 2) -> Iterator[Page]:
        """The same batches, page by page. Version 1 has one page."""
        # Not a generator: invalid arguments fail here, not at the first `next`.
        if version not in (1, 2):
            raise BadSettings(f"version is {version!r}; give 1 or 2")
        query = date_range(start, end)
        return self._pages_v1(query) if version == 1 else self._pages_v2(query)

    def batch(self, batch_id: str) -> Batch | None:
        """The batch with this id; None if there is none."""
        if not isinstance(batch_id, str) or not batch_id or not is_text(batch_id):
            raise BadSettings(f"{batch_id!r} is not an id of a batch; give its batch_id")
        response = self._get(2, f"/v2/batches/{quote(batch_id, safe='')}", {}, _PAGE_BODY_MAX_BYTES)
        document = responses.batch(response)
        return None if document is None else Batch.from_json(document, self._transport.redact)

    def changes(self, since: str | None = None, wait: int = 0) -> Iterator[Changes]:
        """What changed after the position `since`, until nothing more follows. Without `since`: everything.

        Store `since` together with each of the changes. If nothing changed, the service waits up to `wait` seconds
        (at most 45). Raises `PositionGone` if the copy must be read again, without `since`.
        """
        if since is not None and not (isinstance(since, str) and since and is_text(since)):
            raise BadSettings("since is not a position; give that of the last changes, or None")
        if isinstance(wait, bool) or not isinstance(wait, int) or not 0 <= wait <= _WAIT_SECS_MAX:
            raise BadSettings(f"wait is {wait!r}; give whole seconds from 0 to {_WAIT_SECS_MAX}")
        return self._changes(since, wait)

    def to_pandas(
        self, start: Bound = None, end: Bound = None, *, decimals: Decimals = "float", version: Version = 2
    ) -> "pandas.DataFrame":
        """The batches as a pandas frame, one column per field. The dtypes do not depend on the data.

        Decimals become float64 with NaN, or with `decimals="decimal"` exact `Decimal` objects with None.
        """
        return frames.to_pandas(self.batches(start, end, version=version), decimals)

    def to_polars(
        self, start: Bound = None, end: Bound = None, *, decimals: Decimals = "float", version: Version = 2
    ) -> "polars.DataFrame":
        """The batches as a polars frame, one column per field. The dtypes do not depend on the data.

        Decimals become Float64, or with `decimals="decimal"` exact `Decimal(scale=2)`.
        """
        return frames.to_polars(self.batches(start, end, version=version), decimals)

    def _pages_v2(self, query: Mapping[str, str]) -> Iterator[Page]:
        seen: set[str] = set()
        cursor: str | None = None
        empty_pages = 0
        while True:
            # Every page gets the date range: some services keep it in the cursor, others do not.
            page_query = query if cursor is None else {**query, "next_token": cursor}
            data, cursor = responses.page(self._get(2, "/v2/batches", page_query, _PAGE_BODY_MAX_BYTES))
            if cursor in seen:
                raise CursorRepeated(f"pagination of {self.url} loops; contact the service's operator")
            yield self._page(data, cursor)
            if cursor is None:
                return
            seen.add(cursor)
            empty_pages = 0 if data else empty_pages + 1
            if empty_pages >= _EMPTY_PAGES_MAX:
                raise CursorRepeated(
                    f"{self.url} returned {empty_pages:,} empty pages in a row; contact the service's operator"
                )

    def _pages_v1(self, query: Mapping[str, str]) -> Iterator[Page]:
        yield self._page(responses.array(self._get(1, "/v1/batches", query, _ARRAY_BODY_MAX_BYTES)), None)

    def _changes(self, since: str | None, wait: int) -> Iterator[Changes]:
        seen = {since}
        more = True
        while more:
            query = {} if since is None else {"since": since}
            if wait:
                query["wait"] = str(wait)
            response = self._get(2, "/v2/changes", query, _PAGE_BODY_MAX_BYTES, wait)
            data, removed, since, more = responses.changes(response)
            if more and since in seen:
                raise CursorRepeated(f"the changes of {self.url} loop; contact the service's operator")
            seen.add(since)
            yield Changes(self._parse(data), tuple(removed), since, more)

    def _page(self, data: list[object], cursor: str | None) -> Page:
        return Page(self._parse(data), cursor)

    def _parse(self, data: list[object]) -> tuple[Batch, ...]:
        return tuple(Batch.from_json(document, self._transport.redact) for document in data)

    def _get(
        self, version: Version, path: str, query: Mapping[str, str], body_max: int, wait: float = 0.0
    ) -> Response:
        retries = Retries(self._policy)

        def get() -> Response:
            return responses.send_with_retries(
                lambda: self._transport.get(path, query, self._tokens.token(version, retries), body_max, wait),
                retries,
            )

        response = get()
        if response.status == 401:
            # The token may have been revoked. Try a new one, once.
            self._tokens.discard(version)
            response = get()
        return response


def _validate_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and is_text(url)
    except ValueError:
        parts, valid = SplitResult("", "", "", "", ""), False
    if parts.username is not None or parts.password is not None:
        raise BadSettings("the URL contains a user name or password; give client_id and client_secret instead")
    if not valid or parts.query or parts.fragment:
        raise BadSettings(f"{url!r} is not a valid URL of a service; give one such as https://scans.example.org")
    return url.rstrip("/")


def _validate_credential(name: str, value: str) -> str:
    if not isinstance(value, str) or not value:
        raise BadSettings(f"{name} is empty; give the one that the service's operator issued")
    if not is_text(value):
        raise BadSettings(f"{name} is not valid text; give the one that the service's operator issued")
    return value


def _user_agent() -> str:
    try:
        return f"batchscan-python/{installed_version('batchscan')}"
    except PackageNotFoundError:
        return "batchscan-python"
