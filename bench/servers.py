"""The servers that are compared: how each is started, and what it costs."""

import http.client
import json
import os
import pwd
import re
import subprocess
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import prepare
from prepare import PEER_CREDENTIAL, PEERS_FOLDER, START_TIMEOUT_SECS, USUAL, Setup
from wrk import BenchError, Request, require

JWT_SECRET = "a secret of sixty-four bytes, as long as the hash that it is used in"
STOP_TIMEOUT_SECS = 5
# The first byte of 100,000 batches from a slow peer.
READ_TIMEOUT_SECS = 60
# The rest of a load that was cut off.
IDLE_TIMEOUT_SECS = 60
IDLE_CHECKS, IDLE_CHECK_SECS = 3, 0.005
# The kernel's clock for the CPU time of a whole process is `~pid << 3 | 2`.
CPU_CLOCK = 2


class Peer(NamedTuple):
    title: str
    command: str


# bench/peers/README.md explains the options.
BATCHSCAN = "{executable} serve --listen 127.0.0.1:{port} --operator-listen 127.0.0.1:{operator_port}"
UVICORN = (
    "{executable} --app-dir {peers}/fastapi --host 127.0.0.1 --port {port} --workers 2 --loop uvloop "
    "--http httptools --no-access-log --log-level warning --timeout-worker-healthcheck 300 --timeout-keep-alive 300 "
)
PEERS = {
    "batchscan": Peer("batchscan, SQLite", BATCHSCAN),
    "batchscan-release": Peer("batchscan, SQLite, release build", BATCHSCAN),
    "batchscan-postgres": Peer("batchscan, PostgreSQL", BATCHSCAN),
    "fastapi": Peer("FastAPI", UVICORN + "app:app"),
    "fastapi-tuned": Peer("FastAPI, tuned", UVICORN + "tuned:app"),
    "plain-rust": Peer("plain Rust", "{executable} --database {database} --listen 127.0.0.1:{port}"),
    "nginx": Peer("nginx, static files", "{executable} -e stderr -p {prepared} -c nginx.conf"),
    "floor": Peer("floor", "{executable} --response {prepared}/response --listen 127.0.0.1:{port}"),
}
OURS = ("batchscan", "batchscan-release", "batchscan-postgres")
FASTAPI = ("fastapi", "fastapi-tuned")
WITH_POSTGRES = ("batchscan-postgres", *FASTAPI)


