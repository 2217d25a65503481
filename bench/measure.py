"""The timings. Each returns rows: dicts with a section, an entry, a round and figures."""

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from typing import NamedTuple

from checks import check, check_batches
from prepare import ORGANISATION, PAGE_BATCHES, RANGE_BATCHES, USUAL, Database, Setup, output_of
from report import SPREAD_MAX, Results, stream_section
from scenarios import (DATABASES, FIRST_PAGE, FIRST_PAGE_UNCACHED, UNCACHED, Case, find_etag, make_cases,
                       organisation_tokens, split_entry, with_gzip)
from servers import Server, with_token
from wrk import Request, interrupt, read_result, require

# Enough to keep one core busy, and few enough that latency is mostly work.
CONNECTIONS, MIXED_CONNECTIONS = 16, 64
# Throughput and latency.
TIMING_SECS = 2
# A round is so many turns of each server: short, because slow phases of a shared machine are.
TURNS, TURN_SECS = 5, 0.2
# wrk is stopped before.
ROUND_SECS_MAX = 3600
# Of a hundred requests.
MIX = {"first": 40, "unchanged": 30, "date-range": 20, "uncached": 5, "gzip": 5}
MIXED_REQUESTS = 20_000
WRITTEN_ORGANISATION = "Busy Valley Nursery"
# The first import has begun its transaction by then.
IMPORT_HEAD_START_SECS = 0.3
READ_BYTES = 256 << 10


def in_turn(items, round_index: int) -> list:
    """Forwards in even rounds, backwards in odd ones, so that noise affects all servers alike."""
    items = list(items)
    return items[::-1] if round_index % 2 else items


def show(row: dict) -> dict:
    """Prints a row while the run goes on."""
    texts = (f"{name} {value:,.3f}" if isinstance(value, float) else f"{name} {value}" for name, value in row.items())
    print("  " + ", ".join(texts), flush=True)
    return row


class Entrant(NamedTuple):
    """A server that takes part in a scenario."""

    entry: str
    kind: str
    server: Server
    cases: list[Case]
    min_bytes: int

    def load(self) -> tuple[int, list[Request], int]:
        return self.server.port, [case.request for case in self.cases], CONNECTIONS


def measure_scenario(setup: Setup, scenario: str) -> list[dict]:
    """All servers run at the same time and take turns of a second: a slow phase of the machine affects all of them. A
    scenario with a wide spread is measured for twice as many rounds."""
    with ExitStack() as stack:
        entrants: list[Entrant] = []
        for entry in setup.plan.entries(scenario):
            entrants.append(enter(stack, setup, scenario, entry, entrants))
        rows = time_servers(setup, scenario, entrants)
        rows += take_turns(setup, scenario, entrants, 0)
        if (spread := Results(rows).spread(scenario)) > SPREAD_MAX and not setup.plan.quick:
            print(f"{scenario}: the spread is {spread:.0%}, measured again", flush=True)
            rows += take_turns(setup, scenario, entrants, setup.plan.rounds)
    return rows


def enter(stack: ExitStack, setup: Setup, scenario: str, entry: str, others: list[Entrant]) -> Entrant:
    """Starts a server. The first one is batchscan, whose responses nginx and the floor send."""
    name, kind = split_entry(scenario, entry)
    model = others[0].server if others else None
    if name == "nginx":
        (model.prepared / "page.json").write_bytes(model.fetch(model.get(FIRST_PAGE)).body)
    if name == "floor":
        request = others[0].cases[0].request.fill(model.next_counter())
        (model.prepared / "response").write_bytes(model.fetch(request).text())
    # Without a cache where a few cursors take turns.
    size, cache = DATABASES.get(kind, USUAL), scenario != "page-deep"
    server = stack.enter_context(Server(setup, name, size, cache=cache, token=model.token if model else ""))
    cases = others[0].cases if name == "floor" else make_cases(server, kind)
    return Entrant(entry, kind, server, cases, check(server, kind, cases))


def time_servers(setup: Setup, scenario: str, entrants: list[Entrant]) -> list[dict]:
    """Throughput and latency, one server after another. The first time only warms up."""
    timings = {}
    for entrant in [*entrants, *entrants]:
        timings[entrant.entry] = setup.wrk.run(*entrant.load(), TIMING_SECS, entrant.min_bytes)
        entrant.server.settle()
    return [show({"section": scenario, "entry": entry, "round": -1, **figures}) for entry, figures in timings.items()]


def take_turns(setup: Setup, scenario: str, entrants: list[Entrant], first_round: int) -> list[dict]:
    rows = []
    for round_index in range(first_round, first_round + setup.plan.rounds):
        with ExitStack() as stack:
            costs = take_round(stack, setup, entrants)
        for entry, cost in costs.items():
            rows.append(show({"section": scenario, "entry": entry, "round": round_index, **cost}))
    return rows


