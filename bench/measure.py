"""The timings. Each returns rows: dicts that say what was measured in which round."""

import json
import math
import os
import random
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import servers
from checks import check, check_everything, require
from prepare import LARGE, ORGANISATION, PAGE_BATCHES, RANGE_BATCHES, SMALL, USUAL, Database, Setup, clean_env
from servers import FIRST_PAGE, FIRST_PAGE_UNCACHED, PEERS, REQUEST_SCENARIOS, Case, Server, with_gzip, with_token
from wrk import BenchError, Request

# Enough to keep one core busy, and few enough that latency is mostly work.
CONNECTIONS, MIXED_CONNECTIONS = 16, 64
# Of a hundred requests.
MIX = {"first": 40, "unchanged": 30, "date-range": 20, "uncached": 5, "gzip": 5}
MIXED_REQUESTS = 20_000
WRITTEN_ORGANISATION = "Busy Valley Nursery"
# The import has begun its transaction by then.
IMPORT_HEAD_START_SECS = 0.3
# Slow peers take part in fewer rounds of v1.
SLOW_ROUNDS = 2
READ_BYTES = 256 << 10


def in_turn(items, round_index: int) -> list:
    """Forwards in even rounds, backwards in odd ones, so that noise affects all servers alike."""
    items = list(items)
    return items[::-1] if round_index % 2 else items


def report(row: dict) -> dict:
    """Prints a row while the run goes on."""
    texts = (f"{name} {value:,.3f}" if isinstance(value, float) else f"{name} {value}" for name, value in row.items())
    print("  " + ", ".join(texts), flush=True)
    return row


def measure_requests(setup: Setup) -> list[dict]:
    wanted = [scenario for scenario in REQUEST_SCENARIOS if setup.plan.wants(scenario)]
    return measure_rounds(setup, "requests", setup.plan.servers, wanted, [CONNECTIONS], setup.plan.rounds)


def measure_connections(setup: Setup) -> list[dict]:
    plan, scenarios = setup.plan, ["page-cached", "page-uncached"]
    names = [name for name in plan.servers if name in {"batchscan", "fastapi", "nginx"}]
    return measure_rounds(setup, "connections", names, scenarios, plan.connections, plan.connection_rounds)


def measure_rounds(setup, section: str, names: list, scenarios: list, connections: list, rounds: int) -> list[dict]:
    """Every server in each round; batchscan is started a second time for scenarios without a cache."""
    rows = []
    for round_index in range(rounds):
        for name in in_turn(names, round_index):
            for cache in (True, False):
                own = [s for s in scenarios if s in PEERS[name].scenarios and (s not in servers.WITHOUT_CACHE) == cache]
                if not own:
                    continue
                with Server(setup, name, USUAL, setup.plan.server_cores, cache) as server:
                    for scenario in own:
                        cases = servers.cases(server, scenario)
                        for count in connections:
                            key = {"section": section, "scenario": scenario, "server": name, "connections": count}
                            figures = measure(server, scenario, cases, count)
                            rows.append(report(key | {"round": round_index} | figures))
    return rows


def measure(server: Server, scenario: str, cases: list[Case], connections: int) -> dict:
    """Checks, warms up and times one scenario."""
    setup, plan = server.setup, server.setup.plan
    min_bytes, seconds_each = check(server, scenario, cases)
    requests = [case.request for case in cases]
    try:
        if plan.warm_up_secs:
            # Slow servers get as long as they need for a response to each connection.
            warm_up_secs = max(plan.warm_up_secs, math.ceil(2 * CONNECTIONS * seconds_each))
            setup.wrk.run(server.port, requests, CONNECTIONS, warm_up_secs, min_bytes)
        server.settle()
        server.reset_peak()
        before = costs(server)
        result = setup.wrk.run(server.port, requests, connections, plan.seconds(seconds_each, connections), min_bytes)
    except BenchError as error:
        raise BenchError(f"{server.peer.title}, {scenario}: {error}\n{server.log_tail()}") from None
    hits, cpu, database = (after and after - earlier for after, earlier in zip(costs(server), before))
    require(not (hits and scenario in servers.UNCACHED), f"{scenario}: the page cache served {hits} responses")
    count = result.pop("requests")
    result |= {"cpu_ms": cpu * 1e3 / count, "database_cpu_ms": database and database * 1e3 / count}
    return result | {"peak_mib": server.memory_mib("VmHWM")}


def costs(server: Server) -> tuple[int | None, float, float | None]:
    """Cache hits, CPU time of the server and of its PostgreSQL."""
    database = servers.cpu_secs(server.postgres.process.pid) if server.postgres else None
    return server.cache_hits(), server.cpu_secs(), database


