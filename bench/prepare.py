"""Everything that must exist before the first timing: packages, executables, data, databases, PostgreSQL."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time
import tomllib
from bisect import bisect_left, bisect_right
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from wrk import BenchError, Wrk

ROOT = Path(__file__).resolve().parent.parent
PEERS_FOLDER = ROOT / "bench/peers"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute()
HOME = TARGET / "bench"

# Debian keeps servers and PostgreSQL's programs out of the PATH.
SEARCH_PATH = [os.environ.get("PATH", ""), "/usr/sbin", *map(str, Path("/usr/lib/postgresql").glob("*/bin"))]

SMALL, USUAL, LARGE = 10_000, 100_000, 1_000_000
PAGE_BATCHES = 1_000
ORGANISATION = "Green Valley Nursery"
# The peers' only credential, as long as a real one.
PEER_CREDENTIAL = {"client_id": "bs_benchmark", "client_secret": "Zm9yLXRoZS1wZWVycy1vbmx5LW5vdC1hLXNlY3JldC0"}

RANGE_BATCHES = 20
RANGE_ATTEMPTS = 1_000_000
# The end of a date range varies within a second in which no batch was created.
RANGE_GAP = timedelta(seconds=3)

COMMAND_TIMEOUT_SECS = 600
START_TIMEOUT_SECS = 60


def install_packages() -> None:
    run([ROOT / "xtask/setup.sh", "bench"])


def find_program(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join(SEARCH_PATH))


def build(package: str) -> Path:
    """Builds an executable with the profile of deployments."""
    profiles = tomllib.loads((ROOT / "Cargo.toml").read_text()).get("profile", {})
    profile = "dist" if "dist" in profiles else "release"
    run(["cargo", "build", "--profile", profile, "--package", package, "--bin", package], cwd=ROOT)
    return TARGET / profile / package


def make_environment() -> Path:
    """The peers' virtual environment, kept until requirements.txt changes or the folder is moved."""
    requirements, venv = PEERS_FOLDER / "requirements.txt", HOME / "venv"
    installed, wanted = venv / "installed.txt", f"# {venv}\n{requirements.read_text()}"
    if not (installed.is_file() and installed.read_text() == wanted):
        print("installing Python packages:", requirements, flush=True)
        run(["python3", "-m", "venv", "--clear", venv])
        run([venv / "bin/pip", "install", "--quiet", "--requirement", requirements])
        installed.write_text(wanted)
    return venv


def run(command: list, **options) -> None:
    """Runs a command and shows its output."""
    print("$", *command, flush=True)
    if subprocess.run(command, **options).returncode:
        raise BenchError(f"{Path(command[0]).name} failed")


