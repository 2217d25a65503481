"""Everything that must exist before a timing: packages, executables, data, databases, PostgreSQL. Each is made when it
is first used, so that a run makes what its scenarios need and nothing else."""

import hashlib
import json
import os
import random
import re
import shutil
import socket
import sqlite3
import subprocess
from bisect import bisect_left
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from functools import cache, cached_property
from itertools import islice
from pathlib import Path

from wrk import BenchError, Wrk, require

ROOT = Path(__file__).resolve().parent.parent
PEERS_FOLDER = ROOT / "bench/peers"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute()
HOME = TARGET / "bench"

SMALL, USUAL, LARGE = 10_000, 100_000, 1_000_000
PAGE_BATCHES = 1_000
ORGANISATION = "Green Valley Nursery"
# The peers' only credential, as long as a real one.
PEER_CREDENTIAL = {"client_id": "bs_benchmark", "client_secret": "Zm9yLXRoZS1wZWVycy1vbmx5LW5vdC1hLXNlY3JldC0"}
PEER_SECRET_HASH = hashlib.sha256(PEER_CREDENTIAL["client_secret"].encode()).hexdigest()

RANGE_BATCHES = 20
RANGE_ATTEMPTS = 1_000_000
# The end of a date range varies within a second in which no batch was created.
RANGE_GAP = timedelta(seconds=3)

COMMAND_TIMEOUT_SECS = 600
START_TIMEOUT_SECS = 60


def install_packages() -> None:
    run([ROOT / "xtask/setup.sh", "bench"])
    # Debian keeps servers and PostgreSQL's programs out of the PATH.
    folders = [os.environ["PATH"], "/usr/sbin", *Path("/usr/lib/postgresql").glob("*/bin")]
    os.environ |= {"PATH": ":".join(map(str, folders)), "PYTHONDONTWRITEBYTECODE": "1"}
    # The developer's settings are not the benchmark's.
    for name in [name for name in os.environ if name.startswith(("BATCHSCAN_", "PG"))]:
        del os.environ[name]


def build(package: str, profile: str = "dist") -> Path:
    run(["cargo", "build", "--profile", profile, "--package", package], cwd=ROOT)
    return TARGET / profile / package


def make_environment() -> Path:
    """FastAPI's virtual environment, kept until requirements.txt changes or the folder is moved."""
    requirements, venv = PEERS_FOLDER / "requirements.txt", HOME / "venv"
    installed, wanted = venv / "installed.txt", f"# {venv}\n{requirements.read_text()}"
    if not (installed.is_file() and installed.read_text() == wanted):
        run(["python3", "-m", "venv", "--clear", venv])
        run([venv / "bin/pip", "install", "--quiet", "--requirement", requirements])
        installed.write_text(wanted)
    return venv


def run(command: list, **options) -> None:
    """Runs a command and shows its output."""
    print("$", *command, flush=True)
    require(subprocess.run(command, **options).returncode == 0, f"{Path(command[0]).name} failed")


