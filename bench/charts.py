"""A bar chart as SVG, readable on light and dark backgrounds."""

import math

from report import Results, number
from scenarios import entry_title
from servers import OURS

WIDTH, LABEL_WIDTH, NUMBER_WIDTH = 760, 190, 110
ROW_HEIGHT, BAR_HEIGHT, HEAD_HEIGHT, FOOT_HEIGHT = 26, 16, 58, 14

STYLE = """<style>
text { font: 13px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #1f2328; }
.title { font-size: 15px; font-weight: 600; } .subtitle { font-size: 12px; fill: #59636e; }
.label { text-anchor: end; } .number { font-variant-numeric: tabular-nums; }
.ours { fill: #2f8f4e; } .peer { fill: #8c959f; } .limit { fill: #4a7fc1; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .subtitle { fill: #9198a1; }
  .ours { fill: #4fbf73; } .peer { fill: #6e7681; } .limit { fill: #6ea3e0; }
}
</style>"""
TITLE = "Pages of 1,000 batches per second of CPU time"
SUBTITLE = "v2, 100,000 batches, uncached, databases included; nginx sends a file. Logarithmic scale."


def draw_pages(results: Results) -> str:
    """The uncached page of each server, and the file of nginx. Empty if they were not measured."""
    bars = {}
    for section, entry in results.rounds:
        if section == ("page-cached" if entry == "nginx" else "page-uncached") and entry != "batchscan-release":
            bars[entry] = 1e3 / results.value(section, entry, "cost_ms").median
    if not bars:
        return ""
    height = HEAD_HEIGHT + len(bars) * ROW_HEIGHT + FOOT_HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{TITLE}">',
        STYLE,
        f'<text class="title" x="0" y="18">{TITLE}</text>',
        f'<text class="subtitle" x="0" y="38">{SUBTITLE}</text>',
    ]
    for index, entry in enumerate(sorted(bars, key=bars.get, reverse=True)):
        top, length = HEAD_HEIGHT + index * ROW_HEIGHT, bar_length(bars[entry], list(bars.values()))
        baseline = top + BAR_HEIGHT / 2 + 4.5
        style = "ours" if entry in OURS else "limit" if entry in ("nginx", "floor") else "peer"
        lines.append(
            f'<text class="label" x="{LABEL_WIDTH - 8}" y="{baseline}">{entry_title(entry)}</text>'
            f'<rect class="{style}" x="{LABEL_WIDTH}" y="{top}" width="{length:.1f}" height="{BAR_HEIGHT}" rx="2"/>'
            f'<text class="number" x="{LABEL_WIDTH + length + 6:.1f}" y="{baseline}">{number(bars[entry])}</text>'
        )
    return "\n".join([*lines, "</svg>\n"])


def bar_length(value: float, values: list[float]) -> float:
    """The scale starts at the power of ten below the smallest value."""
    start = math.ceil(math.log10(min(values))) - 1
    share = (math.log10(value) - start) / (math.log10(max(values)) - start)
    return (WIDTH - LABEL_WIDTH - NUMBER_WIDTH) * share
