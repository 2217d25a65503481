"""Checks that responses are right: the same batches in the same order with the same values."""

import gzip
import hashlib
import json
import mmap
import re
import shutil
import time
from datetime import datetime
from itertools import zip_longest
from pathlib import Path

from prepare import to_micros
from servers import FIRST_PAGE, OURS, Case, Response, Server, everything, token_in, with_token
from wrk import BenchError

BATCH_ID = re.compile(rb'"batch_id"\s*:\s*"([^"]*)"')
BLOCK_BYTES = 1 << 20


def check(server: Server, scenario: str, cases: list[Case]) -> tuple[int, float]:
    """Checks three of the responses. Returns the size of the smallest body and the seconds of the fastest."""
    lines = server.setup.data.lines
    known = [case for case in cases if case.rows.stop <= len(lines)]
    counter, connection, sizes, seconds = server.next_counter(len(known)), server.connect(), [], []
    for index in {0, (len(known) - 1) // 2, len(known) - 1}:
        case, started = known[index], time.monotonic()
        response = server.fetch(case.request.fill(counter + index), connection)
        seconds.append(time.monotonic() - started)
        sizes.append(len(response.body))
        try:
            check_response(server, scenario, response, [json.loads(lines[row]) for row in case.rows])
        except (BenchError, ValueError, LookupError, TypeError) as error:
            title = f"{server.peer.title}, {scenario}"
            raise BenchError(f"{title}: wrong response: {error}\n{case.request.path}") from error
    connection.close()
    return min(sizes), min(seconds)


def check_response(server: Server, scenario: str, response: Response, expected: list[dict]) -> None:
    status = 304 if scenario == "conditional" else 200
    require(response.status == status, f"status {response.status}, expected {status}: {response.body[:500]}")
    if scenario == "conditional":
        require(not response.body, "304 with a body")
    elif scenario == "auth":
        page = server.fetch(with_token(FIRST_PAGE, token_in(response.body)))
        require(page.status == 200, "the token is not accepted")
    else:
        coding, found = "gzip" if scenario.startswith("gzip") else None, response.headers["content-encoding"]
        require(found == coding, f"content-encoding is {found}, expected {coding}")
        check_batches(gzip.decompress(response.body) if coding else response.body, expected, server.name == "roapi")


def check_batches(body: bytes, expected: list[dict], omits_nulls: bool = False) -> None:
    parsed = json.loads(body)
    rows = parsed["data"] if isinstance(parsed, dict) else parsed
    require(len(rows) == len(expected), f"{len(rows)} batches, expected {len(expected)}")
    for row, batch in zip(rows, expected):
        for name, value in batch.items():
            require(name in row or (omits_nulls and value is None), f"batch {batch['batch_id']} has no {name}")
            found = row.get(name)
            require(is_same(name, found, value), f"batch {batch['batch_id']}: {name} is {found!r}, expected {value!r}")


def is_same(name: str, found, expected) -> bool:
    """Compares a value with ours. Tables have dates as numbers, decimals as numbers or hundredths, booleans as 0/1."""
    if found is None or expected is None or (type(found) is type(expected) and found == expected):
        return found == expected
    if isinstance(expected, bool):
        return type(found) is int and found == int(expected)
    if name == "batch_creation_date":
        micros = found if isinstance(found, int) else to_micros(datetime.fromisoformat(found))
        return micros == to_micros(datetime.fromisoformat(expected))
    if name.startswith("avg_"):
        return (round(found * 100) if isinstance(found, float) else found) == int(expected.replace(".", "", 1))
    return False


def check_everything(server: Server, size: int) -> None:
    """Checks a response of v1: ours and nginx's by their bytes, others by the ids of their batches."""
    path, connection, request = server.setup.folder / "everything.json", server.connect(), everything(server)
    connection.request("GET", request.path, headers=dict(request.headers))
    response = connection.getresponse()
    with path.open("wb") as target:
        shutil.copyfileobj(response, target, BLOCK_BYTES)
    connection.close()
    same = same_bytes if server.name in OURS | {"nginx"} else same_ids
    is_right = response.status == 200 and same(path, server.setup.data.file(size))
    require(is_right, f"{server.peer.title}, v1: wrong response: status {response.status}, or other batches")
    path.unlink()


def same_bytes(body: Path, lines: Path) -> bool:
    """Whether the body is an array of the lines, with commas between them."""
    expected, found, left = hashlib.sha256(b"["), hashlib.sha256(), lines.stat().st_size - 1
    with lines.open("rb") as source:
        while block := source.read(min(BLOCK_BYTES, left)):
            expected.update(block.replace(b"\n", b","))
            left -= len(block)
    expected.update(b"]")
    with body.open("rb") as source:
        while block := source.read(BLOCK_BYTES):
            found.update(block)
    return found.digest() == expected.digest()


def same_ids(body: Path, lines: Path) -> bool:
    with body.open("rb") as one, lines.open("rb") as other:
        maps = [mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) for file in (one, other)]
        pairs = zip_longest(*(BATCH_ID.finditer(text) for text in maps))
        return all(found and expected and found[1] == expected[1] for found, expected in pairs)


def require(condition: object, message: str) -> None:
    if not condition:
        raise BenchError(message)
