// Batches per day as a calendar: columns are weeks, rows are weekdays. Long periods: columns are months, rows are years.
import { dayNumber, dayText, weekStart } from '../time/day';
import { count, date, month } from '../text/format';
import { text } from '../text';
import { locale } from '../text/language';
import type { Option } from './echarts';
import { axisStyle, type Theme } from './theme';
import type { Tooltip } from './tooltip';

interface Day {
  day: string;
  batches: number;
  images: number;
}

interface Cell extends Day {
  column: number;
  row: number;
}

interface Calendar {
  cells: Cell[];
  columns: string[];
  rows: string[];
  by: 'day' | 'month';
  busiest: number;
}

// Two years: 105 columns.
const DAYS_BY_DAY_MAX = 735;

export function toCalendar(days: readonly Day[]): Calendar {
  const calendar = days.length <= DAYS_BY_DAY_MAX ? byDay(days) : byMonth(days);
  return { ...calendar, busiest: calendar.cells.reduce((most, { batches }) => Math.max(most, batches), 0) };
}

const MARGIN = { left: 44, right: 2, top: 2, bottom: 24 };
// Wider cells than high, so that a few weeks fill the width.
const CELL_WIDTH_MAX = 90;
const CELL_HEIGHT_MAX = 26;
const GAP_PX = 2;

export function calendarHeight(calendar: Calendar, width: number): number {
  return MARGIN.top + MARGIN.bottom + calendar.rows.length * cellHeight(calendar, width);
}

export function activityOption(calendar: Calendar, theme: Theme, width: number): Option {
  const wide = cellWidth(calendar, width);
  const high = cellHeight(calendar, width);
  const axis = axisStyle(theme);
  const gap = wide > 8 ? GAP_PX : 1;
  const categories = { type: 'category', ...axis, splitLine: { show: false } } as const;
  return {
    grid: {
      left: MARGIN.left,
      top: MARGIN.top,
      width: wide * calendar.columns.length,
      height: high * calendar.rows.length,
    },
    xAxis: {
      ...categories,
      data: calendar.columns,
      axisLabel: { ...axis.axisLabel, interval: labelAt(calendar, wide), align: 'left', padding: [0, 0, 0, -wide / 2] },
    },
    yAxis: {
      ...categories,
      data: calendar.rows,
      inverse: true,
      axisLabel: { ...axis.axisLabel, interval: (at: number) => calendar.by === 'month' || at % 2 === 0 },
    },
    series: [
      {
        type: 'scatter',
        symbol: 'rect',
        symbolSize: [wide - gap, high - gap],
        cursor: 'pointer',
        emphasis: { scale: false, itemStyle: { borderColor: theme.ink, borderWidth: 1 } },
        data: calendar.cells.map(({ column, row, batches }) => ({
          value: [column, row],
          itemStyle: { color: theme.heat[heatOf(batches, calendar.busiest)]!, opacity: 1 },
        })),
      },
    ],
  };
}

export function activityTooltip(cell: Cell, by: Calendar['by']): Tooltip {
  return {
    title: by === 'day' ? date(cell.day) : month(cell.day),
    lines: [
      { label: text.figures.batches, value: count(cell.batches) },
      { label: text.figures.images, value: count(cell.images) },
    ],
    hint: text.activity.hint[by],
  };
}

/** 0 for none, otherwise one of five equal steps. */
function heatOf(batches: number, busiest: number): number {
  return batches === 0 ? 0 : Math.min(5, Math.ceil((batches / busiest) * 5));
}

function byDay(days: readonly Day[]): Omit<Calendar, 'busiest'> {
  const first = dayNumber(days[0]?.day ?? '1970-01-01');
  const monday = weekStart(first);
  const cells = days.map((day, at) => {
    const since = first + at - monday;
    return { ...day, column: Math.floor(since / 7), row: since % 7 };
  });
  const weeks = (cells.at(-1)?.column ?? 0) + 1;
  return {
    cells,
    by: 'day',
    rows: WEEKDAYS,
    columns: Array.from({ length: weeks }, (_, week) => weekLabel(monday + week * 7, week)),
  };
}

/** The name of the month for its first whole week; empty for other weeks. */
function weekLabel(monday: number, week: number): string {
  const day = dayText(monday);
  if (Number(day.slice(8)) > 7 && week > 0) return '';
  return monthName(Number(day.slice(5, 7)) - 1);
}

function byMonth(days: readonly Day[]): Omit<Calendar, 'busiest'> {
  const months = new Map<string, Cell>();
  const firstYear = Number(days[0]!.day.slice(0, 4));
  for (const { day, batches, images } of days) {
    const key = day.slice(0, 7);
    const cell = months.get(key) ?? {
      day: `${key}-01`,
      batches: 0,
      images: 0,
      column: Number(key.slice(5)) - 1,
      row: Number(key.slice(0, 4)) - firstYear,
    };
    cell.batches += batches;
    cell.images += images;
    months.set(key, cell);
  }
  const cells = [...months.values()];
  const years = (cells.at(-1)?.row ?? 0) + 1;
  return {
    cells,
    by: 'month',
    columns: Array.from({ length: 12 }, (_, at) => monthName(at)),
    rows: Array.from({ length: years }, (_, at) => String(firstYear + at)),
  };
}

function cellWidth(calendar: Calendar, width: number): number {
  return Math.max(3, Math.min(CELL_WIDTH_MAX, Math.floor((width - MARGIN.left - MARGIN.right) / calendar.columns.length)));
}

function cellHeight(calendar: Calendar, width: number): number {
  return calendar.by === 'day' ? Math.max(12, Math.min(CELL_HEIGHT_MAX, cellWidth(calendar, width))) : 22;
}

const MONTH_LABEL_PX = 34;

/** Which columns get a label, without overlaps. */
function labelAt(calendar: Calendar, wide: number): (at: number, name: string) => boolean {
  const shown = new Set<number>();
  let free = 0;
  calendar.columns.forEach((name, at) => {
    if (name === '' || at * wide < free) return;
    shown.add(at);
    free = at * wide + MONTH_LABEL_PX;
  });
  return (at) => shown.has(at);
}

const weekdayFormat = new Intl.DateTimeFormat(locale, { weekday: 'short', timeZone: 'UTC' });
const monthFormat = new Intl.DateTimeFormat(locale, { month: 'short', timeZone: 'UTC' });
// 1970-01-05 was a Monday.
const WEEKDAYS = Array.from({ length: 7 }, (_, at) => weekdayFormat.format(Date.UTC(1970, 0, 5 + at)));

function monthName(at: number): string {
  return monthFormat.format(Date.UTC(1970, at, 1));
}
