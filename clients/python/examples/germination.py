"""Germination of the last year by crop: a table and a chart.

    BATCHSCAN_URL=… BATCHSCAN_CLIENT_ID=… BATCHSCAN_CLIENT_SECRET=… python germination.py germination.png

Needs batchscan[pandas] and matplotlib. Editors with notebook cells run the `# %%` parts one by one.
"""

# %% Read a year of batches
import sys
from datetime import datetime, timedelta, timezone

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.dates import MonthLocator, num2date
from matplotlib.ticker import PercentFormatter

from batchscan import Client

today = datetime.now(timezone.utc)
with Client.from_env() as client:
    batches = client.to_pandas(start=today - timedelta(days=365))

measured = batches.dropna(subset=["crop_type", "avg_germination_rate"]).rename(
    columns={"crop_type": "crop", "avg_germination_rate": "germination"}
)
if measured.empty:
    sys.exit("no batch of the last year has a crop and a germination rate")

# %% One row per crop, the best first. Only the most frequent crops
MOST_CROPS = 10

crops = measured["crop"].value_counts().index[:MOST_CROPS]
measured = measured[measured["crop"].isin(crops)]
by_crop = measured.groupby("crop")["germination"]
table = by_crop.agg(batches="size", mean="mean", worst_tenth=lambda rates: rates.quantile(0.1))
table = table.sort_values("mean", ascending=False)
print(table.round(1).to_string())

# %% One point per crop and week: the mean and the middle 50 % of the batches
FEWEST_IN_A_WEEK = 3  # a single bad tray is not a bad week

day = measured["batch_creation_date"].dt.tz_localize(None)
weekly = (
    measured.groupby(["crop", day.dt.to_period("W").dt.start_time.rename("week")])["germination"]
    .agg(mean="mean", low=lambda rates: rates.quantile(0.25), high=lambda rates: rates.quantile(0.75), batches="size")
    .reset_index()
)
weekly = weekly[weekly["batches"] >= FEWEST_IN_A_WEEK]
if weekly.empty:
    sys.exit(f"no crop has {FEWEST_IN_A_WEEK} batches in any week; nothing to plot")


def weeks_of(crop: str) -> pd.DataFrame:
    """All weeks in order, empty where there are too few batches, so that lines have gaps there."""
    weeks = weekly[weekly["crop"] == crop].set_index("week")
    return weeks.reindex(pd.date_range(weekly["week"].min(), weekly["week"].max(), freq="W-MON"))


# %% The headline: the crop that fell most below its own median, and in which months
usual = by_crop.median()
monthly = (
    measured.groupby(["crop", day.dt.to_period("M").rename("month")])["germination"]
    .agg(mean="mean", batches="size")
    .reset_index()
)
monthly["below"] = monthly["crop"].map(usual) - monthly["mean"]
monthly["lost"] = monthly["below"] * monthly["batches"]  # weighted, so that a single tray does not win
worst = monthly.loc[monthly["lost"].idxmax()]
fallen = worst["crop"]
fall = monthly[(monthly["crop"] == fallen) & (monthly["lost"] >= worst["lost"] / 2)]
headline = (
    f"{fallen} germinated {fall['lost'].sum() / fall['batches'].sum():.0f} points below its usual "
    f"{usual[fallen]:.0f} % in {' and '.join(fall['month'].dt.strftime('%B'))}"
)

# %% The chart: one panel per crop, all on one scale
INK, QUIET, CALM, ALARM = "#22302b", "#7d8a85", "#4f8a6d", "#b8482e"

columns = min(5, len(table))
rows = -(-len(table) // columns)
# A single lower band may be clipped, so that the other panels are not squeezed.
lowest = weekly["low"].quantile(0.01)

plt.rcParams.update({"font.family": "DejaVu Sans", "font.size": 9, "text.color": INK, "axes.labelcolor": INK})
figure, grid = plt.subplots(rows, columns, figsize=(13, 2.3 * rows + 1.6), sharex=True, sharey=True, squeeze=False)


def draw(panel: Axes, crop: str) -> None:
    weeks, colour = weeks_of(crop), ALARM if crop == fallen else CALM
    panel.axhline(usual[crop], color=QUIET, linewidth=0.8, linestyle=(0, (2, 3)))
    panel.fill_between(weeks.index, weeks["low"], weeks["high"], color=colour, alpha=0.18, linewidth=0)
    panel.plot(weeks.index, weeks["mean"], color=colour, linewidth=1.7, solid_capstyle="round", zorder=3)
    panel.set_title(crop, loc="left", fontsize=9.5, fontweight="bold", color=colour if colour == ALARM else INK)
    panel.set_title(f"{usual[crop]:.0f} %", loc="right", fontsize=9.5, color=QUIET)
    for month in fall["month"] if crop == fallen else ():
        panel.axvspan(month.start_time, month.end_time, color=ALARM, alpha=0.07, linewidth=0)


def month_label(days: float, _: int | None = None) -> str:
    month = num2date(days)
    return f"{month:%b}\n{month:%Y}" if month.month == 1 else f"{month:%b}\n "


def style(panel: Axes) -> None:
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.spines["bottom"].set_color(QUIET)
    panel.grid(axis="y", color="#e4e9e6", linewidth=0.8)
    panel.set_axisbelow(True)
    panel.tick_params(length=0, colors=QUIET)
    panel.set_ylim(min(80, lowest // 10 * 10), 100)
    panel.yaxis.set_major_formatter(PercentFormatter(decimals=0))
    panel.xaxis.set_major_locator(MonthLocator(bymonth=(1, 4, 7, 10)))
    panel.xaxis.set_major_formatter(month_label)


for panel, crop in zip(grid.flat, table.index):
    draw(panel, crop)
    style(panel)
for panel in list(grid.flat)[len(table) :]:
    panel.set_visible(False)

inch = 1 / figure.get_figheight()
figure.subplots_adjust(left=0.05, right=0.985, top=1 - 1.25 * inch, bottom=0.6 * inch, hspace=0.25, wspace=0.1)
figure.text(0.012, 1 - 0.12 * inch, headline, fontsize=15, fontweight="bold", va="top")
figure.text(
    0.012,
    1 - 0.48 * inch,
    f"Weekly mean germination by crop, {day.min():%B %Y} to {day.max():%B %Y}; weeks with fewer than "
    f"{FEWEST_IN_A_WEEK} batches are left out.\n"
    "Band: middle 50 % of the week's batches. Dotted line and grey number: the crop's median of the year.",
    fontsize=9.5,
    color=QUIET,
    va="top",
    linespacing=1.5,
)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "germination.png", dpi=150, facecolor="white")
