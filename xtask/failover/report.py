"""The results of a run: rows, broken rules, and the section of `docs/FAILOVER.md`."""

from dataclasses import dataclass, field

from load import COLUMNS, Counts

# The only event that may cut streams.
NODE_KILLED = "node killed"
# The heading of the section that `--write` replaces, to the end of the document.
SECTION = "## Results\n"
TABLE_HEAD = f"""\
| event | times | {" | ".join(COLUMNS)} | slowest | no write |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"""

# How long nothing could be written: since the kill, and since the order to promote a standby.
WriteGap = tuple[float, float]


@dataclass
class Row:
    """The requests during one event, or during all events of a kind."""

    event: str
    counts: Counts
    gap: WriteGap | None = None
    times: int = 1

    def line(self) -> str:
        """A row of a Markdown table."""
        requests = " | ".join(str(self.counts.requests[column]) for column in COLUMNS)
        gap = f"{self.gap[0]:.1f} s, {self.gap[1]:.1f} s" if self.gap else ""
        return f"| {self.event} | {self.times} | {requests} | {self.counts.slowest:.2f} s | {gap} |"

    def plus(self, more: "Row") -> "Row":
        requests = {column: self.counts.requests[column] + more.counts.requests[column] for column in COLUMNS}
        counts = Counts(requests, max(self.counts.slowest, more.counts.slowest))
        # The longest gap since a kill, with what of it was after the promotion.
        gap = max(self.gap, more.gap) if self.gap and more.gap else self.gap or more.gap
        return Row(self.event, counts, gap, self.times + more.times)


@dataclass
class Writes:
    """What was acknowledged during a run, and what is missing in the end."""

    batches: int = 0
    secrets: int = 0
    failed_commands: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def broken_rules(rows: list[Row], writes: Writes) -> list[str]:
    """A description of every broken rule."""
    broken = []
    node_was_killed = False
    for index, row in enumerate(rows):
        if failures := row.counts.failures():
            reasons = "; ".join(row.counts.reasons)
            broken.append(f"event {index}, {row.event}: {failures} requests failed: {reasons}")
        # A slow reader may notice during the next event: it first reads what was sent before the kill.
        cut = row.counts.requests["cut"]
        if cut and row.event != NODE_KILLED and not node_was_killed:
            broken.append(f"event {index}, {row.event}: {cut} streams were cut")
        node_was_killed = row.event == NODE_KILLED
    return broken + [f"lost: {lost}" for lost in writes.lost]


def update(document: str, command: str, rows: list[Row], writes: Writes) -> str:
    """The document with its results replaced."""
    prose, found, _ = document.partition(SECTION)
    if not found:
        raise ValueError(f"no heading {SECTION}")
    table = "\n".join(row.line() for row in totals(rows))
    return f"""{prose}{SECTION}
Written by `{command}`. Sums, and the worst of all events of a kind.

{TABLE_HEAD}
{table}

- Broken rules: {len(broken_rules(rows, writes))}
- Acknowledged: {writes.batches} batches and {writes.secrets} secrets. Lost: {len(writes.lost)}
- Commands that failed and succeeded when repeated: {len(writes.failed_commands)}
"""


def totals(rows: list[Row]) -> list[Row]:
    """One row for each kind of event, in the order of appearance."""
    totals: dict[str, Row] = {}
    for row in rows:
        totals[row.event] = totals[row.event].plus(row) if row.event in totals else row
    return list(totals.values())
