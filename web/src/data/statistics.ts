// The statistics of the analysis. Means and percentiles ignore missing values. Days, ISO weeks and months are UTC.

import type { Columns } from './columns';
import { dayNumber, dayText, weekStart, type Step } from '../time/day';
import { mean, presentValues, splitRows } from './percentile';
import { dayCount, type Period } from './period';

export type Measure = 'germination' | 'usable';

/** How many batches, how many of them with warnings, and the averages of their rates. */
export function headline(columns: Columns, rows: Int32Array) {
  return {
    batches: rows.length,
    germination: mean(presentValues(columns.germination, rows)),
    usable: mean(presentValues(columns.usable, rows)),
    warnings: rows.filter((row) => columns.warning[row] === 1).length,
  };
}

// Between ten and eighty points read as a line.
const DAYS_BY_DAY_MAX = 45;
const DAYS_BY_WEEK_MAX = 550;

export function stepFor(period: Period): Step {
  const length = dayCount(period);
  return length <= DAYS_BY_DAY_MAX ? 'day' : length <= DAYS_BY_WEEK_MAX ? 'week' : 'month';
}

// A day in the next step, counted from the first day of a step.
const DAYS_TO_NEXT: Record<Step, number> = { day: 1, week: 7, month: 31 };

const nextStart = (start: string, step: Step): string => stepStart(dayNumber(start) + DAYS_TO_NEXT[step], step);

/** The index of the step that today is in; -1 if there is none. */
export const runningStep = (points: readonly SeriesPoint[], step: Step, today: string): number => points.findIndex(({ start }) => start <= today && today < nextStart(start, step));

export interface SeriesPoint {
  /** The first UTC day of the step; may be before the start of the period. */
  start: string;
  batches: number;
  mean: number | null;
}

export interface Series {
  step: Step;
  /** Every step of the period, including those without batches. */
  points: SeriesPoint[];
}

/** A rate per day, week or month. Ignores rows outside the period. */
export function series(columns: Columns, rows: Int32Array, period: Period, measure: Measure): Series {
  const step = stepFor(period);
  return { step, points: pointsOf(columns, rows, stepsOf(period, step), measure) };
}

export interface Dot {
  row: number;
  size: number;
  variation: number;
}

/** The batches with a size and a variation. */
export function dots({ size, variation }: Columns, rows: Int32Array): Dot[] {
  return Array.from(rows, (row) => ({ row, size: size[row]!, variation: variation[row]! })).filter(({ size, variation }) => !Number.isNaN(size + variation));
}

export interface Group {
  /** Null for "not recorded". */
  name: string | null;
  rows: Int32Array;
}

/** The rows of each crop or person, those with most batches first, then by name, "not recorded" last. */
export function rowsBy(by: 'crop' | 'person', columns: Columns, rows: Int32Array): Group[] {
  const names = by === 'crop' ? columns.crops : columns.people;
  return splitRows(rows, names.length + 1, (row) => columns[by][row]! + 1)
    .map((rows, group) => ({ name: names[group - 1] ?? null, rows }))
    .filter(({ rows }) => rows.length > 0)
    .sort((a, b) => b.rows.length - a.rows.length || byName(a, b));
}

/** "Not recorded" last. */
export const byName = (a: Pick<Group, 'name'>, b: Pick<Group, 'name'>): number => Number(a.name === null) - Number(b.name === null) || a.name!.localeCompare(b.name!);

/** The starts of the steps, and the step of each day. */
function stepsOf(period: Period, step: Step) {
  const firstDay = dayNumber(period.from);
  const starts: string[] = [];
  const stepOfDay = new Int32Array(dayCount(period));
  for (let at = 0; at < stepOfDay.length; at++) {
    const start = stepStart(firstDay + at, step);
    if (start !== starts.at(-1)) starts.push(start);
    stepOfDay[at] = starts.length - 1;
  }
  return { starts, firstDay, stepOfDay };
}

function stepStart(day: number, step: Step): string {
  if (step === 'month') return `${dayText(day).slice(0, 7)}-01`;
  return dayText(step === 'week' ? weekStart(day) : day);
}

function pointsOf(columns: Columns, rows: Int32Array, steps: ReturnType<typeof stepsOf>, measure: Measure): SeriesPoint[] {
  const { starts, firstDay, stepOfDay } = steps;
  return splitRows(rows, starts.length, (row) => stepOfDay[columns.day[row]! - firstDay] ?? -1).map((stepRows, at) => {
    return { start: starts[at]!, batches: stepRows.length, mean: mean(presentValues(columns[measure], stepRows)) };
  });
}
