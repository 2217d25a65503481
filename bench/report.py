"""RESULTS.md from the rows of a run: the targets with verdicts, then a table for each scenario."""

import statistics
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from servers import PEERS, REQUEST_SCENARIOS

# A server that is busy for less of the time than this was not the bottleneck.
BUSY_SHARE = 0.9


class Measured(NamedTuple):
    """A ratio or value over the rounds of a run."""

    median: float
    low: float
    high: float
    # The same ratio by CPU time, which does not depend on what else the machine does.
    by_cpu: float | None = None
    note: str = ""

    def with_note(self, note: str) -> "Measured":
        return self._replace(note="; ".join(filter(None, (note, self.note))))


class Results:
    """The rows of a run, selected by what they measured."""

    def __init__(self, rows: list[dict]):
        self.rows = rows

    def select(self, **key) -> dict[int, dict]:
        """The rows of all rounds that match."""
        return {row["round"]: row for row in self.rows if all(row.get(name) == key[name] for name in key)}

    def keys(self, section: str, *names: str) -> list[tuple]:
        """The different values of some columns, in the order of their first row."""
        return list(dict.fromkeys(tuple(row[name] for name in names) for row in self.rows if row["section"] == section))

    def median(self, value: str, **key) -> float | None:
        values = [row[value] for row in self.select(**key).values() if row[value] is not None]
        return statistics.median(values) if values else None

    def spread(self, value: str, **key) -> Measured | None:
        return spread(row[value] for row in self.select(**key).values())

    def ratio(self, one: dict, other: dict, value: str = "rate") -> Measured | None:
        """How many times faster one is than another. Ratios are taken within a round."""
        rounds, others = self.select(**one), self.select(**other)
        measured = spread(rounds[n][value] / others[n][value] for n in rounds if n in others)
        if measured is None or value != "rate":
            return measured
        ours, theirs = self.median("cpu_ms", **one), self.median("cpu_ms", **other)
        named = [key for key in (one, other) if "server" in key]
        idle = [PEERS[key["server"]].title for key in named if self.busy_share(key) < BUSY_SHARE]
        note = f"the other core was the bottleneck of {' and '.join(idle)}" if idle else ""
        return measured._replace(by_cpu=theirs / ours if ours and theirs else None, note=note)

    def busy_share(self, key: dict) -> float:
        return self.median("rate", **key) * self.median("cpu_ms", **key) / 1e3


def spread(values: Iterable[float]) -> Measured | None:
    values = list(values)
    return Measured(statistics.median(values), min(values), max(values)) if values else None


def requests(scenario: str, server: str = "batchscan") -> dict:
    return {"section": "requests", "scenario": scenario, "server": server}


def scale(data: str) -> dict:
    return {"section": "scale", "data": data}


def stream(readers: int, server: str = "batchscan") -> dict:
    return {"section": "v1", "batches": 1_000_000, "readers": readers, "server": server}


FASTAPI_PAGE = requests("page-uncached", "fastapi")


class Target(NamedTuple):
    name: str
    against: str
    goal: float
    minimum: float
    measure: Callable[[Results], Measured | None]
    unit: str = "×"
    less_is_better: bool = False

    def is_lead(self) -> bool:
        """Whether being ahead is all that is required."""
        return self.goal == self.minimum == 1 and not self.less_is_better

    def verdict(self, median: float) -> str:
        # Two digits, as in the table: what rounds to the goal meets it.
        rounded = round(median, 2)
        if self.is_lead():
            return "goal met" if median > 1 else f"**MISSED** by {1 - median:.0%}"
        sign = -1 if self.less_is_better else 1
        if sign * rounded >= sign * self.goal:
            return "goal met"
        if sign * rounded >= sign * self.minimum:
            return "acceptable"
        return f"**MISSED** by {abs(median / self.minimum - 1):.0%}"


def measure_gzip(r: Results) -> Measured | None:
    first, anywhere = (r.ratio(requests(scenario), FASTAPI_PAGE) for scenario in ("gzip", "gzip-anywhere"))
    if first is None or anywhere is None:
        return None
    note = f"first page, all of it stored compressed; {number(anywhere.median)}× for pages from anywhere"
    return first.with_note(note)


def measure_many(r: Results) -> Measured | None:
    # Both request a thousand different pages, more than the caches of a processor or of SQLite hold.
    measured, first = (r.ratio(scale(data), scale("many")) for data in ("anywhere", "large"))
    if measured is None or first is None:
        return None
    return measured.with_note(f"{number(first.median)}× the same first page every time, which CPU caches hold")


