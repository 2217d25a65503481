"""The scenarios that wrk drives: who takes part, and which requests each server gets."""

import json
from typing import NamedTuple
from urllib.parse import quote

from prepare import LARGE, PAGE_BATCHES, SMALL
from servers import OURS, PEERS, Server, token_in, token_request, with_token
from wrk import BenchError, Request, require


class Scenario(NamedTuple):
    """A server takes part by its name, or as `server:kind` with another kind of requests than the scenario's own. The
    others are compared with the first one."""

    text: str
    entries: tuple[str, ...] = ()


API = tuple(name for name in PEERS if name != "nginx")
# FastAPI has neither a cache nor ETags: a request for the same page costs it a whole page.
SAME_PAGE = (*OURS, "fastapi:page-uncached", "nginx", "floor")
SCENARIOS = {
    "page-uncached": Scenario("First page of v2; no two requests are equal", API),
    "page-cached": Scenario("First page of v2; all requests are equal. FastAPI has no cache", SAME_PAGE),
    "page-deep": Scenario("Page at 90 % of the data, by cursor, without a cache", (*API, "batchscan:page-uncached")),
    "conditional": Scenario("First page of v2 that the client already has: 304. FastAPI sends the page", SAME_PAGE),
    "gzip": Scenario(
        "First page of v2 with gzip, which batchscan stores compressed; no two requests are equal. Pages from "
        "anywhere begin and end inside compressed blocks. FastAPI sends the page plain",
        (*OURS, "batchscan:gzip-anywhere", "fastapi:page-uncached", "fastapi-tuned", "plain-rust", "floor"),
    ),
    "date-range": Scenario("A date range with 20 batches; no two requests are equal", API),
    "auth": Scenario("Token request", API),
    "scale": Scenario(
        "First page of v2, uncached, by the number of batches and organisations",
        ("batchscan:small", "batchscan:large", "batchscan:anywhere", "batchscan:many"),
    ),
    "v1": Scenario(
        "All batches in one response; several readers start at the same time. Memory is the peak above what was "
        "resident before. A new process for each timing",
        tuple(name for name in PEERS if name not in ("batchscan-release", "floor")),
    ),
    "mixed": Scenario(
        "Many organisations, 64 connections, a server on both cores. Of 100 requests, 40 are first pages, 30 are "
        "conditional requests for a first page, 20 are date ranges with about 20 batches, 5 are uncached first pages "
        "and 5 use gzip. An eighth of the organisations sends half of the requests. Meanwhile `batchscan import` "
        "corrects 100,000 batches of another organisation again and again",
    ),
    "import": Scenario("Into an empty database, once each, on both cores; PostgreSQL on one"),
    "pull": Scenario("To a CSV file, once each, on both cores"),
}
KIND_TITLES = {
    "page-uncached": "first page, plain",
    "gzip-anywhere": "pages from anywhere",
    "small": "10,000 batches",
    "large": "1,000,000 batches",
    "anywhere": "1,000,000 batches, a thousand different pages",
    "many": "a thousand organisations, their first pages",
    "importing": "during an import",
}
# Other databases than the usual one.
DATABASES = {"small": SMALL, "large": LARGE, "anywhere": LARGE, "many": "many"}
# batchscan's cache must not serve any of their responses.
UNCACHED = {"page-uncached", "page-deep", "gzip", "gzip-anywhere", "date-range", *DATABASES}

# The end of the date range counts up, later than all data.
FIRST_PAGE, FIRST_PAGE_UNCACHED = "/v2/batches", "/v2/batches?end_date={date}"
CURSORS = 8
# Primes: a date range never meets the same fraction of a second twice in a run, and pages start anywhere within the
# blocks that batchscan stores compressed.
DATE_RANGES, PAGE_STARTS = 4_093, 97


class Case(NamedTuple):
    """A request, and the rows of the data that its response must contain."""

    request: Request
    rows: range = range(0)


def split_entry(scenario: str, entry: str) -> tuple[str, str]:
    """The server and the kind of its requests."""
    server, _, kind = entry.partition(":")
    return server, kind or scenario


def entry_title(entry: str) -> str:
    server, _, kind = entry.partition(":")
    return PEERS[server].title + (f", {KIND_TITLES.get(kind, kind)}" if kind else "")


def make_cases(server: Server, kind: str) -> list[Case]:
    """The requests of a kind, sent in turn."""
    data, first = server.setup.data, range(PAGE_BATCHES)
    page, uncached = server.get(FIRST_PAGE), server.get(FIRST_PAGE_UNCACHED)
    match kind:
        case "page-uncached" | "small" | "large":
            return [Case(uncached, first)]
        case "page-cached":
            return [Case(page, first)]
        case "page-deep":
            return deep_cases(server)
        case "conditional":
            return [Case(page.with_header("if-none-match", find_etag(server, page)))]
        case "gzip":
            return [Case(with_gzip(uncached), first)]
        case "gzip-anywhere":
            step = (len(data.dates) - 2 * PAGE_BATCHES) // PAGE_STARTS
            cases = [page_case(server, data.date_at(step * index)) for index in range(PAGE_STARTS)]
            return [case._replace(request=with_gzip(case.request)) for case in cases]
        case "date-range":
            path = "/v2/batches?start_date={}&end_date={:%Y-%m-%dT%H:%M:%S}.{{fraction}}Z"
            return [Case(server.get(path.format(*dates)), rows) for rows, *dates in data.date_ranges(DATE_RANGES)]
        case "auth":
            return [Case(token_request(server.credential))]
        case "anywhere":
            # As many pages of one organisation as there are organisations: all its data.
            lines = data.read(LARGE, PAGE_BATCHES)
            return [page_case(server, json.loads(line)["batch_creation_date"]) for line in lines]
        case "many":
            pages = [with_token(FIRST_PAGE_UNCACHED, token) for token in organisation_tokens(server)]
            starts = range(0, len(pages) * PAGE_BATCHES, PAGE_BATCHES)
            return [Case(page, range(start, start + PAGE_BATCHES)) for page, start in zip(pages, starts)]
    raise BenchError(f"unknown kind of requests: {kind}")


def page_case(server: Server, date: str) -> Case:
    request = server.get(f"/v2/batches?start_date={date}&end_date={{date}}")
    return Case(request, server.setup.data.page_from(date))


def deep_cases(server: Server) -> list[Case]:
    """Cursors at 90 % of the data. Each comes from a date range with another end, so no two are equal."""
    data = server.setup.data
    before = page_case(server, data.date_at(len(data.dates) // 10 * 9 - PAGE_BATCHES))
    rows, cases = range(before.rows.stop, before.rows.stop + PAGE_BATCHES), []
    for _ in range(CURSORS):
        page = server.fetch(before.request.fill(server.next_counter()))
        cursor = json.loads(page.body)["next_token"]
        cases.append(Case(server.get(f"/v2/batches?next_token={quote(cursor)}"), rows))
    return cases


def with_gzip(request: Request) -> Request:
    return request.with_header("accept-encoding", "gzip")


def find_etag(server: Server, request: Request) -> str:
    etag = server.fetch(request).headers["etag"]
    require(etag, f"{server.peer.title}: {request.path} has no ETag")
    return etag


def organisation_tokens(server: Server) -> list[str]:
    credentials = server.setup.database("many").credentials
    return [token_in(server.fetch(token_request(credential))) for credential in credentials]