class Response(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def text(self) -> bytes:
        """Head and body as HTTP/1.1 sends them. Every server adds its own date."""
        fields = (f"{name}: {value}\r\n" for name, value in self.headers.items() if name.lower() != "date")
        return f"HTTP/1.1 {self.status}\r\n{''.join(fields)}\r\n".encode() + self.body


class Server(AbstractContextManager):
    """A running server; `with` stops it. nginx and the floor send what `prepared` contains, and accept any `token`."""

    def __init__(self, setup: Setup, name: str, size: int | str = USUAL, cores: set[int] | None = None,
                 cache: bool = True, token: str = ""):
        self.setup, self.name, self.size, self.peer, self.token = setup, name, size, PEERS[name], token
        self.port, self.operator_port, self.counter = prepare.free_port(), prepare.free_port(), setup.wrk.reserve()
        self.postgres = setup.postgres if name in WITH_POSTGRES else None
        self.prepared = setup.folder / f"prepared-{size}"
        self.prepared.mkdir(exist_ok=True)
        self.database, self.credential = self.find_database()
        # No server logs requests.
        env = {"BATCHSCAN_LOG": "warn", "BATCHSCAN_DATABASE": self.database, "DATABASE_URL": self.database,
               "JWT_SECRET": JWT_SECRET}
        command = self.command() + (["--cache-mib", "0"] if name in OURS and not cache else [])
        self.log = setup.folder / f"{name}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(prepare.on_cores(cores or setup.plan.server_cores, command),
                                            env=os.environ | env, stdout=log, stderr=log)
        try:
            self.wait_until_ready()
        except BaseException:
            self.__exit__()
            raise

    def find_database(self) -> tuple[str, dict | None]:
        if self.name in OURS:
            database = self.setup.database("postgres" if self.postgres else self.size)
            return database.url, database.credentials[0]
        if self.name in FASTAPI:
            return self.setup.fastapi_database, PEER_CREDENTIAL
        return (str(self.setup.plain_rust_database), PEER_CREDENTIAL) if self.name == "plain-rust" else ("", None)

    def command(self) -> list[str]:
        if self.name == "nginx":
            config = (PEERS_FOLDER / "nginx/nginx.conf.in").read_text()
            config = config.replace("@USER@", pwd.getpwuid(os.geteuid()).pw_name).replace("@PORT@", str(self.port))
            (self.prepared / "nginx.conf").write_text(config)
        values = {"executable": self.setup.executables[self.name], "peers": PEERS_FOLDER} | vars(self)
        return [word.format(**values) for word in self.peer.command.split()]

    def wait_until_ready(self) -> None:
        request = token_request(self.credential) if self.credential else Request("/v2/batches")
        deadline = time.monotonic() + START_TIMEOUT_SECS
        while True:
            try:
                response = self.fetch(request)
                if response.status in (200, 304):
                    self.token = token_in(response) if self.credential else self.token
                    return
            except (OSError, http.client.HTTPException):
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise BenchError(f"{self.peer.title} does not start\n{self.log_tail()}")
            time.sleep(0.02)

    def __exit__(self, *_) -> None:
        processes = descendants(self.process.pid)
        self.process.terminate()
        try:
            self.process.wait(STOP_TIMEOUT_SECS)
        except subprocess.TimeoutExpired:
            subprocess.run(["kill", "-KILL", *map(str, processes)], capture_output=True)
            self.process.wait()

    def log_tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])

    def connect(self, port: int | None = None) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=READ_TIMEOUT_SECS)

    def fetch(self, request: Request, port: int | None = None) -> Response:
        connection = self.connect(port)
        try:
            connection.request(request.method, request.path, request.body or None, dict(request.headers))
            response = connection.getresponse()
            return Response(response.status, response.headers, response.read())
        finally:
            connection.close()

    def get(self, path: str) -> Request:
        return with_token(path, self.token)

    def next_counter(self) -> int:
        self.counter += 1
        return self.counter

    def cache_hits(self) -> int:
        """Responses from batchscan's page cache."""
        if self.name not in OURS:
            return 0
        metrics = self.fetch(Request("/metrics"), self.operator_port).body
        return int(re.search(rb"^batchscan_page_cache_hits_total (\d+)", metrics, re.MULTILINE)[1])

    def cpu(self) -> list[dict[int, float]]:
        """CPU times of the server, and of its PostgreSQL if it has one."""
        return [cpu_times(owner.pid) for owner in (self.process, self.postgres) if owner]

    def cpu_since(self, before: list[dict[int, float]]) -> dict[str, float]:
        pairs = zip(("cpu_ms", "database_cpu_ms"), before, self.cpu())
        return {name: sum(secs - old.get(pid, 0) for pid, secs in new.items()) * 1e3 for name, old, new in pairs}

    def memory_mib(self, field: str) -> float:
        """`VmRSS` (now) or `VmHWM` (peak). Memory that processes share counts in each."""
        statuses = "".join(read_proc(f"{pid}/status") for pid in descendants(self.process.pid))
        return sum(map(int, re.findall(rf"^{field}:\s+(\d+) kB", statuses, re.MULTILINE))) / 1024

    def reset_peak(self) -> None:
        for pid in descendants(self.process.pid):
            Path(f"/proc/{pid}/clear_refs").write_text("5")

    def settle(self) -> None:
        """Waits until the server and its PostgreSQL are idle: no thread runs, or could run, for a moment."""
        deadline, idle = time.monotonic() + IDLE_TIMEOUT_SECS, 0
        while idle < IDLE_CHECKS:
            require(time.monotonic() < deadline, f"{self.peer.title} is busy {IDLE_TIMEOUT_SECS} s after its load")
            time.sleep(IDLE_CHECK_SECS)
            owners = (owner.pid for owner in (self.process, self.postgres) if owner)
            idle = 0 if any(is_running(process) for pid in owners for process in descendants(pid)) else idle + 1


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


def is_running(pid: int) -> bool:
    """Whether a thread of a process runs, waits for a core or for the disk."""
    stats = (read_proc(f"{task}/stat").rpartition(") ")[2] for task in Path("/proc").glob(f"{pid}/task/*"))
    return any(stat.startswith(("R", "D")) for stat in stats)


def cpu_times(pid: int) -> dict[int, float]:
    """Seconds of CPU time, in user space and kernel, of a process and its descendants."""
    times = {}
    for process in descendants(pid):
        try:
            times[process] = time.clock_gettime(~process << 3 | CPU_CLOCK)
        except OSError:
            # It has ended.
            pass
    return times


def token_request(credential: dict) -> Request:
    body = "grant_type=client_credentials&client_id={client_id}&client_secret={client_secret}".format(**credential)
    return Request("/v2/auth", (("content-type", "application/x-www-form-urlencoded"),), "POST", body)


def token_in(response: Response) -> str:
    return json.loads(response.body)["access_token"]


def with_token(path: str, token: str) -> Request:
    return Request(path, (("authorization", f"Bearer {token}"),))