def output_of(command: list, env: dict = {}, **options) -> str:
    """Runs a command and returns its output; the error contains its stderr."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": COMMAND_TIMEOUT_SECS}
    done = subprocess.run(command, env=os.environ | env, **streams, **options)
    words = " ".join(map(str, command[:4]))
    require(done.returncode == 0, f"{words}: exit status {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def on_cores(cores: set[int], command: list) -> list:
    """Runs a command on these cores and, if root allows it, before other processes of the machine."""
    priority = ["nice", "--adjustment", "-10"] if os.geteuid() == 0 else []
    return [*priority, "taskset", "--cpu-list", ",".join(map(str, cores)), *command]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Data:
    """The batches that every server has, as NDJSON from a demo, in files of several sizes."""

    def __init__(self, folder: Path, executable: Path, largest: int):
        self.folder, self.largest = folder, largest
        pull_demo(executable, largest, folder / f"batches-{largest}.ndjson")

    def file(self, batches: int) -> Path:
        path = self.folder / f"batches-{batches}.ndjson"
        if not path.exists():
            path.write_text("".join(self.read(batches)))
        return path

    def read(self, count: int, step: int = 1):
        """Every `step`th of the first `count` lines."""
        with self.file(self.largest).open() as lines:
            yield from islice(lines, 0, count, step)

    @cached_property
    def batches(self) -> list[dict]:
        """The usual data in memory."""
        return list(map(json.loads, self.read(USUAL)))

    @cached_property
    def dates(self) -> list[datetime]:
        return [datetime.fromisoformat(batch["batch_creation_date"]) for batch in self.batches]

    def date_at(self, row: int) -> str:
        return self.batches[row]["batch_creation_date"]

    def page_from(self, date: str) -> range:
        """The rows of the page that starts at a date. Several batches may have the same."""
        first = bisect_left(self.dates, datetime.fromisoformat(date))
        return range(first, first + PAGE_BATCHES)

    def date_ranges(self, count: int) -> list[tuple[range, str, datetime]]:
        """Rows, start and end of random date ranges, the same for every server. Each has exactly twenty batches, also if
        the end gets a fraction of a second."""
        dice, found = random.Random(RANGE_BATCHES), []
        for _ in range(RANGE_ATTEMPTS):
            start = self.date_at(dice.randrange(len(self.dates) - RANGE_BATCHES))
            rows = self.page_from(start)[:RANGE_BATCHES]
            last = self.dates[rows[-1]]
            if self.dates[rows.stop] - last >= RANGE_GAP:
                found.append((rows, start, last.replace(microsecond=0) + timedelta(seconds=1)))
                if len(found) == count:
                    return found
        raise BenchError(f"the data has too few date ranges of exactly {RANGE_BATCHES} batches")


def pull_demo(executable: Path, batches: int, target: Path) -> None:
    print(f"generating {batches:,} batches", flush=True)
    command = [executable, "demo", "--listen", "127.0.0.1:0", "--batches", str(batches)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, **streams) as demo:
        try:
            text = ""
            while "listening on" not in text and (line := demo.stdout.readline()):
                text += line
            client_id, secret, url = re.findall(r"^ *(?:client id|client secret|listening on) +(\S+)", text, re.MULTILINE)
            pull = [executable, "pull", "--format", "ndjson", "--url", url, "--client-id", client_id]
            output_of([*pull, "--output", target], env={"BATCHSCAN_CLIENT_SECRET": secret})
        finally:
            demo.terminate()


class Database:
    """A database of batchscan, and the credentials of its organisations."""

    def __init__(self, executable: Path, url: str):
        self.executable, self.url, self.credentials = executable, url, []

    def run(self, *arguments, **options) -> str:
        return output_of([self.executable, *arguments], env={"BATCHSCAN_DATABASE": self.url}, **options)

    def add_organisation(self, name: str, file: Path | str = "-", **options) -> None:
        """Imports a file or `input`, and issues a credential."""
        self.run("org", "add", name)
        self.run("import", "--org", name, "--format", "ndjson", file, **options)
        self.credentials.append(json.loads(self.run("credential", "issue", "--org", name, "--json")))


class Postgres:
    """A PostgreSQL server in a temporary folder, with its share of a small machine."""

    # Tables are vacuumed when they are filled: nothing that happens by itself counts as the cost of a request.
    SETTINGS = ("--listen_addresses=127.0.0.1", "--max_connections=200", "--shared_buffers=1GB", "--max_wal_size=2GB",
                "--autovacuum=off")

    def __init__(self, stack: ExitStack, cores: set[int]):
        # PostgreSQL does not run as root, and its user cannot enter every folder of root.
        user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        folder = Path(output_of(["mktemp", "--directory", "--tmpdir", "batchscan-bench-XXXXXX"], **user).strip())
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        self.port = free_port()
        initdb = ["initdb", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--username=postgres"]
        output_of([*initdb, "--pgdata", folder / "data"], cwd=folder, **user)
        settings = [f"--port={self.port}", f"--unix_socket_directories={folder}", *self.SETTINGS]
        pg_ctl = ["pg_ctl", "--pgdata", folder / "data", "--wait"]
        start = ["start", "--log", folder / "log", "--options", " ".join(settings)]
        output_of(on_cores(cores, [*pg_ctl, *start]), cwd=folder, **user)
        stack.callback(subprocess.run, [*pg_ctl, "stop", "--mode", "fast"], cwd=folder, capture_output=True, **user)
        self.pid = int((folder / "data/postmaster.pid").read_text().split()[0])

    def psql(self, database: str, *arguments) -> list:
        return ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", self.url(database), *arguments]

    def sql(self, database: str, sql: str) -> str:
        return output_of(self.psql(database, "-c", sql)).strip()

    def url(self, database: str) -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str) -> str:
        self.sql("postgres", f"create database {name}")
        return self.url(name)


class Setup:
    """What a run works with."""

    def __init__(self, plan, executables: dict[str, Path], stack: ExitStack):
        self.plan, self.executables, self.stack, self.folder = plan, executables, stack, HOME / "run"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.executable, self.wrk = executables["batchscan"], Wrk(self.folder, on_cores(plan.load_cores, []))

    @cached_property
    def data(self) -> Data:
        return Data(self.folder, self.executable, self.plan.largest)

    @cached_property
    def postgres(self) -> Postgres:
        return Postgres(self.stack, self.plan.load_cores)

    @cache
    def database(self, key: int | str) -> Database:
        """batchscan's database: SQLite of a size or with "many" organisations, or "postgres"."""
        if key == "postgres":
            database = Database(self.executable, self.postgres.create_database("batchscan"))
            database.add_organisation(ORGANISATION, self.data.file(USUAL))
            self.postgres.sql("batchscan", "vacuum (analyze)")
            return database
        database = Database(self.executable, f"sqlite:{self.folder}/batchscan-{key}.db")
        if key != "many":
            database.add_organisation(ORGANISATION, self.data.file(key))
            return database
        print(f"making {self.plan.organisations:,} organisations", flush=True)
        lines = self.data.read(self.data.largest)
        for index in range(self.plan.organisations):
            database.add_organisation(f"Nursery {index}", input="".join(islice(lines, PAGE_BATCHES)))
        return database

    @cached_property
    def fastapi_database(self) -> str:
        url, values = self.postgres.create_database("fastapi"), {"organisation": ORGANISATION}
        values |= {"client_id": PEER_CREDENTIAL["client_id"], "secret_hash": PEER_SECRET_HASH}
        variables = [word for name, value in values.items() for word in ("-v", f"{name}={value}")]
        with self.data.file(USUAL).open() as lines:
            output_of(self.postgres.psql("fastapi", *variables, "-f", PEERS_FOLDER / "fastapi/load.sql"), stdin=lines)
        return url

    @cached_property
    def plain_rust_database(self) -> Path:
        path = self.folder / "plain-rust.db"
        with sqlite3.connect(path) as database:
            database.executescript((PEERS_FOLDER / "plain-rust/schema.sql").read_text())
            client = (PEER_CREDENTIAL["client_id"], PEER_SECRET_HASH, ORGANISATION)
            database.execute("INSERT INTO clients VALUES (?, ?, ?)", client)
            rows = map(plain_rust_row, self.data.batches, self.data.dates)
            database.executemany(f"INSERT INTO batches VALUES ({', '.join('?' * 19)})", rows)
            database.execute("ANALYZE")
        return path


def plain_rust_row(batch: dict, date: datetime) -> list:
    """Dates as microseconds since 1970 and decimals as hundredths, in the order of the API's fields."""
    since_1970 = date - datetime(1970, 1, 1, tzinfo=timezone.utc)
    values = batch | {"batch_creation_date": since_1970 // timedelta(microseconds=1)}
    decimals = {name: int(text.replace(".", "")) for name, text in batch.items() if name.startswith("avg_") and text}
    return [ORGANISATION, *(values | decimals).values()]
