"""RESULTS.md from the rows of a run: the targets with verdicts, then a table for each scenario."""

import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from scenarios import SCENARIOS, entry_title
from servers import PEERS

# Between the quartiles of the rounds' ratios, as a share of their median.
SPREAD_MAX = 0.15
FIGURES = {
    "cpu_ms": "CPU ms",
    "database_cpu_ms": "database CPU ms",
    "rate": "requests/s",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "first_byte_ms": "first byte ms",
    "mib_per_sec": "MiB/s",
    "above_idle_mib": "MiB above idle",
    "seconds": "s",
    "batches_per_sec": "batches/s",
}


class Measured(NamedTuple):
    """A ratio or value over the rounds of a run: the quartiles."""

    low: float
    median: float
    high: float
    note: str = ""

    def spread(self) -> float:
        return (self.high - self.low) / self.median


def summarise(values: Iterable[float]) -> Measured | None:
    values = list(values)
    # A single value has no quartiles.
    return Measured(*statistics.quantiles(values * 2 if len(values) == 1 else values, method="inclusive")) if values else None


class Results:
    """The rows of a run, by section, entry and round."""

    def __init__(self, rows: list[dict]):
        self.rounds: dict[tuple[str, str], dict[int, dict]] = {}
        for row in rows:
            if "cpu_ms" in row:
                # What a request costs: CPU time of the server and of its database.
                row["cost_ms"] = row["cpu_ms"] + row.get("database_cpu_ms", 0)
            self.rounds.setdefault((row["section"], row["entry"]), {})[row["round"]] = row

    def sections(self) -> list[str]:
        return list(dict.fromkeys(section for section, _ in self.rounds))

    def entries(self, section: str) -> list[str]:
        return [entry for found, entry in self.rounds if found == section]

    def value(self, section: str, entry: str, figure: str) -> Measured | None:
        rows = self.rounds.get((section, entry), {}).values()
        return summarise(row[figure] for row in rows if figure in row)

    def ratio(self, section: str, entry: str, base: str, figure: str = "cost_ms") -> Measured | None:
        """How many times the CPU time of `base` an entry needs. Ratios are taken within a round."""
        rounds, others = (self.rounds.get((section, name), {}) for name in (entry, base))
        both = [(rounds[n], others[n]) for n in rounds if n in others]
        return summarise(one[figure] / other[figure] for one, other in both if figure in one)

    def spread(self, section: str) -> float:
        """The widest spread of all ratios with the first entry."""
        first, *others = self.entries(section)
        return max((self.ratio(section, entry, first).spread() for entry in others), default=0)


def stream_section(batches: int, readers: int) -> str:
    return f"v1 of {batches:,}, {readers} reader" + ("s" if readers > 1 else "")


STREAM, FOUR_STREAMS = stream_section(1_000_000, 1), stream_section(1_000_000, 4)


class Target(NamedTuple):
    """A limit for the CPU time or another figure of `entry`: in multiples of that of `base`, or as it is."""

    name: str
    against: str
    goal: float
    minimum: float
    section: str
    entry: str = "batchscan"
    base: str = "batchscan"
    figure: str = "cost_ms"
    unit: str = "×"
    less_is_better: bool = False

    def measure(self, r: Results) -> Measured | None:
        if self.section:
            return r.ratio(*self[4:8]) if self.base else r.value(self.section, self.entry, self.figure)
        found = [(r.ratio(section, *self[5:8]), section) for section in r.sections()]
        noted = (ratio._replace(note=f"lowest: {section}") for ratio, section in found if ratio)
        return min(noted, key=lambda ratio: ratio.median, default=None)

    def verdict(self, median: float) -> str:
        # Two digits, as in the table: what rounds to the goal meets it.
        rounded, sign = round(median, 2), -1 if self.less_is_better else 1
        if sign * rounded >= sign * self.goal:
            return "goal met"
        if sign * rounded >= sign * self.minimum:
            return "acceptable"
        return f"**MISSED** by {abs(median / self.minimum - 1):.0%}"

    def row(self, r: Results) -> list[str]:
        unit, sign = self.unit if self.unit == "×" else f" {self.unit}", "≤ " if self.less_is_better else ""
        cells = [self.name, self.against, *(f"{sign}{limit:,}{unit}" for limit in (self.goal, self.minimum))]
        if (measured := self.measure(r)) is None:
            return [*cells, "not measured", "", "", "", ""]
        rate = r.ratio(self.section, self.base, self.entry, "rate")
        figures = [median(measured, unit), spread(measured, unit), median(rate, "×")]
        return [*cells, self.verdict(measured.median), *figures, measured.note]