def measure_scale(setup: Setup) -> list[dict]:
    """The uncached page on little and much data. All servers run at the same time and take turns."""
    plan, rows, running = setup.plan, [], {}
    with ExitStack() as stack:
        for data, size in {"small": SMALL, "usual": USUAL, "large": LARGE, "anywhere": LARGE, "many": "many"}.items():
            if size in setup.databases:
                server = stack.enter_context(Server(setup, "batchscan", size, plan.server_cores))
                running[data] = (server, scale_cases(server, data))
        for round_index in range(plan.scale_rounds):
            for data in in_turn(running, round_index):
                figures = measure(running[data][0], "scale", running[data][1], CONNECTIONS)
                rows.append(report({"section": "scale", "data": data, "round": round_index, **figures}))
    return rows


def scale_cases(server: Server, data: str) -> list[Case]:
    if data == "many":
        # The first page of each organisation.
        pages = [with_token(FIRST_PAGE_UNCACHED, token) for token in organisation_tokens(server)]
        starts = [index * PAGE_BATCHES for index in range(len(pages))]
    elif data == "anywhere":
        # As many pages of one organisation as there are organisations: all its data.
        source = server.setup.data
        dates = [json.loads(line)["batch_creation_date"] for line in source.read(LARGE, PAGE_BATCHES)]
        pages = [server.get(f"/v2/batches?start_date={date}&end_date={{date}}") for date in dates]
        starts = [source.first_of_date(index * PAGE_BATCHES) for index in range(len(pages))]
    else:
        return servers.cases(server, "scale")
    return [Case(page, range(start, start + PAGE_BATCHES)) for page, start in zip(pages, starts)]


def organisation_tokens(server: Server) -> list[str]:
    requests = map(servers.token_request, server.setup.databases["many"].credentials)
    return [servers.token_in(server.fetch(request).body) for request in requests]


def measure_streams(setup: Setup) -> list[dict]:
    """v1: all batches in one response, to one reader and to four at the same time."""
    plan, rows = setup.plan, []
    runs = [(size, round_index) for size in plan.stream_sizes for round_index in range(plan.stream_rounds)]
    for size, round_index in runs:
        for name in in_turn(plan.servers, round_index):
            for readers in readers_of(name, size, round_index, plan.quick):
                # A new process each time: memory left by one response must not count for the next.
                with Server(setup, name, size, plan.server_cores) as server:
                    figures = measure_stream(server, readers)
                    # After the timing, as the check would use memory before it.
                    if round_index == 0 and readers == 1:
                        check_everything(server, size)
                key = {"section": "v1", "batches": size, "readers": readers, "server": name, "round": round_index}
                rows.append(report(key | figures))
    return rows


def readers_of(name: str, size: int, round_index: int, quick: bool) -> tuple[int, ...]:
    """Slow peers need seconds for a response, and gigabytes for a large one: they do less."""
    if name in {"batchscan", "nginx"}:
        return (1, 4)
    if name == "batchscan-postgres":
        return (1, 4) if size == USUAL else ()
    if size == LARGE:
        return (1,) if round_index == 0 else ()
    if round_index >= SLOW_ROUNDS:
        return ()
    return (1,) if quick and name != "plain-rust" else (1, 4)


def measure_stream(server: Server, readers: int) -> dict:
    require(server.fetch(servers.nothing(server)).status == 200, f"{server.peer.title} does not respond")
    server.settle()
    idle = server.memory_mib("VmRSS")
    server.reset_peak()
    cpu, started = server.cpu_secs(), time.monotonic()
    with ThreadPoolExecutor(readers) as pool:
        results = list(pool.map(read_everything, [server] * readers))
    seconds = time.monotonic() - started
    statuses, sizes, first_bytes = zip(*results)
    same = set(statuses) == {200} and len(set(sizes)) == 1
    require(same, f"{server.peer.title}, v1: responses differ: {results}\n{server.log_tail()}")
    return {
        "first_byte_ms": max(first_bytes) * 1e3,
        "seconds": seconds,
        "mib_per_sec": sum(sizes) / 2**20 / seconds,
        "cpu_secs": server.cpu_secs() - cpu,
        "above_idle_mib": max(server.memory_mib("VmHWM") - idle, 0.0),
    }


def read_everything(server: Server) -> tuple[int, int, float]:
    """Reads a response and drops it. Returns its status, its size, and the time to the first byte of the body."""
    request, connection, buffer = servers.everything(server), server.connect(), bytearray(READ_BYTES)
    started = time.monotonic()
    connection.request("GET", request.path, headers=dict(request.headers))
    response = connection.getresponse()
    size = len(response.read(1))
    first_byte = time.monotonic() - started
    while count := response.readinto(buffer):
        size += count
    connection.close()
    return response.status, size, first_byte


def measure_mixed(setup: Setup) -> list[dict]:
    """A mix of requests from many organisations, without and with an import running. Nothing is pinned to a core."""
    plan, rows = setup.plan, []
    os.sched_setaffinity(0, plan.all_cores)
    importer = Importer(setup)
    with Server(setup, "batchscan", "many", plan.all_cores) as server:
        requests = mixed_requests(server)

        def load() -> dict:
            server.settle()
            return setup.wrk.run(server.port, requests, MIXED_CONNECTIONS, plan.mixed_secs, 1)

        load()
        for round_index in range(plan.mixed_rounds):
            row = {"section": "mixed", "round": round_index}
            for prefix in in_turn(["alone", "import"], round_index):
                result = importer.run_while(load) if prefix == "import" else load()
                row |= {f"{prefix}_{name}": value for name, value in result.items()}
            rows.append(report(row | {"p99_ratio": row["import_p99_ms"] / row["alone_p99_ms"]}))
    os.sched_setaffinity(0, plan.load_cores)
    return rows


