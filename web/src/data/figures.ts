// What the overview shows: headline, series, distributions, dots and activity. Means and percentiles are
// over the batches that have the value: nulls are left out, never zero. Days, ISO weeks and months are
// UTC. Percentiles interpolate linearly (see percentile.ts). Draws nothing, formats nothing.

import type { Columns } from './columns';
import { dayNumber, dayText } from './day';
import { ascendingValues, mean, percentile, presentValues, splitRows } from './percentile';
import { days, type Window } from './window';

export type Measure = 'germination' | 'usable';

export interface Headline {
  batches: number;
  images: number;
  germination: number | null;
  usable: number | null;
  /** How many batches have warnings. */
  warnings: number;
}

export function headline(columns: Columns, rows: Int32Array): Headline {
  let images = 0;
  let warnings = 0;
  for (const row of rows) {
    images += columns.images[row]!;
    warnings += columns.warning[row]!;
  }
  return {
    batches: rows.length,
    images,
    germination: mean(presentValues(columns.germination, rows)),
    usable: mean(presentValues(columns.usable, rows)),
    warnings,
  };
}

export type Step = 'day' | 'week' | 'month';

// Up to six weeks by the day, then some eighty weeks, then months: between ten and eighty points
// read as a line, fewer as scattered dots, more as noise.
const DAYS_BY_DAY_MAX = 45;
const DAYS_BY_WEEK_MAX = 550;

export function stepFor(window: Window): Step {
  const length = days(window);
  return length <= DAYS_BY_DAY_MAX ? 'day' : length <= DAYS_BY_WEEK_MAX ? 'week' : 'month';
}

export interface SeriesPoint {
  /** The UTC day the step starts; the first may lie before the window's first day. */
  start: string;
  batches: number;
  /** Those among `batches` that have the measure: what mean, low and high rest on. */
  measured: number;
  mean: number | null;
  /** 10th and 90th percentile. */
  low: number | null;
  high: number | null;
}

export interface CropSeries {
  crop: string | null;
  batches: number;
  /** The same steps as the whole's. */
  points: SeriesPoint[];
}

export interface Series {
  step: Step;
  /** Every step of the window, those without batches too. */
  all: SeriesPoint[];
  /** The most scanned first, at most `cropsMax`. */
  crops: CropSeries[];
  /** How many crops were left out. */
  left: number;
}

export function series(columns: Columns, rows: Int32Array, window: Window, measure: Measure, cropsMax: number): Series {
  const step = stepFor(window);
  const steps = stepsOf(window, step);
  const inWindow = rowsWithin(columns, rows, window);
  const crops = rowsByCrop(columns, inWindow);
  const shown = crops.slice(0, Math.max(0, cropsMax));
  return {
    step,
    all: pointsOf(columns, inWindow, steps, measure),
    crops: shown.map(({ index, rows: own }) => ({
      crop: columns.cropName(index),
      batches: own.length,
      points: pointsOf(columns, own, steps, measure),
    })),
    left: crops.length - shown.length,
  };
}

export interface Distribution {
  crop: string | null;
  batches: number;
  /** Those among `batches` that have the measure: what all that follows rests on. */
  measured: number;
  min: number;
  q1: number;
  median: number;
  q3: number;
  max: number;
  mean: number;
}

/** One for each crop that has the measure at all, the most scanned first. */
export function distributions(columns: Columns, rows: Int32Array, measure: Measure): Distribution[] {
  const found: Distribution[] = [];
  for (const { index, rows: own } of rowsByCrop(columns, rows)) {
    const values = ascendingValues(columns[measure], own);
    if (values.length === 0) continue;
    found.push({
      crop: columns.cropName(index),
      batches: own.length,
      measured: values.length,
      min: values[0]!,
      q1: percentile(values, 0.25)!,
      median: percentile(values, 0.5)!,
      q3: percentile(values, 0.75)!,
      max: values.at(-1)!,
      mean: mean(values)!,
    });
  }
  return found;
}

export interface Dot {
  row: number;
  crop: number;
  size: number;
  variation: number;
}

/** The batches that have a size and a variation; an even sample in the rows' order when there are more than `max`. */
export function dots(columns: Columns, rows: Int32Array, max: number): { dots: Dot[]; of: number } {
  const { size, variation, crop } = columns;
  const both = rows.filter((row) => size[row] === size[row] && variation[row] === variation[row]);
  const count = Math.min(both.length, Math.max(0, max));
  const sample: Dot[] = [];
  for (let at = 0; at < count; at++) {
    const row = both[Math.floor((at * both.length) / count)]!;
    sample.push({ row, crop: crop[row]!, size: size[row]!, variation: variation[row]! });
  }
  return { dots: sample, of: both.length };
}

/** Each day of the window, those without scans too. Rows outside the window are left out. */
export function activity(
  columns: Columns,
  rows: Int32Array,
  window: Window,
): { day: string; batches: number; images: number }[] {
  const first = dayNumber(window.from);
  const all = Array.from({ length: days(window) }, (_, at) => ({ day: dayText(first + at), batches: 0, images: 0 }));
  for (const row of rows) {
    const entry = all[columns.day[row]! - first];
    if (entry === undefined) continue;
    entry.batches++;
    entry.images += columns.images[row]!;
  }
  return all;
}

/** The rows of each crop met, the most scanned first; equals by name, "no crop" last among them. */
export function rowsByCrop(columns: Columns, rows: Int32Array): { index: number; rows: Int32Array }[] {
  return splitRows(rows, columns.crops.length + 1, (row) => columns.crop[row]! + 1)
    .map((own, group) => ({ index: group - 1, rows: own }))
    .filter((crop) => crop.rows.length > 0)
    .sort((a, b) => b.rows.length - a.rows.length || byName(columns.cropName(a.index), columns.cropName(b.index)));
}

function byName(a: string | null, b: string | null): number {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? 1 : -1;
  return a < b ? -1 : 1;
}

interface Steps {
  /** The day each step starts. */
  starts: string[];
  firstDay: number;
  /** The step of each day of the window. */
  ofDay: Int32Array;
}

function stepsOf(window: Window, step: Step): Steps {
  const firstDay = dayNumber(window.from);
  const starts: string[] = [];
  const ofDay = new Int32Array(days(window));
  for (let at = 0; at < ofDay.length; at++) {
    const start = stepStart(firstDay + at, step);
    if (start !== starts.at(-1)) starts.push(start);
    ofDay[at] = starts.length - 1;
  }
  return { starts, firstDay, ofDay };
}

function stepStart(day: number, step: Step): string {
  if (step === 'month') return `${dayText(day).slice(0, 7)}-01`;
  // 1970-01-01 was a Thursday, three days after its Monday.
  return dayText(step === 'week' ? Math.floor((day + 3) / 7) * 7 - 3 : day);
}

function pointsOf(columns: Columns, rows: Int32Array, steps: Steps, measure: Measure): SeriesPoint[] {
  const { starts, firstDay, ofDay } = steps;
  return splitRows(rows, starts.length, (row) => ofDay[columns.day[row]! - firstDay] ?? -1).map((own, at) => {
    const values = ascendingValues(columns[measure], own);
    return {
      start: starts[at]!,
      batches: own.length,
      measured: values.length,
      mean: mean(values),
      low: percentile(values, 0.1),
      high: percentile(values, 0.9),
    };
  });
}

function rowsWithin(columns: Columns, rows: Int32Array, window: Window): Int32Array {
  const first = dayNumber(window.from);
  const last = dayNumber(window.to);
  return rows.filter((row) => columns.day[row]! >= first && columns.day[row]! <= last);
}
