#!/usr/bin/env python3
"""Compares pages of a table with 20,000,000 batches of 10,000 organisations, partitioned by organisation, with pages of
a table with 10,000 batches of one. For docs/REFERENCE.md."""

import argparse
import http.client
import json
import random
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

sys.dont_write_bytecode = True

from prepare import HOME, ROOT, Database, Postgres, clean_env, pull_demo
from servers import cpu_secs

ORGANISATIONS, BATCHES_OF_EACH = 10_000, 2_000
SAMPLED, ROUNDS, PAGES = 40, 9, 200
# Copies the batches of the first organisation.
FILL = """
    INSERT INTO batch SELECT o.id, b.created_at, b.batch_id, b.json, b.version
    FROM organisation o CROSS JOIN batch b WHERE b.org_id = 1 AND o.id BETWEEN {first} AND {last} ORDER BY o.id, b.created_at"""


class Service:
    """`serve` without a page cache. `tokens` are those of some organisations."""

    def __init__(self, stack: ExitStack, postgres: Postgres, database: Database):
        command = [database.executable, "serve", "--listen", "127.0.0.1:0", "--cache-mib", "0"]
        env = clean_env() | {"BATCHSCAN_DATABASE": database.url, "BATCHSCAN_LOG": "error"}
        self.postgres = postgres
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        stack.callback(self.process.wait)
        stack.callback(self.process.terminate)
        self.connection = http.client.HTTPConnection(urlsplit(self.process.stdout.readline().split()[-1]).netloc)
        self.tokens = [self.token(credential) for credential in database.credentials]

    def token(self, credential: dict) -> str:
        form = "&".join(f"{name}={value}" for name, value in (credential | {"grant_type": "client_credentials"}).items())
        headers = {"content-type": "application/x-www-form-urlencoded"}
        return json.loads(self.request("POST", "/v2/auth", form, headers))["access_token"]

    def request(self, method: str, path: str, body: str | None = None, headers: dict = {}) -> bytes:
        self.connection.request(method, path, body, headers)
        response = self.connection.getresponse()
        assert response.status == 200, response.status
        return response.read()

    def pages(self) -> tuple[float, float, int]:
        """Reads pages of random organisations: seconds, and seconds of CPU, for each; the bytes of the last."""
        seconds, cpu = time.perf_counter(), self.cpu()
        for _ in range(PAGES):
            page = self.request("GET", "/v2/batches", None, {"authorization": f"Bearer {random.choice(self.tokens)}"})
        return (time.perf_counter() - seconds) / PAGES, (self.cpu() - cpu) / PAGES, len(page)

    def cpu(self) -> float:
        return cpu_secs(self.process.pid) + cpu_secs(self.postgres.process.pid)


def fill(postgres: Postgres, database: Database, lines: list[str]) -> None:
    """Ten thousand organisations in a partitioned table."""
    database.add_organisation("Nursery 1", input="".join(lines[:BATCHES_OF_EACH]))
    subprocess.run(["psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-f", ROOT / "deploy/postgresql/partitions.sql", database.url], check=True)
    postgres.sql("many", f"INSERT INTO organisation (name, created_at, version) SELECT 'Nursery ' || n, 0, 1 FROM generate_series(2, {ORGANISATIONS}) n")
    for first in range(2, ORGANISATIONS + 1, 500):
        postgres.sql("many", FILL.format(first=first, last=min(first + 499, ORGANISATIONS)))
        print(f"{first + 499:,} organisations", flush=True)
    postgres.sql("many", "VACUUM (ANALYZE) batch")
    for number in random.sample(range(2, ORGANISATIONS), SAMPLED):
        issued = database.run("credential", "issue", "--org", f"Nursery {number}", "--json")
        database.credentials.append(json.loads(issued))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executable", type=Path, default=ROOT / "target/release/batchscan")
    executable = parser.parse_args().executable.resolve()
    HOME.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        postgres = Postgres(stack, HOME / "partitions.log")
        pull_demo(executable, 10_000, HOME / "partitions.ndjson")
        lines = (HOME / "partitions.ndjson").read_text().splitlines(keepends=True)
        one = Database(executable, postgres.create_database("one"))
        one.add_organisation("Nursery", input="".join(lines))
        postgres.sql("one", "VACUUM (ANALYZE) batch")
        many = Database(executable, postgres.create_database("many"))
        fill(postgres, many, lines)
        services = {"one": Service(stack, postgres, one), "many": Service(stack, postgres, many)}
        results = {name: [] for name in services}
        for service in services.values():
            service.pages()
        for _ in range(ROUNDS):
            for name, service in services.items():
                results[name].append(service.pages())
        for name, rounds in results.items():
            seconds, cpu, size = (statistics.median(column) for column in zip(*rounds))
            print(f"{name}: {1000 * seconds:.2f} ms, {1000 * cpu:.2f} ms of CPU, {size:,.0f} bytes for each page")
        ratios = [[b[i] / a[i] for a, b in zip(results["one"], results["many"])] for i in (0, 1)]
        print("many / one: {:.3f} in time, {:.3f} in CPU".format(*map(statistics.median, ratios)))
        size = "SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('batch')"
        print(f"{int(postgres.sql('many', size)) / (ORGANISATIONS * BATCHES_OF_EACH):.0f} bytes on disk for each batch")


if __name__ == "__main__":
    main()
