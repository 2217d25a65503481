"""The client: the walk over the pages of a window.

A walk that ends without an error has delivered everything: an answer that was cut is never taken for a whole one.
A client keeps one connection and is meant for one thread; make one for each.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version as installed_version
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from batchscan import answers, frames
from batchscan.access import Access, Version
from batchscan.batch import Batch
from batchscan.errors import BadSettings, CursorRepeated
from batchscan.frames import Decimals
from batchscan.patience import Clock, Patience, Rules, SystemClock
from batchscan.secret import Secret, is_text
from batchscan.transport import Answer, Transport
from batchscan.window import Moment, window

if TYPE_CHECKING:
    import pandas
    import polars

#: A page holds at most 10,000 batches of about 700 bytes; ten times that is not a page.
_PAGE_BODY_MAX_BYTES = 64 << 20
#: All batches of an organisation at once: three million of them. Whoever has more wants v2.
_WHOLE_BODY_MAX_BYTES = 2 << 30
#: A service may filter a page empty; one that does so this often in a row goes on for ever.
_EMPTY_PAGES_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Page:
    """Some batches, and the cursor to the next ones. On the last page it is None."""

    batches: tuple[Batch, ...]
    next_token: str | None


class Client:
    """Reads the batches of the organisation that the credentials belong to.

    `retry_for`: how many seconds one page may be tried; 0 tries once.
    `wait`: the shortest and longest wait in seconds before the next try, where the service does not say.
    `timeout`: how many seconds a connection may take, and a silence within an answer.
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
        self.url = _address(url)
        self.client_id = _given("client_id", client_id)
        clock = clock or SystemClock()
        self._rules = Rules(retry_for, wait, clock)
        self._transport = Transport(self.url, timeout, _user_agent())
        secret = Secret(_given("client_secret", client_secret))
        self._access = Access(self._transport, client_id, secret, clock)

    @classmethod
    def from_env(cls, **settings: Any) -> "Client":
        """A client from BATCHSCAN_URL, BATCHSCAN_CLIENT_ID and BATCHSCAN_CLIENT_SECRET."""
        names = ("BATCHSCAN_URL", "BATCHSCAN_CLIENT_ID", "BATCHSCAN_CLIENT_SECRET")
        missing = [name for name in names if not os.environ.get(name)]
        if missing:
            raise BadSettings(f"{' and '.join(missing)} not set; put the service's address and credentials there")
        return cls(*(os.environ[name] for name in names), **settings)

    def __repr__(self) -> str:
        return f"Client(url={self.url!r}, client_id={self.client_id!r})"

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection. Another request would open a new one."""
        self._transport.close()

    def batches(self, start: Moment = None, end: Moment = None, *, version: Version = 2) -> Iterator[Batch]:
        """Every batch created from `start` to `end`, both included, oldest first, read page by page.

        A date as `end` means the whole of that day in UTC. `version=1` asks for one answer with everything.
        """
        return (batch for page in self.pages(start, end, version=version) for batch in page.batches)

    def pages(self, start: Moment = None, end: Moment = None, *, version: Version = 2) -> Iterator[Page]:
        """The same batches by the page, for whoever stores page by page. Version 1 has one page."""
        # The arguments are judged here and not at the first `next`, so that the traceback shows who gave them.
        if version not in (1, 2):
            raise BadSettings(f"version is {version!r}; the interface has 1 and 2")
        query = window(start, end)
        return self._whole(query) if version == 1 else self._walk(query)

    def to_pandas(
        self, start: Moment = None, end: Moment = None, *, decimals: Decimals = "float", version: Version = 2
    ) -> "pandas.DataFrame":
        """The batches as a pandas frame, one column for each field, with the same dtypes however few there are.

        Decimals become float64 with NaN, or with `decimals="decimal"` exact `Decimal` objects with None.
        """
        return frames.to_pandas(self.batches(start, end, version=version), decimals)

    def to_polars(
        self, start: Moment = None, end: Moment = None, *, decimals: Decimals = "float", version: Version = 2
    ) -> "polars.DataFrame":
        """The batches as a polars frame, one column for each field, with the same dtypes however few there are.

        Decimals become Float64, or with `decimals="decimal"` exact `Decimal(scale=2)`.
        """
        return frames.to_polars(self.batches(start, end, version=version), decimals)

    def _walk(self, query: Mapping[str, str]) -> Iterator[Page]:
        seen: set[str] = set()
        cursor: str | None = None
        empty_pages = 0
        while True:
            # The window goes with every page: some services remember it in the cursor, others do not.
            step = query if cursor is None else {**query, "next_token": cursor}
            data, cursor = answers.envelope(self._answer(2, step, _PAGE_BODY_MAX_BYTES))
            if cursor in seen:
                raise CursorRepeated(f"the pages of {self.url} run in a circle; tell the service's operator")
            yield self._page(data, cursor)
            if cursor is None:
                return
            seen.add(cursor)
            empty_pages = 0 if data else empty_pages + 1
            if empty_pages >= _EMPTY_PAGES_MAX:
                raise CursorRepeated(
                    f"{empty_pages:,} pages of {self.url} in a row are empty, and yet there is a next one; "
                    "tell the service's operator"
                )

    def _whole(self, query: Mapping[str, str]) -> Iterator[Page]:
        data = answers.whole(self._answer(1, query, _WHOLE_BODY_MAX_BYTES))
        yield self._page(data, None)

    def _page(self, data: list[object], cursor: str | None) -> Page:
        return Page(tuple(Batch.from_json(document, self._transport.hide_in) for document in data), cursor)

    def _answer(self, version: Version, query: Mapping[str, str], body_max: int) -> Answer:
        patience = Patience(self._rules)

        def ask() -> Answer:
            return answers.settled(
                lambda: self._transport.get(
                    f"/v{version}/batches", query, self._access.token(version, patience), body_max
                ),
                patience,
            )

        answer = ask()
        if answer.status == 401:
            # Once: a key may have changed under us. A second refusal is meant.
            self._access.forget(version)
            answer = ask()
        return answer


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and is_text(url)
    except ValueError:
        parts, valid = SplitResult("", "", "", "", ""), False
    if parts.username is not None or parts.password is not None:
        raise BadSettings("the URL holds a user name or password; give client_id and client_secret instead")
    if not valid or parts.query or parts.fragment:
        raise BadSettings(f"{url!r} is not a service's address; give one such as https://scans.example.org")
    return url.rstrip("/")


def _given(name: str, value: str) -> str:
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
