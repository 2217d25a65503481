"""Checks that responses are right: the same batches in the same order with the same values."""

import gzip
import json
from datetime import datetime

from scenarios import FIRST_PAGE, Case
from servers import Response, Server, token_in, with_token
from wrk import BenchError, require


def check(server: Server, kind: str, cases: list[Case]) -> int:
    """Checks three of the responses. Returns the size of the smallest body."""
    batches, sizes = server.setup.data.batches, []
    known = [case for case in cases if case.rows.stop <= len(batches)]
    for index in {0, (len(known) - 1) // 2, len(known) - 1}:
        case = known[index]
        response = server.fetch(case.request.fill(server.next_counter()))
        sizes.append(len(response.body))
        try:
            check_response(server, kind, response, batches[case.rows.start:case.rows.stop])
        except (BenchError, ValueError, LookupError, TypeError) as error:
            raise BenchError(f"{server.peer.title}, {kind}: {case.request.path}: wrong response: {error}") from error
    return min(sizes)


def check_response(server: Server, kind: str, response: Response, expected: list[dict]) -> None:
    status = 304 if kind == "conditional" else 200
    require(response.status == status, f"status {response.status}, expected {status}: {response.body[:500]}")
    if server.name == "floor":
        # It has one response for all requests.
        return
    if kind == "conditional":
        require(not response.body, "304 with a body")
    elif kind == "auth":
        page = server.fetch(with_token(FIRST_PAGE, token_in(response)))
        require(page.status == 200, "the token is not accepted")
    else:
        coding, found = "gzip" if kind.startswith("gzip") else None, response.headers["content-encoding"]
        require(found == coding, f"content-encoding is {found}, expected {coding}")
        check_batches(gzip.decompress(response.body) if coding else response.body, expected)


def check_batches(body: bytes, expected: list[dict]) -> None:
    parsed = json.loads(body)
    rows = parsed["data"] if isinstance(parsed, dict) else parsed
    require(len(rows) == len(expected), f"{len(rows)} batches, expected {len(expected)}")
    for row, batch in zip(rows, expected):
        if row != batch:
            # pydantic prints six fraction digits of a second, batchscan no trailing zeros.
            same = row | {"batch_creation_date": parse_date(row)} == batch | {"batch_creation_date": parse_date(batch)}
            require(same, f"batch {batch['batch_id']}: found {row}, expected {batch}")


def parse_date(batch: dict) -> datetime:
    return datetime.fromisoformat(batch["batch_creation_date"])