def measure_least(peer: str) -> Callable[[Results], Measured | None]:
    """The scenario in which batchscan is the least ahead of a peer."""

    def measure(r: Results) -> Measured | None:
        found = []
        for scenario in REQUEST_SCENARIOS:
            found.append((r.ratio(requests(scenario), requests(scenario, peer)), scenario))
        for batches, readers in r.keys("v1", "batches", "readers"):
            one = {"section": "v1", "batches": batches, "readers": readers, "server": "batchscan"}
            ratio = r.ratio(one, one | {"server": peer}, "mib_per_sec")
            found.append((ratio, f"v1 of {batches:,}, {plural(readers, 'reader')}"))
        measured = [ratio.with_note(f"lowest: {name}") for ratio, name in found if ratio]
        return min(measured, default=None)

    return measure


TARGETS = [
    Target("v2 page uncached, SQLite", "FastAPI", 60, 45, lambda r: r.ratio(requests("page-uncached"), FASTAPI_PAGE)),
    Target("v2 page uncached, PostgreSQL", "FastAPI", 14, 10,
           lambda r: r.ratio(requests("page-uncached", "batchscan-postgres"), FASTAPI_PAGE)),
    Target("v2 page cached", "FastAPI", 150, 120, lambda r: r.ratio(requests("page-cached"), FASTAPI_PAGE)),
    Target("v2 page cached", "nginx, static file", 0.95, 0.8,
           lambda r: r.ratio(requests("page-cached"), requests("page-cached", "nginx"))),
    Target("v2 page gzip, uncached", "FastAPI, plain page", 300, 100, measure_gzip),
    Target("conditional request, unchanged", "FastAPI, plain page", 1_000, 600,
           lambda r: r.ratio(requests("conditional"), FASTAPI_PAGE)),
    Target("date range with 20 batches", "FastAPI", 80, 50,
           lambda r: r.ratio(requests("date-range"), requests("date-range", "fastapi"))),
    Target("auth", "FastAPI", 24, 18, lambda r: r.ratio(requests("auth"), requests("auth", "fastapi"))),
    Target("deep page, cost", "first page", 1, 1.1,
           lambda r: r.ratio(requests("page-first"), requests("page-deep")), less_is_better=True),
    Target("page at 1,000,000 batches, cost", "at 10,000", 1, 1.15,
           lambda r: r.ratio(scale("small"), scale("large")), less_is_better=True),
    Target("page at 1,000 organisations, cost", "at 1, as many different pages", 1, 1.15, measure_many,
           less_is_better=True),
    Target("v1 of 1,000,000: first byte", "–", 1, 10, lambda r: r.spread("first_byte_ms", **stream(1)), "ms", True),
    Target("v1 of 1,000,000: memory above idle, 4 readers", "–", 32, 64,
           lambda r: r.spread("above_idle_mib", **stream(4)), "MiB", True),
    Target("v1 of 1,000,000: throughput", "nginx, static file", 0.5, 0.25,
           lambda r: r.ratio(stream(1), stream(1, "nginx"), "mib_per_sec")),
    Target("p99 with 64 connections during an import", "without it", 1.2, 2,
           lambda r: r.spread("p99_ratio", section="mixed"), less_is_better=True),
    *(Target("every scenario that it has", title, 1, 1, measure_least(peer))
      for peer, title in (("roapi", "ROAPI"), ("datasette", "Datasette"), ("plain-rust", "plain Rust"))),
]


def number(value: float | None) -> str:
    """Three significant digits, with commas between thousands."""
    if value is None:
        return ""
    digits = next((digits for limit, digits in ((99.95, 0), (9.995, 1), (0.9995, 2)) if abs(value) >= limit), 3)
    return f"{value:,.{digits}f}"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def table(columns: list[str], rows: Iterable[list[str]], text_columns: int = 1) -> str:
    """A Markdown table; all but the first columns and notes are numbers."""
    is_text = (index < text_columns or column == "note" for index, column in enumerate(columns))
    align = "|" + "".join("---|" if text else "---:|" for text in is_text)
    head, *body = ("| " + " | ".join(row) + " |" for row in (columns, *rows))
    return "\n".join([head, align, *body, ""]) if body else "Not measured in this run.\n"


