"""The clients: what integrators do, through the balancer. Every response is verified and counted; a failed request is
repeated."""

import http.client
import json
import threading
import time
from dataclasses import dataclass, field
from urllib.parse import urlencode

from expected import DateRange, Expected, Verifier, Wrong

# Longer than the service or the balancer takes to report that it cannot answer, also on a slow machine.
READ_TIMEOUT_SECS = 120
# A slow reader pauses this long after every portion: a whole list takes it some seconds.
SLOW_PAUSE_SECS = 0.006
PORTION_BYTES = 16 << 10
# Between two requests: a steady load that leaves CPU time for the servers.
PAUSE_SECS = 0.008
# Before a repeated request; shorter than clients should wait, to see more.
RETRY_PAUSE_SECS = 0.2
# After this many failures in a row a client gives up; each of them was counted.
ATTEMPTS_MAX = 50
# Batches in a small date range.
RANGE_BATCHES = 30
# Small date ranges for every read of everything.
RANGES_PER_ROUND = 8
# Far above what is needed, in case a cursor loops.
PAGES_MAX = 10_000
# Failures that are reported with their reason; more are only counted.
REASONS_MAX = 5

# The columns of the results. Right: 200 or 304 with the right content. Cut: a long stream through a node that was killed,
# the only request that may fail.
COLUMNS = ["right", "503", "other", "broken", "wrong", "cut"]


@dataclass
class Response:
    status: int
    etag: str | None
    request_id: str | None
    body: str


class Failed(Exception):
    """A request without a right response, with its column."""

    def __init__(self, column: str, reason: str, request_id: str | None = None):
        super().__init__(f"{column}: {reason}")
        self.column, self.request_id = column, request_id


class Client:
    """A client with one connection. A response that is cut off is an error."""

    def __init__(self, port: int):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=READ_TIMEOUT_SECS)

    def get(self, path: str, token: str = "", etag: str = "", pause: float = 0) -> Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if etag:
            headers["If-None-Match"] = etag
        return self.send("GET", path, headers, pause=pause)

    def request_token(self, credential: dict) -> Response:
        form = urlencode({"grant_type": "client_credentials", **credential})
        return self.send("POST", "/v2/auth", {"Content-Type": "application/x-www-form-urlencoded"}, form)

    def token(self, credential: dict) -> str:
        return token_in(self.request_token(credential))

    def send(self, method: str, path: str, headers: dict, body: str | None = None, pause: float = 0) -> Response:
        status, request_id = None, None
        try:
            self.connection.request(method, path, body, headers)
            response = self.connection.getresponse()
            status, request_id = response.status, response.getheader("x-request-id")
            text = read(response, pause).decode()
            return Response(status, response.getheader("etag"), request_id, text)
        except (OSError, http.client.HTTPException, UnicodeDecodeError) as error:
            self.connection.close()
            raise Failed("broken", f"status {status}, {error!r}", request_id) from error


def read(response: http.client.HTTPResponse, pause: float) -> bytes:
    """The whole body. Its end must be marked: at the end of the connection, it may have been cut."""
    if response.length is None and not response.chunked:
        raise http.client.HTTPException("a response without a length")
    if not pause:
        return response.read()
    portions = []
    while portion := response.read(PORTION_BYTES):
        portions.append(portion)
        time.sleep(pause)
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(portions)


def process_id(request_id: str) -> str:
    """The part of a request id that identifies the process."""
    return request_id.split("-")[0]


def token_in(response: Response) -> str:
    if response.status != 200:
        raise Failed("other", f"{response.status} {response.body}")
    try:
        return json.loads(response.body)["access_token"]
    except (ValueError, KeyError) as error:
        raise Wrong(f"no token: {response.body}") from error


@dataclass
class Counts:
    """The requests during one event."""

    requests: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COLUMNS, 0))
    slowest: float = 0
    reasons: list[str] = field(default_factory=list)

    def failures(self) -> int:
        return sum(self.requests.values()) - self.requests["right"] - self.requests["cut"]


class Tally:
    """The counts of the current event, shared by all clients."""

    def __init__(self):
        self.counts, self.killed, self.lock = Counts(), set(), threading.Lock()

    def count(self, path: str, secs: float, failed: Failed | None = None):
        column = failed.column if failed else "right"
        # Only a list of the whole organisation is a long stream.
        if column == "broken" and path == "/v1/batches" and process_id(failed.request_id or "") in self.killed:
            column = "cut"
        with self.lock:
            self.counts.requests[column] += 1
            self.counts.slowest = max(self.counts.slowest, secs)
            if column not in ("right", "cut") and len(self.counts.reasons) < REASONS_MAX:
                self.counts.reasons.append(f"{path}, after {secs:.3f} s: {failed}")

    def expect_kill(self, process: str):
        """A node is about to be killed: from now on long streams through it may be cut."""
        self.killed.add(process)

    def take(self) -> Counts:
        """Ends an event and returns its counts."""
        with self.lock:
            counts, self.counts = self.counts, Counts()
            return counts

    def wait_for_right(self, more: int, secs: float):
        """Waits for more right responses."""
        goal, deadline = self.counts.requests["right"] + more, time.monotonic() + secs
        while self.counts.requests["right"] < goal:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {more} right responses in {secs} s: {self.counts.reasons}")
            time.sleep(0.005)


@dataclass
class Load:
    """What all clients share."""

    port: int
    credential: dict
    expected: Expected
    tally: Tally
    is_over: threading.Event


