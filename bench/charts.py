"""Bar charts as SVG, readable on light and dark backgrounds."""

import math
from html import escape
from typing import NamedTuple

from report import Results, number, plural
from servers import OURS, PEERS

WIDTH, LABEL_WIDTH, NUMBER_WIDTH = 760, 190, 110
ROW_HEIGHT, BAR_HEIGHT, HEAD_HEIGHT, FOOT_HEIGHT = 26, 16, 58, 14
MIN_BAR = 2

STYLE = """<style>
text { font: 13px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #1f2328; }
.title { font-size: 15px; font-weight: 600; } .subtitle { font-size: 12px; fill: #59636e; }
.label { text-anchor: end; } .number { font-variant-numeric: tabular-nums; }
.ours { fill: #2f8f4e; } .peer { fill: #8c959f; } .limit { fill: #4a7fc1; } .pale { opacity: 0.55; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .subtitle { fill: #9198a1; }
  .ours { fill: #4fbf73; } .peer { fill: #6e7681; } .limit { fill: #6ea3e0; }
}
</style>"""


class Bar(NamedTuple):
    label: str
    value: float
    text: str
    style: str


def all_charts(rows: list[dict]) -> dict[str, str]:
    """SVG by name; only what the rows allow."""
    results = Results(rows)
    charts = {"pages": pages(results), "latency": latency(results), "connections": connections(results)}
    return {name: svg for name, svg in charts.items() if svg}


def style(server: str) -> str:
    return "ours" if server in OURS else "limit" if server == "nginx" else "peer"


def page_keys(results: Results) -> dict[str, dict]:
    """The uncached page of each server; of nginx, its file."""
    keys = {}
    for name in PEERS:
        key = {"section": "requests", "server": name, "scenario": "page-cached" if name == "nginx" else "page-uncached"}
        if results.select(**key):
            keys[name] = key
    return keys


def pages(results: Results) -> str:
    bars = []
    for name, key in page_keys(results).items():
        rate = results.median("rate", **key)
        bars.append(Bar(PEERS[name].title, rate, number(rate), style(name)))
    return draw(
        "Pages of 1,000 batches per second, one server core",
        "v2, 100,000 batches, uncached; nginx sends a file. Logarithmic scale.",
        sorted(bars, key=lambda bar: -bar.value), logarithmic=True,
    )


def latency(results: Results) -> str:
    bars = []
    for name, key in page_keys(results).items():
        for label, value, pale in ((PEERS[name].title, "p50_ms", ""), ("p99", "p99_ms", " pale")):
            ms = results.median(value, **key)
            bars.append(Bar(label, ms, f"{number(ms)} ms", style(name) + pale))
    return draw(
        "Latency of a page of 1,000 batches",
        "Median and 99th percentile. v2, uncached, 16 connections. Logarithmic scale.",
        bars, logarithmic=True,
    )


def connections(results: Results) -> str:
    bars = []
    for server, scenario, count in results.keys("connections", "server", "scenario", "connections"):
        if server != "fastapi":
            key = {"section": "connections", "server": server, "scenario": scenario, "connections": count}
            rate, kind = results.median("rate", **key), "nginx" if server == "nginx" else scenario.removeprefix("page-")
            bars.append(Bar(f"{kind}, {plural(count, 'connection')}", rate, number(rate), style(server)))
    return draw(
        "Pages per second by number of connections",
        "batchscan on SQLite, one server core; nginx sends a file.",
        bars, logarithmic=False,
    )


def draw(title: str, subtitle: str, bars: list[Bar], logarithmic: bool) -> str:
    if not bars:
        return ""
    height = HEAD_HEIGHT + len(bars) * ROW_HEIGHT + FOOT_HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' aria-label="{escape(title)}">',
        STYLE,
        f'<text class="title" x="0" y="18">{escape(title)}</text>',
        f'<text class="subtitle" x="0" y="38">{escape(subtitle)}</text>',
    ]
    values = [bar.value for bar in bars]
    for index, bar in enumerate(bars):
        top = HEAD_HEIGHT + index * ROW_HEIGHT
        length, baseline = bar_length(bar.value, values, logarithmic), top + BAR_HEIGHT / 2 + 4.5
        lines.append(
            f'<text class="label" x="{LABEL_WIDTH - 8}" y="{baseline}">{escape(bar.label)}</text>'
            f'<rect class="{bar.style}" x="{LABEL_WIDTH}" y="{top}" width="{length:.1f}" height="{BAR_HEIGHT}" rx="2"/>'
            f'<text class="number" x="{LABEL_WIDTH + length + 6:.1f}" y="{baseline}">{escape(bar.text)}</text>'
        )
    return "\n".join([*lines, "</svg>\n"])


def bar_length(value: float, values: list[float], logarithmic: bool) -> float:
    """A logarithmic scale starts at the power of ten below the smallest value."""
    room, share = WIDTH - LABEL_WIDTH - NUMBER_WIDTH, value / max(values)
    if logarithmic:
        start = math.ceil(math.log10(min(values))) - 1
        share = (math.log10(value) - start) / (math.log10(max(values)) - start)
    return max(room * share, MIN_BAR)