def take_round(stack: ExitStack, setup: Setup, entrants: list[Entrant]) -> dict[str, dict]:
    """CPU time per request of each server. Each has its own wrk, and all but one of them are stopped."""
    loads, spent = {}, {entrant.entry: Counter() for entrant in entrants}
    hits = [entrant.server.cache_hits() for entrant in entrants]
    for turn in range(TURNS):
        for entrant in in_turn(entrants, turn):
            before = entrant.server.cpu()
            if turn == 0:
                load = loads[entrant.entry] = setup.wrk.start(*entrant.load(), ROUND_SECS_MAX)
                stack.callback(load.kill)
            load = loads[entrant.entry]
            load.send_signal(signal.SIGCONT)
            time.sleep(TURN_SECS)
            if turn < TURNS - 1:
                load.send_signal(signal.SIGSTOP)
            else:
                interrupt(load)
            entrant.server.settle()
            spent[entrant.entry].update(entrant.server.cpu_since(before))
    for entrant, earlier in zip(entrants, hits):
        served = entrant.server.cache_hits() - earlier
        require(not (served and entrant.kind in UNCACHED), f"{entrant.kind}: the page cache served {served} responses")
        result = read_result(loads[entrant.entry].communicate()[0], entrant.min_bytes)
        # Each connection had another request in flight at the end, and its CPU time counts.
        count = result["requests"] + CONNECTIONS
        spent[entrant.entry] = {name: value / count for name, value in spent[entrant.entry].items()}
    return spent


def measure_streams(setup: Setup) -> list[dict]:
    """v1: all batches in one response. A new process each time: memory left by one must not count for the next."""
    plan, rows = setup.plan, []
    for size in {size for size, _, name in plan.streams() if name == "nginx"}:
        with Server(setup, "batchscan", size) as server:
            for file, path in {"page.json": FIRST_PAGE, "all.json": "/v1/batches"}.items():
                (server.prepared / file).write_bytes(server.fetch(server.get(path)).body)
    for round_index in range(plan.stream_rounds):
        for size, readers, name in in_turn(plan.streams(), round_index):
            with Server(setup, name, size) as server:
                figures = measure_stream(server, readers)
                # After the timing, as the check would use memory before it.
                if round_index == 0 and size == USUAL:
                    check_batches(server.fetch(server.get("/v1/batches")).body, setup.data.batches)
            key = {"section": stream_section(size, readers), "entry": name, "round": round_index}
            rows.append(show(key | figures))
    return rows


def measure_stream(server: Server, readers: int) -> dict:
    # A response of v1 would use the memory that is measured.
    server.fetch(server.get(f"{FIRST_PAGE}?start_date=2199-01-01T00:00:00Z"))
    server.settle()
    idle = server.memory_mib("VmRSS")
    server.reset_peak()
    cpu, started = server.cpu(), time.monotonic()
    with ThreadPoolExecutor(readers) as pool:
        sizes, first_bytes = zip(*pool.map(read_stream, [server] * readers))
    seconds = time.monotonic() - started
    # An array of the lines: a comma or a bracket for each line break, and a bracket before the first.
    expected = server.setup.data.file(server.size).stat().st_size + 1
    # Dates of some peers are longer.
    require(min(sizes) >= expected, f"{server.peer.title}, v1: {sizes} bytes, expected {expected}\n{server.log_tail()}")
    return {name: value / readers for name, value in server.cpu_since(cpu).items()} | {
        "first_byte_ms": max(first_bytes) * 1e3,
        "seconds": seconds,
        "mib_per_sec": sum(sizes) / 2**20 / seconds,
        "above_idle_mib": max(server.memory_mib("VmHWM") - idle, 0.0),
    }


def read_stream(server: Server) -> tuple[int, float]:
    """Reads a response and drops it. Returns its size, and the time to the first byte of the body."""
    request, connection, buffer = server.get("/v1/batches"), server.connect(), bytearray(READ_BYTES)
    started = time.monotonic()
    connection.request("GET", request.path, headers=dict(request.headers))
    response = connection.getresponse()
    size = len(response.read(1))
    first_byte = time.monotonic() - started
    while count := response.readinto(buffer):
        size += count
    connection.close()
    return size, first_byte