class LoadClient:
    def __init__(self, load: Load, number: int, pause: float = 0):
        self.load, self.client, self.pause, self.token = load, Client(load.port), pause, ""
        # Chooses date ranges; differs between clients.
        self.seed = number * 1_009
        # A date range that is requested again and again, its etag, and when that was received.
        self.remembered: tuple[DateRange, str, float] | None = None

    def run_mixed(self):
        """A bit of everything until the load is over."""
        while not self.load.is_over.is_set():
            self.fetch_token(self.load.credential)
            self.read_v2(None)
            for _ in range(RANGES_PER_ROUND):
                self.seed += 37
                date_range = self.load.expected.range(self.seed, RANGE_BATCHES)
                self.read_v2(date_range)
                self.read_v1(date_range)
                self.read_conditionally()
            self.read_v1(None)

    def run_slow(self):
        """Whole lists of v1, read slowly: a stream is nearly always in progress."""
        while not self.load.is_over.is_set():
            self.fetch_token(self.load.credential)
            self.read_v1(None)

    def fetch_token(self, credential: dict):
        """Requests a token until there is one."""
        self.token = self.repeat("/v2/auth", lambda: self.client.request_token(credential), token_in) or ""

    def read_v2(self, date_range: DateRange | None):
        """Page after page to the end."""
        verifier, path = self.load.expected.verifier(date_range), path_of("/v2/batches", date_range)
        for _ in range(PAGES_MAX):
            page = self.get(path, lambda response: verify_page(verifier, response.body))
            if page is None or self.load.is_over.is_set():
                return
            if page["next_token"] is None:
                # The last page was counted as right. A list that lacks something counts as wrong in addition.
                try:
                    return verifier.end()
                except Wrong as wrong:
                    return self.load.tally.count(path, 0, Failed("wrong", str(wrong)))
            path = "/v2/batches?" + urlencode(page)
        self.load.tally.count(path, 0, Failed("wrong", "pagination does not end"))

    def read_v1(self, date_range: DateRange | None):
        """Everything in one response. A slow stream may have passed the position of a batch that was imported after the
        request was sent."""
        sent = time.monotonic()
        self.get(path_of("/v1/batches", date_range), lambda response: self.verify_list(response, date_range, sent))

    def verify_list(self, response: Response, date_range: DateRange | None, sent: float) -> str | None:
        self.load.expected.verifier(date_range, sent).list(response.body)
        return response.etag

    def read_conditionally(self):
        """Two requests with `If-None-Match`: with an etag from some time ago, then with the newest."""
        expected = self.load.expected
        first_time = (expected.range(self.seed, RANGE_BATCHES), "", time.monotonic())
        date_range, etag, since = self.remembered or first_time
        for _ in range(2):
            sent = time.monotonic()

            def verify(response: Response) -> str:
                if response.status == 304:
                    verify_unchanged(expected, response, etag, since)
                    return etag
                newer = self.verify_list(response, date_range, sent)
                if newer is None:
                    raise Wrong("no etag")
                return newer

            newer = self.get(path_of("/v1/batches", date_range), verify, etag)
            if newer not in (None, etag):
                etag, since = newer, time.monotonic()
        self.remembered = date_range, etag, since

    def get(self, path: str, verify, etag: str = ""):
        return self.repeat(path, lambda: self.client.get(path, self.token, etag, self.pause), verify)

    def repeat(self, path: str, send, verify):
        """Repeats a request until its response is right or wrong, and counts every attempt. Returns what `verify` does."""
        for _ in range(ATTEMPTS_MAX):
            start, failed, value = time.monotonic(), None, None
            try:
                value = check(send(), verify)
            except Failed as error:
                failed = error
            # The duration of a slow read is the reader's choice.
            self.load.tally.count(path, 0 if self.pause else time.monotonic() - start, failed)
            time.sleep(PAUSE_SECS)
            if failed is None:
                return value
            if failed.column == "wrong" or self.load.is_over.is_set():
                return None
            time.sleep(RETRY_PAUSE_SECS)
        return None


def check(response: Response, verify):
    """What `verify` returns for a response that has the right status."""
    if response.status not in (200, 304):
        raise Failed("503" if response.status == 503 else "other", f"{response.status} {response.body[:200]}")
    try:
        return verify(response)
    except Wrong as wrong:
        raise Failed("wrong", str(wrong)) from wrong


def verify_page(verifier: Verifier, text: str) -> dict:
    """Returns what follows the batches: the cursor of the next page."""
    data = '{"data":'
    if not text.startswith(data):
        raise Wrong(f"not a page: {text[:100]}")
    end = verifier.array(text, len(data))
    try:
        rest = json.loads("{" + text[end:].removeprefix(","))
    except ValueError as error:
        raise Wrong(f"not a page: {text[end : end + 100]}") from error
    if list(rest) != ["next_token"]:
        raise Wrong(f"not a page: {text[end : end + 100]}")
    return rest


def verify_unchanged(expected: Expected, response: Response, sent: str, since: float):
    if not sent or response.etag != sent:
        raise Wrong(f"304 with etag {response.etag}, sent {sent}")
    if expected.has_changed_since(since):
        raise Wrong("304 although batches were added")


def path_of(resource: str, date_range: DateRange | None) -> str:
    if date_range is None:
        return resource
    return f"{resource}?start_date={date_range[0]}Z&end_date={date_range[1]}Z"