def output_of(command: list, env: dict = {}, **options) -> str:
    """Runs a command and returns its output; the error contains its stderr."""
    options |= {"capture_output": True, "text": True, "timeout": COMMAND_TIMEOUT_SECS}
    done = subprocess.run(command, env=clean_env() | env, **options)
    if done.returncode:
        raise BenchError(f"{' '.join(map(str, command[:4]))}: exit status {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def clean_env() -> dict:
    """The environment without the developer's settings of batchscan and PostgreSQL."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BATCHSCAN_", "PG"))}
    return kept | {"PYTHONDONTWRITEBYTECODE": "1"}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def to_micros(date: datetime) -> int:
    return (date - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)


class DateRange(NamedTuple):
    """A date range with exactly twenty batches, also if `end` gets a fraction of a second."""

    rows: range
    start: datetime
    start_text: str
    end: datetime


class Data:
    """The batches that every server has, as NDJSON from a demo, in files of several sizes."""

    def __init__(self, folder: Path, executable: Path, largest: int):
        self.folder, self.largest = folder, largest
        pull_demo(executable, largest, self.file(largest))
        for size in {SMALL, USUAL} - {largest}:
            with self.file(size).open("w") as target:
                target.writelines(self.read(size))

    def file(self, batches: int) -> Path:
        return self.folder / f"batches-{batches}.ndjson"

    def read(self, count: int, step: int = 1):
        """Every `step`th of the first `count` lines."""
        with self.file(self.largest).open() as lines:
            yield from islice(lines, 0, count, step)

    @cached_property
    def lines(self) -> list[str]:
        """The usual data in memory, to check responses."""
        return list(self.read(USUAL))

    @cached_property
    def date_texts(self) -> list[str]:
        return [json.loads(line)["batch_creation_date"] for line in self.lines]

    @cached_property
    def dates(self) -> list[datetime]:
        return [datetime.fromisoformat(text) for text in self.date_texts]

    def first_of_date(self, row: int) -> int:
        """The first row with the same date, which is where a start date begins. Only rows in memory have one."""
        return bisect_left(self.dates, self.dates[row]) if row < len(self.dates) else row

    def next_date(self, row: int) -> int:
        """The first row from this one on where a start date can begin."""
        return row if self.first_of_date(row) == row else bisect_right(self.dates, self.dates[row])

    def date_ranges(self, count: int) -> list[DateRange]:
        """Random date ranges, the same for every server."""
        dice, found = random.Random(RANGE_BATCHES), []
        for _ in range(RANGE_ATTEMPTS):
            first = dice.randrange(len(self.dates) - RANGE_BATCHES)
            last, following = self.dates[first + RANGE_BATCHES - 1], self.dates[first + RANGE_BATCHES]
            if self.first_of_date(first) == first and following - last >= RANGE_GAP:
                end = last.replace(microsecond=0) + timedelta(seconds=1)
                rows = range(first, first + RANGE_BATCHES)
                found.append(DateRange(rows, self.dates[first], self.date_texts[first], end))
                if len(found) == count:
                    return found
        raise BenchError(f"the data has too few date ranges of exactly {RANGE_BATCHES} batches")


def pull_demo(executable: Path, batches: int, target: Path) -> None:
    print(f"generating {batches:,} batches", flush=True)
    command = [executable, "demo", "--listen", "127.0.0.1:0", "--batches", str(batches)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, env=clean_env(), **streams) as demo:
        try:
            printed, labels = {}, ("client id", "client secret", "listening on")
            while len(printed) < len(labels) and (line := demo.stdout.readline()):
                for label in labels:
                    if line.strip().startswith(label):
                        printed[label] = line.strip().removeprefix(label).strip(" :")
            client_id, secret, url = (printed.get(label, "") for label in labels)
            pull = [executable, "pull", "--format", "ndjson", "--url", url, "--client-id", client_id]
            output_of([*pull, "--output", target], env={"BATCHSCAN_CLIENT_SECRET": secret})
        finally:
            demo.terminate()
    with target.open() as lines:
        if (count := sum(1 for _ in lines)) != batches:
            raise BenchError(f"pulled {count} batches from a demo of {batches}")


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

    SETTINGS = ("listen_addresses=127.0.0.1", "max_connections=200", "shared_buffers=1GB", "max_wal_size=2GB")

    def __init__(self, stack: ExitStack, log: Path):
        # PostgreSQL does not run as root, and its user cannot enter every folder of root.
        user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        folder = Path(output_of(["mktemp", "--directory", "--tmpdir", "batchscan-bench-XXXXXX"], **user).strip())
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        self.port, programs = free_port(), Path(find_program("initdb")).parent
        initdb = [programs / "initdb", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--username=postgres"]
        output_of([*initdb, "--pgdata", folder / "data"], cwd=folder, **user)
        command = [programs / "postgres", "-D", folder / "data", "-k", folder, "-p", str(self.port)]
        command += [f"--{setting}" for setting in self.SETTINGS]
        with log.open("w") as file:
            self.process = subprocess.Popen(command, env=clean_env(), cwd=folder, stdout=file, stderr=file, **user)
        stack.callback(self.stop)
        deadline = time.monotonic() + START_TIMEOUT_SECS
        while subprocess.run(self.psql("postgres", "select 1"), env=clean_env(), capture_output=True).returncode:
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise BenchError(f"PostgreSQL does not start\n{log.read_text()}")
            time.sleep(0.1)

    def psql(self, database: str, sql: str) -> list:
        return [find_program("psql"), "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", self.url(database), "-c", sql]

    def sql(self, database: str, sql: str) -> str:
        return output_of(self.psql(database, sql)).strip()

    def url(self, database: str) -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str) -> str:
        self.sql("postgres", f"create database {name}")
        return self.url(name)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(COMMAND_TIMEOUT_SECS)


class Setup:
    """What a run works with. Makes what the plan needs and nothing else."""

    def __init__(self, plan, executable: Path, stack: ExitStack):
        self.plan, self.executable, self.folder = plan, executable, HOME / "run"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.wrk = Wrk(self.folder)
        # Seconds of the peers' loader by (kind of database, batches): a rough comparison for imports.
        self.load_seconds: dict[tuple[str, int], float] = {}
        self.peer_urls: dict[int, str] = {}
        has_peers = plan.has("fastapi", "fastapi-tuned", "datasette", "roapi", "plain-rust")
        self.venv = make_environment() if has_peers else None
        self.plain_rust = build("plain-rust") if plan.has("plain-rust") else None
        self.data = Data(self.folder, executable, USUAL if plan.quick else LARGE)
        uses_postgres = plan.has("fastapi", "fastapi-tuned", "batchscan-postgres")
        self.postgres = Postgres(stack, self.folder / "postgres.log") if uses_postgres else None
        self.databases = self.make_databases()
        for size in [USUAL, LARGE] if plan.needs_large("v1") else [USUAL]:
            self.load_peers(size)

    def make_databases(self) -> dict[str | int, Database]:
        """By size, plus "many" organisations and "postgres"."""
        plan, sizes = self.plan, [USUAL]
        sizes += [SMALL] if plan.wants("scale") else []
        sizes += [LARGE] if plan.needs_large("scale", "v1", "pull") else []
        databases = {}
        for size in sizes:
            databases[size] = Database(self.executable, f"sqlite:{self.folder}/one-{size}.db")
            databases[size].add_organisation(ORGANISATION, self.data.file(size))
        if plan.wants("scale", "mixed"):
            print(f"making {plan.organisations:,} organisations", flush=True)
            databases["many"] = Database(self.executable, f"sqlite:{self.folder}/many.db")
            lines = self.data.read(self.data.largest)
            for index in range(plan.organisations):
                databases["many"].add_organisation(f"Nursery {index}", input="".join(islice(lines, PAGE_BATCHES)))
        if plan.has("batchscan-postgres"):
            databases["postgres"] = Database(self.executable, self.postgres.create_database("batchscan"))
            databases["postgres"].add_organisation(ORGANISATION, self.data.file(USUAL))
            self.postgres.sql("batchscan", "vacuum (analyze)")
        return databases

    def load_peers(self, size: int) -> None:
        """The same batches in the peers' own databases."""
        if self.plan.has("datasette", "plain-rust"):
            self.load(size, "SQLite", "--sqlite", self.peer_file(size, "db"))
        if self.plan.has("datasette"):
            folder = self.peer_file(size, "datasette")
            shutil.copytree(PEERS_FOLDER / "datasette", folder)
            os.link(self.peer_file(size, "db"), folder / "batches.db")
            inspect = [self.venv / "bin/datasette", "inspect", "batches.db", "--inspect-file", "inspect-data.json"]
            output_of(inspect, cwd=folder)
        if self.plan.has("roapi"):
            parquet = self.peer_file(size, "parquet")
            self.load(size, "Parquet", "--parquet", parquet)
            config = (PEERS_FOLDER / "roapi/roapi.yaml.in").read_text().replace("@PARQUET@", str(parquet))
            self.peer_file(size, "yaml").write_text(config)
        if self.plan.has("fastapi", "fastapi-tuned"):
            self.peer_urls[size] = self.postgres.create_database(f"peers_{size}")
            self.load(size, "PostgreSQL", "--postgres", self.peer_urls[size])

    def load(self, size: int, kind: str, *target) -> None:
        command = [self.venv / "bin/python", PEERS_FOLDER / "load.py", self.data.file(size)]
        command += ["--organisation", ORGANISATION, "--client-id", PEER_CREDENTIAL["client_id"]]
        command += ["--client-secret", PEER_CREDENTIAL["client_secret"]]
        started = time.monotonic()
        output_of([*command, *target])
        self.load_seconds[kind, size] = time.monotonic() - started

    def peer_file(self, size: int, suffix: str) -> Path:
        return self.folder / f"peers-{size}.{suffix}"
