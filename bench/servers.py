"""The servers that are compared: how each is started, which requests each scenario sends to it, and what it costs."""

import gzip
import http.client
import json
import os
import pwd
import re
import subprocess
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import prepare
from prepare import ORGANISATION, PAGE_BATCHES, PEER_CREDENTIAL, Setup, to_micros
from wrk import BenchError, Request

# Scenarios that wrk drives on every server that has them.
REQUEST_SCENARIOS = {
    "page-uncached": "First page of v2; no two requests are equal",
    "page-cached": "First page of v2; all requests are equal",
    "page-first": "First page of v2, without a cache, for comparison with the deep page",
    "page-deep": "Page at 90 % of the data, by cursor, without a cache",
    "conditional": "First page of v2 that the client already has: 304",
    "gzip": "First page of v2 with gzip; no two requests are equal",
    "gzip-anywhere": "Pages from all over the data with gzip; no two requests are equal",
    "gzip-cached": "First page of v2 with gzip; all requests are equal",
    "date-range": "A date range with 20 batches; no two requests are equal",
    "auth": "Token request",
}
# The cache must not serve any of their responses.
UNCACHED = {"page-uncached", "page-first", "page-deep", "gzip", "gzip-anywhere", "date-range", "scale"}
# A few requests take turns, so batchscan runs with its cache switched off.
WITHOUT_CACHE = {"page-first", "page-deep"}

# The end of the date range counts up, later than all data.
FIRST_PAGE, FIRST_PAGE_UNCACHED = "/v2/batches", "/v2/batches?end_date={date}"
NGINX_PAGE, NGINX_ALL = "/v2/page.json", "/v1/all.json"
CURSORS = 8
# Primes: a date range never meets the same fraction of a second twice in a run, and pages start anywhere within the
# blocks that batchscan stores compressed.
DATE_RANGES, PAGE_STARTS = 4_093, 97
JWT_SECRET = "a secret of sixty-four bytes, as long as the hash that it is used in"

START_TIMEOUT_SECS, STOP_TIMEOUT_SECS = 60, 5
# The first byte of a million batches from a slow peer.
READ_TIMEOUT_SECS = 180
# The rest of a load that was cut off: 512 responses of the slowest peer.
IDLE_TIMEOUT_SECS = 60
TICKS_PER_SEC = os.sysconf("SC_CLK_TCK")


class Peer(NamedTuple):
    """A server to compare. Its kind: "api" has our API, "tables" a generic one, "files" static files."""

    title: str
    kind: str
    scenarios: set[str]
    command: str


# The peers have no page cache, so one timing of their page counts as cached and as uncached.
API_SCENARIOS = {"page-uncached", "page-deep", "gzip", "gzip-anywhere", "date-range", "auth"}
TABLE_SCENARIOS = {"page-uncached", "page-deep", "date-range"}
POSTGRES_SCENARIOS = set(REQUEST_SCENARIOS) - {"page-first", "gzip-anywhere", "gzip-cached"}
# bench/peers/README.md explains the options.
BATCHSCAN = "{executable} serve --listen 127.0.0.1:{port} --operator-listen 127.0.0.1:{operator_port}"
UVICORN = (
    "{venv}/bin/uvicorn --app-dir {peers}/fastapi --host 127.0.0.1 --port {port} --workers 2 --loop uvloop "
    "--http httptools --no-access-log --log-level warning --timeout-worker-healthcheck 300 "
)
DATASETTE = "{venv}/bin/datasette serve {folder}/peers-{size}.datasette --host 127.0.0.1 --port {port}"
ROAPI = (
    "{venv}/bin/roapi --config {folder}/peers-{size}.yaml --addr-http 127.0.0.1:{port} "
    "--addr-postgres 127.0.0.1:0 --addr-flight-sql 127.0.0.1:0"
)
PLAIN_RUST = "{plain_rust} --database {folder}/peers-{size}.db --listen 127.0.0.1:{port}"
NGINX = "{nginx} -e stderr -p {folder}/nginx-{size} -c nginx.conf"
PEERS = {
    "batchscan": Peer("batchscan, SQLite", "api", set(REQUEST_SCENARIOS), BATCHSCAN),
    "batchscan-postgres": Peer("batchscan, PostgreSQL", "api", POSTGRES_SCENARIOS, BATCHSCAN),
    "fastapi": Peer("FastAPI", "api", API_SCENARIOS, UVICORN + "app:app"),
    "fastapi-tuned": Peer("FastAPI, tuned", "api", API_SCENARIOS, UVICORN + "tuned:app"),
    "datasette": Peer("Datasette", "tables", TABLE_SCENARIOS, DATASETTE),
    "roapi": Peer("ROAPI", "tables", TABLE_SCENARIOS, ROAPI),
    "plain-rust": Peer("plain Rust", "api", API_SCENARIOS, PLAIN_RUST),
    "nginx": Peer("nginx, static files", "files", {"page-cached", "conditional", "gzip-cached"}, NGINX),
}
OURS = {"batchscan", "batchscan-postgres"}
HEALTH_PATHS = {"datasette": "/-/versions.json", "roapi": "/health", "nginx": NGINX_PAGE}