TARGETS = [
    Target("v2 page uncached, SQLite", "FastAPI", 60, 45, "page-uncached", "fastapi"),
    Target("v2 page uncached, PostgreSQL", "FastAPI", 14, 10, "page-uncached", "fastapi", "batchscan-postgres"),
    Target("v2 page cached", "FastAPI", 150, 120, "page-cached", "fastapi:page-uncached"),
    Target("v2 page cached", "nginx, static file", 0.95, 0.8, "page-cached", "nginx"),
    Target("v2 page gzip, uncached", "FastAPI, plain page", 300, 100, "gzip", "fastapi:page-uncached"),
    Target("conditional request, unchanged", "FastAPI, plain page", 1_000, 600, "conditional", "fastapi:page-uncached"),
    Target("date range with 20 batches", "FastAPI", 80, 50, "date-range", "fastapi"),
    Target("auth", "FastAPI", 24, 18, "auth", "fastapi"),
    Target("every scenario that it has", "plain Rust", 1, 1, "", "plain-rust"),
    Target("deep page, cost", "first page", 1, 1.1, "page-deep", base="batchscan:page-uncached", less_is_better=True),
    Target("page at 1,000,000 batches, cost", "at 10,000", 1, 1.15, "scale", "batchscan:large", "batchscan:small",
           less_is_better=True),
    Target("page at 1,000 organisations, cost", "at 1, as many different pages", 1, 1.15, "scale", "batchscan:many",
           "batchscan:anywhere", less_is_better=True),
    Target("v1 of 1,000,000", "nginx, static file", 0.5, 0.25, STREAM, "nginx"),
    Target("v1 of 1,000,000: first byte", "–", 1, 10, STREAM, "batchscan", "", "first_byte_ms", "ms", True),
    Target("v1 of 1,000,000: memory above idle, 4 readers", "–", 32, 64, FOUR_STREAMS, "batchscan", "",
           "above_idle_mib", "MiB", True),
    Target("p99 with 64 connections during an import", "without it", 1.2, 2, "mixed", "batchscan:importing",
           figure="p99_ms", less_is_better=True),
]


def number(value: float) -> str:
    """Three significant digits, with commas between thousands."""
    digits = next((digits for limit, digits in ((99.95, 0), (9.995, 1), (0.9995, 2)) if abs(value) >= limit), 3)
    return f"{value:,.{digits}f}"


def median(measured: Measured | None, unit: str = "") -> str:
    return number(measured.median) + unit if measured else ""


def spread(measured: Measured | None, unit: str = "") -> str:
    if measured is None or measured.low == measured.high:
        return ""
    mark = " **wide**" if measured.spread() > SPREAD_MAX else ""
    return f"{number(measured.low)}–{number(measured.high)}{unit}{mark}"


def table(columns: list[str], rows: Iterable[list[str]], text_columns: int = 1) -> str:
    """A Markdown table; all but the first columns are numbers."""
    align = "|" + "---|" * text_columns + "---:|" * (len(columns) - text_columns)
    head, *body = ("| " + " | ".join(row) + " |" for row in (columns, *rows))
    return "\n".join([head, align, *body, ""])


def document(r: Results, facts: dict[str, str], command: str) -> str:
    """Fills results.md.in."""
    columns = ["scenario", "against", "goal", "minimum", "verdict", "measured", "spread", "by throughput", "note"]
    sections = (f"## {section}\n\n{scenario_of(section)}.\n\n{section_table(r, section)}" for section in r.sections())
    return (Path(__file__).parent / "results.md.in").read_text().format(
        command=command,
        machine=table(["", ""], map(list, facts.items()), 2),
        targets=table(columns, (target.row(r) for target in TARGETS), 2),
        limits=limit_table(r),
        sections="\n".join(sections),
    )


def scenario_of(section: str) -> str:
    return SCENARIOS[section.partition(" ")[0]].text


def limit_table(r: Results) -> str:
    """How far batchscan is from the floor, and what the release build loses."""
    rows, names = [], ("batchscan", "batchscan-postgres", "nginx")
    for section in r.sections():
        floors = [median(r.ratio(section, name, "floor"), "×") for name in names]
        loss = r.ratio(section, "batchscan-release", "batchscan")
        if any(floors) or loss:
            rows.append([section, *floors, f"{loss.median - 1:+.0%}" if loss else ""])
    return table(["scenario", *(f"{PEERS[name].title} ÷ floor" for name in names), "release build"], rows)


def section_table(r: Results, section: str) -> str:
    entries = r.entries(section)
    figures = [figure for figure in FIGURES if any(r.value(section, entry, figure) for entry in entries)]
    rows = []
    for entry in entries:
        ratio, floor = r.ratio(section, entry, entries[0]), r.ratio(section, entry, "floor")
        values = (median(r.value(section, entry, figure)) for figure in figures)
        rows.append([entry_title(entry), median(ratio, "×"), spread(ratio, "×"), median(floor, "×"), *values])
    return table(["", "by CPU", "spread", "÷ floor", *(FIGURES[figure] for figure in figures)], rows)