class Importer:
    """Imports the same batches again and again, with names that alternate, so that every import writes every batch."""

    def __init__(self, setup: Setup):
        self.database, self.count, name = setup.databases["many"], 0, '"batch_name":"'
        self.files = [setup.folder / f"import-{mark}.ndjson" for mark in "AB"]
        for mark, path in zip("AB", self.files):
            path.write_text("".join(line.replace(name, f"{name}{mark} ", 1) for line in setup.data.lines))
        self.database.run("org", "add", WRITTEN_ORGANISATION)
        # The first import adds batches, all later ones correct them.
        self.import_once()

    def import_once(self) -> None:
        self.database.run("import", "--org", WRITTEN_ORGANISATION, self.files[self.count % 2])
        self.count += 1

    def run_while(self, load) -> dict:
        """Runs a load during imports, and adds the imported batches per second to its result."""
        before, started, over = self.count, time.monotonic(), threading.Event()

        def import_until_over() -> float:
            while not over.is_set():
                self.import_once()
            return time.monotonic() - started

        with ThreadPoolExecutor(1) as pool:
            imports = pool.submit(import_until_over)
            time.sleep(IMPORT_HEAD_START_SECS)
            try:
                result = load()
            finally:
                over.set()
            seconds = imports.result()
        return result | {"batches_per_sec": (self.count - before) * USUAL / seconds}


def mixed_requests(server: Server) -> list[Request]:
    """Requests of all organisations. An eighth of the organisations sends half of them."""
    data, dice, tokens = server.setup.data, random.Random(64), organisation_tokens(server)
    etags = [server.etag(with_token(FIRST_PAGE, token)) for token in tokens]
    # Every twentieth date of each organisation.
    lines = data.read(len(tokens) * PAGE_BATCHES, RANGE_BATCHES)
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


def measure_bulk(setup: Setup) -> list[dict]:
    """Imports and pulls, once each, on all cores."""
    plan, rows = setup.plan, []
    for pid in [0, *([setup.postgres.process.pid] if setup.postgres else [])]:
        os.sched_setaffinity(pid, plan.all_cores)
    for size in plan.stream_sizes:
        if plan.wants("import"):
            rows += measure_imports(setup, size)
        if plan.wants("pull") and plan.has("batchscan"):
            rows.append(measure_pull(setup, size))
    return rows


def measure_imports(setup: Setup, size: int) -> list[dict]:
    rows, targets = [], {"SQLite": f"sqlite:{setup.folder}/imported-{size}.db"}
    if setup.postgres:
        targets["PostgreSQL"] = setup.postgres.create_database(f"imported_{size}")
    for store, url in targets.items():
        Database(setup.executable, url).run("org", "add", ORGANISATION)
        command = [setup.executable, "import", "--org", ORGANISATION, setup.data.file(size)]
        figures = time_command(command, {"BATCHSCAN_DATABASE": url})
        rows.append(report({"section": "bulk", "what": f"batchscan import, {store}", "batches": size, **figures}))
    for (kind, batches), seconds in setup.load_seconds.items():
        if batches == size:
            rows.append({"section": "bulk", "what": f"the peers' loader, {kind}", "batches": size, "seconds": seconds})
    return rows


def measure_pull(setup: Setup, size: int) -> dict:
    path = setup.folder / f"pulled-{size}.csv"
    with Server(setup, "batchscan", size, setup.plan.all_cores) as server:
        command = [setup.executable, "pull", "--url", f"http://127.0.0.1:{server.port}", "--output", path]
        command += ["--client-id", server.credential["client_id"]]
        figures = time_command(command, {"BATCHSCAN_CLIENT_SECRET": server.credential["client_secret"]})
    with path.open("rb") as lines:
        count = sum(1 for _ in lines)
    # A header, and one line for each batch: no text of the demo contains a line break.
    require(count == size + 1, f"pull wrote {count} lines, expected {size + 1}")
    return report({"section": "bulk", "what": "batchscan pull, CSV", "batches": size, **figures})


def time_command(command: list, env: dict) -> dict:
    """Seconds and peak memory of a command."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started, peak = time.monotonic(), 0.0
    with subprocess.Popen(command, env=clean_env() | env, **quiet) as process:
        # The kernel's `ru_maxrss` would include the memory of this script, which forked it.
        while process.poll() is None:
            peak = max(peak, servers.memory_mib(process.pid, "VmHWM"))
            time.sleep(0.005)
        seconds = time.monotonic() - started
    require(process.returncode == 0, f"{command[1]}: exit status {process.returncode}")
    return {"seconds": seconds, "peak_mib": peak}