def measure_mixed(setup: Setup) -> list[dict]:
    """A mix of requests from many organisations, without and with an import running, on all cores."""
    plan, rows, import_loop = setup.plan, [], prepare_imports(setup)
    with Server(setup, "batchscan", "many", plan.all_cores) as server:
        requests = mixed_requests(server)
        for round_index in range(-1, plan.mixed_rounds):
            for entry in in_turn(["batchscan", "batchscan:importing"], round_index):
                server.settle()
                with importing(import_loop) if entry == "batchscan:importing" else nullcontext():
                    result = setup.wrk.run(server.port, requests, MIXED_CONNECTIONS, plan.mixed_secs, 1)
                if round_index >= 0:
                    rows.append(show({"section": "mixed", "entry": entry, "round": round_index, **result}))
    return rows


def prepare_imports(setup: Setup) -> list:
    """A command that imports the same batches again and again, with names that alternate: each import writes all."""
    name, database, files = '"batch_name":"', setup.database("many"), []
    for mark in "AB":
        files.append(setup.folder / f"import-{mark}.ndjson")
        files[-1].write_text("".join(line.replace(name, f"{name}{mark} ", 1) for line in setup.data.read(USUAL)))
    database.run("org", "add", WRITTEN_ORGANISATION)
    # The first import adds batches, all later ones correct them.
    database.run("import", "--org", WRITTEN_ORGANISATION, files[0])
    loop = 'while "$0" import --org "$1" "$3" && "$0" import --org "$1" "$2"; do :; done'
    env = ["env", f"BATCHSCAN_DATABASE={database.url}"]
    return [*env, "sh", "-c", loop, setup.executable, WRITTEN_ORGANISATION, *files]


@contextmanager
def importing(command: list) -> Iterator[None]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    with subprocess.Popen(command, **quiet) as loop:
        time.sleep(IMPORT_HEAD_START_SECS)
        try:
            yield
            require(loop.poll() is None, "an import failed")
        finally:
            os.killpg(loop.pid, signal.SIGTERM)


def mixed_requests(server: Server) -> list[Request]:
    """Requests of all organisations. An eighth of the organisations sends half of them."""
    dice, tokens = random.Random(MIXED_CONNECTIONS), organisation_tokens(server)
    etags = [find_etag(server, with_token(FIRST_PAGE, token)) for token in tokens]
    # Every twentieth date of each organisation.
    lines = server.setup.data.read(len(tokens) * PAGE_BATCHES, RANGE_BATCHES)
    dates, each = [json.loads(line)["batch_creation_date"] for line in lines], PAGE_BATCHES // RANGE_BATCHES
    requests = []
    for kind in dice.choices(list(MIX), MIX.values(), k=MIXED_REQUESTS):
        index = int(dice.random() ** 3 * len(tokens))
        first = index * each + dice.randrange(each - 1)
        page, date_range = with_token(FIRST_PAGE, tokens[index]), "start_date={}&end_date={}".format(*dates[first:])
        requests.append({
            "first": page,
            "unchanged": page.with_header("if-none-match", etags[index]),
            "date-range": page._replace(path=f"{FIRST_PAGE}?{date_range}"),
            "uncached": page._replace(path=FIRST_PAGE_UNCACHED),
            "gzip": with_gzip(page),
        }[kind])
    return requests


def measure_imports(setup: Setup) -> list[dict]:
    """Once each, on all cores; PostgreSQL on one."""
    rows = []
    for size in setup.plan.bulk_sizes:
        urls = {"batchscan": f"sqlite:{setup.folder}/imported-{size}.db"}
        if setup.plan.has("batchscan-postgres"):
            urls["batchscan-postgres"] = setup.postgres.create_database(f"imported_{size}")
        for name, url in urls.items():
            database, file = Database(setup.executable, url), setup.data.file(size)
            database.run("org", "add", ORGANISATION)
            started = time.monotonic()
            database.run("import", "--org", ORGANISATION, file)
            rows.append(bulk_row("import", name, size, started))
    return rows


def measure_pulls(setup: Setup) -> list[dict]:
    """Once each, on all cores."""
    rows = []
    for size in setup.plan.bulk_sizes:
        with Server(setup, "batchscan", size, setup.plan.all_cores) as server:
            command = [setup.executable, "pull", "--output", setup.folder / f"pulled-{size}.csv"]
            command += ["--url", f"http://127.0.0.1:{server.port}", "--client-id", server.credential["client_id"]]
            started = time.monotonic()
            output_of(command, env={"BATCHSCAN_CLIENT_SECRET": server.credential["client_secret"]})
            rows.append(bulk_row("pull", "batchscan", size, started))
    return rows


def bulk_row(section: str, name: str, size: int, started: float) -> dict:
    seconds = time.monotonic() - started
    figures = {"seconds": seconds, "batches_per_sec": size / seconds}
    return show({"section": section, "entry": f"{name}:{size:,} batches", "round": 0, **figures})