class Case(NamedTuple):
    """A request, and the rows of the data that its response must contain."""

    request: Request
    rows: range = range(0)


class Response(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes


class Server:
    """A running server; `with` stops it."""

    def __init__(self, setup: Setup, name: str, size: int | str, cores: set[int], cache: bool = True):
        self.setup, self.name, self.size, self.peer = setup, name, size, PEERS[name]
        self.port, self.operator_port, self.token = prepare.free_port(), None, ""
        self.counter, self.credential = setup.wrk.reserve(), PEER_CREDENTIAL
        self.postgres = setup.postgres if name in {"batchscan-postgres", "fastapi", "fastapi-tuned"} else None
        # No server logs requests.
        env = {"BATCHSCAN_LOG": "warn", "RUST_LOG": "warn", "JWT_SECRET": JWT_SECRET}
        if name in OURS:
            database = setup.databases["postgres" if self.postgres else size]
            self.credential, self.operator_port = database.credentials[0], prepare.free_port()
            env["BATCHSCAN_DATABASE"] = database.url
        elif self.postgres:
            env["DATABASE_URL"] = setup.peer_urls[size]
        pinned = ["taskset", "--cpu-list", ",".join(map(str, cores)), *self.command()]
        pinned += ["--cache-mib", "0"] if name in OURS and not cache else []
        self.log = setup.folder / f"{name}.log"
        with self.log.open("w") as log:
            # Datasette prints a line for each request and has no option against it.
            stdout = subprocess.DEVNULL if name == "datasette" else log
            self.process = subprocess.Popen(pinned, env=prepare.clean_env() | env, stdout=stdout, stderr=log)
        try:
            self.wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    def command(self) -> list[str]:
        setup, nginx = self.setup, prepare.find_program("nginx")
        values = {"peers": prepare.PEERS_FOLDER, "nginx": nginx} | vars(setup) | vars(self)
        if self.name == "nginx":
            user = pwd.getpwuid(os.geteuid()).pw_name
            config = (prepare.PEERS_FOLDER / "nginx/nginx.conf.in").read_text()
            config = config.replace("@USER@", user).replace("@WORKERS@", "1").replace("@PORT@", str(self.port))
            (setup.folder / f"nginx-{self.size}/nginx.conf").write_text(config)
        return [word.format(**values) for word in self.peer.command.split()]

    def wait_until_ready(self) -> None:
        request = token_request(self.credential) if self.peer.kind == "api" else Request(HEALTH_PATHS[self.name])
        deadline = time.monotonic() + START_TIMEOUT_SECS
        while True:
            try:
                response = self.fetch(request)
                if response.status == 200:
                    self.token = token_in(response.body) if self.peer.kind == "api" else ""
                    return
            except (OSError, http.client.HTTPException):
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise BenchError(f"{self.peer.title} does not start\n{self.log_tail()}")
            time.sleep(0.02)

    def stop(self) -> None:
        processes = descendants(self.process.pid)
        self.process.terminate()
        try:
            self.process.wait(STOP_TIMEOUT_SECS)
        except subprocess.TimeoutExpired:
            subprocess.run(["kill", "-KILL", *map(str, processes)], capture_output=True)
            self.process.wait()

    def log_tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=READ_TIMEOUT_SECS)

    def fetch(self, request: Request, connection: http.client.HTTPConnection | None = None) -> Response:
        used = connection or self.connect()
        try:
            used.request(request.method, request.path, request.body or None, dict(request.headers))
            response = used.getresponse()
            return Response(response.status, response.headers, response.read())
        finally:
            if connection is None:
                used.close()

    def get(self, path: str) -> Request:
        return with_token(path, self.token)

    def etag(self, request: Request) -> str:
        if etag := self.fetch(request).headers["etag"]:
            return etag
        raise BenchError(f"{self.peer.title}: {request.path} has no ETag")

    def next_counter(self, count: int) -> int:
        self.counter += count
        return self.counter - count

    def cache_hits(self) -> int | None:
        """Responses from batchscan's page cache; None for others."""
        if self.operator_port is None:
            return None
        connection = http.client.HTTPConnection("127.0.0.1", self.operator_port, timeout=READ_TIMEOUT_SECS)
        metrics = self.fetch(Request("/metrics"), connection).body
        connection.close()
        return int(re.search(rb"^batchscan_page_cache_hits_total (\d+)", metrics, re.MULTILINE)[1])

    def cpu_secs(self) -> float:
        return cpu_secs(self.process.pid)

    def memory_mib(self, field: str) -> float:
        return sum(memory_mib(pid, field) for pid in descendants(self.process.pid))

    def reset_peak(self) -> None:
        for pid in descendants(self.process.pid):
            Path(f"/proc/{pid}/clear_refs").write_text("5")

    def settle(self) -> None:
        """Waits until the server is idle."""
        deadline, before = time.monotonic() + IDLE_TIMEOUT_SECS, self.cpu_secs()
        while True:
            time.sleep(0.06)
            now = self.cpu_secs()
            if now - before < 1.5 / TICKS_PER_SEC:
                return
            if time.monotonic() > deadline:
                raise BenchError(f"{self.peer.title} is still busy {IDLE_TIMEOUT_SECS} s after its load")
            before = now