def document(rows: list[dict], machine: dict[str, str], plan, charts: list[str]) -> str:
    """Fills results.md.in."""
    r = Results(rows)
    rounds = f"{plan.rounds} of {plan.min_secs} s, slow servers up to {plan.max_secs} s; 16 connections"
    facts = machine | {"rounds": rounds + (". A quick run: it only shows that everything works" if plan.quick else "")}
    columns = ["scenario", "against", "verdict", "goal", "minimum", "measured", "spread", "by CPU", "note"]
    return (Path(__file__).parent / "results.md.in").read_text().format(
        command=plan.command,
        date=facts.pop("date"),
        machine=table(["", ""], map(list, facts.items()), 2),
        targets=table(columns, (target_row(target, target.measure(r)) for target in TARGETS), 3),
        charts="".join(f"![{name}](charts/{name}.svg)\n" for name in charts),
        requests="\n".join(
            f"## {scenario}\n\n{text}.\n\n{request_table(r, scenario)}" for scenario, text in REQUEST_SCENARIOS.items()
        ),
        scale=median_table(r, FIGURES, [(scale_title(data, plan), scale(data)) for data, in r.keys("scale", "data")]),
        connections=connection_table(r),
        v1=stream_table(r),
        organisations=f"{plan.organisations:,}",
        mixed=table(["round", *MIXED_FIGURES.values()], (
            [str(n + 1), *(number(row[name]) for name in MIXED_FIGURES)] for n, row in r.select(section="mixed").items()
        )),
        bulk=table(["command", "batches", "s", "batches/s", "peak MiB"], (
            [row["what"], f"{row['batches']:,}", number(row["seconds"]), number(row["batches"] / row["seconds"]),
             number(row.get("peak_mib"))] for row in rows if row["section"] == "bulk"
        )),
    )


FIGURES = {
    "rate": "requests/s",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "cpu_ms": "CPU ms/request",
    "database_cpu_ms": "database CPU ms/request",
    "peak_mib": "peak MiB",
}
STREAM_FIGURES = {
    "first_byte_ms": "first byte ms",
    "seconds": "total s",
    "mib_per_sec": "MiB/s",
    "cpu_secs": "CPU s",
    "above_idle_mib": "MiB above idle",
}
MIXED_FIGURES = {
    "alone_rate": "requests/s",
    "alone_p50_ms": "p50 ms",
    "alone_p99_ms": "p99 ms",
    "import_rate": "during an import: requests/s",
    "import_p50_ms": "p50 ms",
    "import_p99_ms": "p99 ms",
    "p99_ratio": "p99 ratio",
    "import_batches_per_sec": "imported batches/s",
}


def target_row(target: Target, measured: Measured | None) -> list[str]:
    def with_unit(text: str) -> str:
        return text + target.unit if target.unit == "×" else f"{text} {target.unit}"

    def limit(value: float) -> str:
        return "ahead" if target.is_lead() else ("≤ " if target.less_is_better else "") + with_unit(f"{value:,}")

    limits = [limit(target.goal), limit(target.minimum)]
    if measured is None:
        return [target.name, target.against, "not measured", *limits, "–", "–", "–", ""]
    figures = [with_unit(number(measured.median)), f"{number(measured.low)}–{with_unit(number(measured.high))}"]
    by_cpu = with_unit(number(measured.by_cpu)) if measured.by_cpu else "–"
    return [target.name, target.against, target.verdict(measured.median), *limits, *figures, by_cpu, measured.note]


def median_table(r: Results, figures: dict[str, str], labels: list[tuple[str, dict]]) -> str:
    """A row for each label: the medians over the rounds that match its key."""
    rows = ([label, *(number(r.median(name, **key)) for name in figures)] for label, key in labels)
    return table(["", *figures.values()], rows)


def request_table(r: Results, scenario: str) -> str:
    labels = [(peer.title, requests(scenario, name)) for name, peer in PEERS.items()]
    return median_table(r, FIGURES, [(label, key) for label, key in labels if r.select(**key)])


def scale_title(data: str, plan) -> str:
    if data == "many":
        return f"{plan.organisations:,} organisations, 1,000 batches each, all first pages"
    batches = {"small": "10,000", "usual": "100,000"}.get(data, "1,000,000")
    return f"1 organisation, {batches} batches, {'1,000 different pages' if data == 'anywhere' else 'first page'}"


def connection_table(r: Results) -> str:
    names, labels = ("server", "scenario", "connections"), []
    for server, scenario, count in r.keys("connections", *names):
        label = f"{PEERS[server].title}, {scenario}, {plural(count, 'connection')}"
        labels.append((label, {"section": "connections"} | dict(zip(names, (server, scenario, count)))))
    return median_table(r, FIGURES, labels)


def stream_table(r: Results) -> str:
    names, labels = ("batches", "server", "readers"), []
    for batches, server, readers in r.keys("v1", *names):
        label = f"{PEERS[server].title}, {batches:,} batches, {plural(readers, 'reader')}"
        labels.append((label, {"section": "v1"} | dict(zip(names, (batches, server, readers)))))
    return median_table(r, STREAM_FIGURES, labels)