def read_proc(path: str) -> str:
    try:
        return Path("/proc", path).read_text()
    except OSError:
        return ""


def descendants(pid: int) -> list[int]:
    """A process and all its descendants."""
    found = [pid]
    for parent in found:
        for task in Path("/proc").glob(f"{parent}/task/*"):
            found += map(int, read_proc(f"{task}/children").split())
    return found


def cpu_secs(pid: int) -> float:
    """CPU time of a process and its descendants, in user space and kernel."""
    # The command name comes first, in parentheses, and may contain anything.
    stats = (read_proc(f"{process}/stat").rpartition(") ")[2].split() for process in descendants(pid))
    return sum(sum(map(int, fields[11:15])) for fields in stats) / TICKS_PER_SEC


def memory_mib(pid: int, field: str) -> float:
    """`VmRSS` (now) or `VmHWM` (peak) of a process. Memory that processes share counts in each."""
    found = re.search(rf"^{field}:\s+(\d+) kB", read_proc(f"{pid}/status"), re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def write_nginx_files(setup: Setup, size: int) -> None:
    """nginx serves batchscan's own responses, as files."""
    files = setup.folder / f"nginx-{size}/files"
    with Server(setup, "batchscan", size, setup.plan.all_cores) as server:
        for path, file in ((FIRST_PAGE, NGINX_PAGE), ("/v1/batches", NGINX_ALL)):
            (files / file[1:]).parent.mkdir(parents=True, exist_ok=True)
            (files / file[1:]).write_bytes(server.fetch(server.get(path)).body)
    (files / "v2/page.json.gz").write_bytes(gzip.compress((files / "v2/page.json").read_bytes(), 9))


def token_request(credential: dict) -> Request:
    body = "grant_type=client_credentials&client_id={client_id}&client_secret={client_secret}".format(**credential)
    return Request("/v2/auth", (("content-type", "application/x-www-form-urlencoded"),), "POST", body)


def token_in(body: bytes) -> str:
    return json.loads(body)["access_token"]


def with_token(path: str, token: str) -> Request:
    return Request(path, (("authorization", f"Bearer {token}"),) if token else ())


def with_gzip(request: Request) -> Request:
    return request.with_header("accept-encoding", "gzip")


def cases(server: Server, scenario: str) -> list[Case]:
    """The requests of a scenario, sent in turn."""
    if server.peer.kind == "tables":
        return table_cases(server, scenario)
    files, first = server.peer.kind == "files", range(PAGE_BATCHES)
    page = server.get(NGINX_PAGE if files else FIRST_PAGE)
    uncached = server.get(FIRST_PAGE_UNCACHED)
    match scenario:
        case "page-uncached" | "scale":
            return [Case(uncached, first)]
        case "page-cached":
            return [Case(page, first)]
        case "page-first":
            counter = server.next_counter(CURSORS)
            return [Case(uncached.fill(counter + n), first) for n in range(CURSORS)]
        case "page-deep":
            return deep_cases(server)
        case "conditional":
            return [Case(page.with_header("if-none-match", server.etag(page)))]
        case "gzip":
            return [Case(with_gzip(uncached), first)]
        case "gzip-anywhere":
            return gzip_cases(server)
        case "gzip-cached":
            return [Case(with_gzip(Request("/gzip" + NGINX_PAGE) if files else page), first)]
        case "date-range":
            path = "/v2/batches?start_date={}&end_date={:%Y-%m-%dT%H:%M:%S}.{{fraction}}Z"
            ranges = server.setup.data.date_ranges(DATE_RANGES)
            return [Case(server.get(path.format(r.start_text, r.end)), r.rows) for r in ranges]
    return [Case(token_request(server.credential))]


def deep_cases(server: Server) -> list[Case]:
    """Cursors at 90 % of the data. Each comes from a date range with another end, so no two are equal."""
    data, counter = server.setup.data, server.next_counter(CURSORS)
    before = data.next_date(server.size // 10 * 9 - PAGE_BATCHES)
    page = server.get(f"/v2/batches?start_date={data.date_texts[before]}&end_date={{date}}")
    cursors = [json.loads(server.fetch(page.fill(counter + n)).body)["next_token"] for n in range(CURSORS)]
    rows = range(before + PAGE_BATCHES, before + 2 * PAGE_BATCHES)
    return [Case(server.get(f"/v2/batches?next_token={quote(cursor)}"), rows) for cursor in cursors]


def gzip_cases(server: Server) -> list[Case]:
    """Pages from all over the data. Few of them begin or end where a compressed block does."""
    data, step = server.setup.data, (server.size - 2 * PAGE_BATCHES) // PAGE_STARTS
    starts = [data.next_date(step * index) for index in range(PAGE_STARTS)]
    path = "/v2/batches?start_date={}&end_date={{date}}"
    pages = [with_gzip(server.get(path.format(data.date_texts[start]))) for start in starts]
    return [Case(page, range(start, start + PAGE_BATCHES)) for page, start in zip(pages, starts)]


def table_cases(server: Server, scenario: str) -> list[Case]:
    """Datasette and ROAPI have no cursors: the deep page begins at a date."""
    data = server.setup.data
    if scenario == "page-uncached":
        return [Case(table_page(server), range(PAGE_BATCHES))]
    if scenario == "page-deep":
        deep = data.next_date(server.size // 10 * 9)
        page = table_page(server, (to_micros(data.dates[deep]), data.date_texts[deep]))
        return [Case(page, range(deep, deep + PAGE_BATCHES))]
    found = []
    for r in data.date_ranges(DATE_RANGES):
        end = (str(to_micros(r.end) // 1_000_000) + "{fraction}", f"{r.end:%Y-%m-%dT%H:%M:%S}.{{fraction}}Z")
        found.append(Case(table_page(server, (to_micros(r.start), r.start_text), end), r.rows))
    return found


def table_page(server: Server, start: tuple[int, str] | None = None, end: tuple[str, str] | None = None) -> Request:
    """A page from a start to an end, both given in microseconds and as text."""
    if server.name == "datasette":
        after, until = start[0] if start else 0, end[0] if end else "{number}"
        path = f"/batches/page.json?_shape=array&organisation={quote(ORGANISATION)}"
        return Request(f"{path}&after_date={after}&after_id=&end_date={until}")
    path = everything(server).path + "&limit=1000"
    for operator, bound in (("gte", start), ("lte", end)):
        path += f"&filter%5Bbatch_creation_date%5D{operator}=%27{bound[1]}%27" if bound else ""
    return Request(path)


def everything(server: Server) -> Request:
    """All batches in one response, as v1 sends them."""
    match server.name:
        case "nginx":
            return Request(NGINX_ALL)
        case "datasette":
            return Request(f"/batches/all.json?_shape=array&organisation={quote(ORGANISATION)}")
        case "roapi":
            # Named columns: otherwise it sends the organisation with every batch.
            columns = ",".join(json.loads(server.setup.data.lines[0]))
            path = f"/api/tables/batches?columns={columns}&sort=batch_creation_date,batch_id"
            return Request(f"{path}&filter%5Borganisation%5D=%27{quote(ORGANISATION)}%27")
    return server.get("/v1/batches")


def nothing(server: Server) -> Request:
    """A small response, by the same route where there is one."""
    no_batches = server.get("/v1/batches?start_date=2199-01-01T00:00:00Z")
    return no_batches if server.peer.kind == "api" else Request(HEALTH_PATHS[server.name])
