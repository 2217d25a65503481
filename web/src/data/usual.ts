// The usual range of a crop, its averages, and the batches far outside the range. Every number can be checked by hand from
// an export: percentiles as PERCENTILE.INC, plain averages.

import type { Batch } from './batch';
import type { Columns } from './columns';
import { groupBy, mean, percentile, presentValues } from './percentile';
import { rowsBy, type Measure } from './statistics';
import { dayText, weekStart } from '../time/day';

/** The middle 80 % of the values, in whole numbers, and the average of all. */
export interface Range {
  low: number;
  high: number;
  mean: number;
}

type Value = 'germination' | 'usable' | 'variation' | 'size';

/** A range is null when fewer than `BATCHES_FOR_RANGE_MIN` batches have the value. */
interface CropRanges extends Record<Value, Range | null> {
  batches: number;
}

/** By crop; only those with enough batches. */
export type UsualRanges = ReadonlyMap<string | null, CropRanges>;

// With fewer, a tenth is not even one batch.
export const BATCHES_FOR_RANGE_MIN = 10;

/** How many points outside the range are unusual. By definition, one batch in ten is below it. */
export const FAR_POINTS = 5;

// A rate that is bad for any crop: without a usual range, less is unusual.
export const LOW_RATE = 50;

export function usualRanges(columns: Columns, rows: Int32Array): UsualRanges {
  const ranges = new Map<string | null, CropRanges>();
  for (const { name, rows: cropRows } of rowsBy('crop', columns, rows)) {
    // Batches without a crop are of any.
    if (name === null || cropRows.length < BATCHES_FOR_RANGE_MIN) continue;
    const rangeOf = (value: Value): Range | null => toRange(presentValues(columns[value], cropRows).sort());
    ranges.set(name, {
      batches: cropRows.length,
      germination: rangeOf('germination'),
      usable: rangeOf('usable'),
      variation: rangeOf('variation'),
      size: rangeOf('size'),
    });
  }
  return ranges;
}

function toRange(values: Float64Array): Range | null {
  if (values.length < BATCHES_FOR_RANGE_MIN) return null;
  return { low: Math.round(percentile(values, 0.1)!), high: Math.round(percentile(values, 0.9)!), mean: mean(values)! };
}

/** How many points a value is below (negative) or above the range. Both are rounded, as people read them. */
export function pointsOutside(value: number, { low, high }: Range): number {
  const rounded = Math.round(value);
  return rounded < low ? rounded - low : Math.max(0, rounded - high);
}

/** Whether a rate of a batch is below the usual range of its crop, also slightly. */
export function isBelow(columns: Columns, row: number, ranges: UsualRanges): boolean {
  const usual = ranges.get(columns.cropName(columns.crop[row]!));
  return (['germination', 'usable'] as const).some((rate) => usual?.[rate] && pointsOutside(columns[rate][row]!, usual[rate]) < 0);
}

const MEASURED = [
  { kind: 'low-germination', field: 'avg_germination_rate', value: 'germination', sign: -1 },
  { kind: 'low-usable', field: 'avg_usable_seedling_rate', value: 'usable', sign: -1 },
  { kind: 'high-variation', field: 'avg_coefficient_of_variation', value: 'variation', sign: 1 },
] as const;

/** Whether a value is unusual: a rate far below the range, or nothing at all, or a variation far above. */
export function isUnusual(field: keyof Batch, value: number, range: Range | null): boolean {
  const sign = MEASURED.find((measured) => measured.field === field)?.sign;
  if (sign === undefined) return false;
  if (sign === -1 && (value === 0 || (range === null && Math.round(value) < LOW_RATE))) return true;
  return range !== null && pointsOutside(value, range) * sign >= FAR_POINTS;
}

export type Reason =
  | { kind: (typeof MEASURED)[number]['kind']; field: keyof Batch; value: number; range: Range | null }
  | { kind: 'warning'; isMeasured: boolean };

export interface UnusualBatch {
  row: number;
  /** The first is the strongest. */
  reasons: Reason[];
}

/** The unusual batches in the order of the rows. */
export function findUnusual(columns: Columns, rows: Int32Array, ranges: UsualRanges): UnusualBatch[] {
  const found: UnusualBatch[] = [];
  for (const row of rows) {
    const reasons = reasonsOf(columns, row, ranges.get(columns.cropName(columns.crop[row]!)));
    if (reasons.length > 0) found.push({ row, reasons });
  }
  return found;
}

function reasonsOf(columns: Columns, row: number, ranges: CropRanges | undefined): Reason[] {
  const reasons: Reason[] = [];
  for (const { kind, field, value: name } of MEASURED) {
    // NaN for a batch without the value: every comparison with it is false.
    const value = columns[name][row]!;
    const range = ranges?.[name] ?? null;
    if (isUnusual(field, value, range)) reasons.push({ kind, field, value, range });
  }
  if (columns.warning[row] === 1) reasons.push({ kind: 'warning', isMeasured: !Number.isNaN(columns.germination[row]!) });
  return reasons.sort((a, b) => rankOf(b) - rankOf(a));
}

// Seedlings that did not germinate are not usable either: only a clearly worse usable rate comes first, or one that is red alone.
const rankOf = (reason: Reason): number => pointsOf(reason) + (reason.kind === 'low-germination' ? 2 * FAR_POINTS : 0) + (isSevere([reason]) ? 100 : 0);

// Lost seedlings count more than uneven ones, and those more than a warning.
const VARIATION_WEIGHT = 0.1;

/** How many points a value is outside its range; without a range, how far from 100 %. */
function pointsOf(reason: Reason): number {
  if (reason.kind === 'warning') return 0;
  const { value, range, kind } = reason;
  const outside = range === null ? 100 - value : Math.abs(pointsOutside(value, range));
  return kind === 'high-variation' ? outside * VARIATION_WEIGHT : outside;
}

export const severity = (reasons: readonly Reason[]): number => Math.max(0, ...reasons.map(pointsOf));

// From here on it is a failure, not a dip.
export const SEVERE_POINTS = 15;

/** Whether a batch, or one of its numbers, is red wherever it is shown. The first reason of a red batch is red. */
export const isSevere = (reasons: readonly Reason[] = []): boolean => severity(reasons) >= SEVERE_POINTS;

const LAST_BATCHES = 6;

/** How many of the last six batches are below the usual range. `rows` are of one crop, oldest first, with their rates. */
export function countBelow({ germination }: Columns, rows: Int32Array, range: Range | null): { below: number; last: number } {
  const last = rows.subarray(-LAST_BATCHES);
  return { below: last.filter((row) => range !== null && pointsOutside(germination[row]!, range) < 0).length, last: last.length };
}

export interface Averages {
  /** Of the last four weeks, and of the last 365 days. */
  weeks: number | null;
  year: number | null;
  /** By how many points they differ. */
  change: number | null;
  /** Whether the four weeks are clearly below the year, without failures: since this Monday; null if not, or not any more. */
  declineSince: string | null;
  /** Whether it gets worse still; otherwise it dropped once. */
  isFalling: boolean;
}

// Fewer batches or points may be chance.
const DECLINE_BATCHES_MIN = 5;
const DECLINE_POINTS_MIN = 3;

/** The plain averages of a rate. `rows` are of one crop and of the year; the four weeks start on `firstDay`. Failures are in the
    averages, but are no decline: they have their own cards. */
export function averages(columns: Columns, rows: Int32Array, firstDay: number, measure: Measure, failures: ReadonlySet<number>): Averages {
  const averagesOf = (rows: Int32Array) => {
    const recent = presentValues(columns[measure], rows.filter((row) => columns.day[row]! >= firstDay));
    return { batches: recent.length, weeks: mean(recent), year: mean(presentValues(columns[measure], rows)) };
  };
  const usual = rows.filter((row) => !failures.has(row));
  const others = averagesOf(usual);
  const isDecline = others.batches >= DECLINE_BATCHES_MIN && others.year! - others.weeks! >= DECLINE_POINTS_MIN;
  const { weeks, year } = averagesOf(rows);
  const below = isDecline ? weeksBelow(columns, usual, measure, (others.weeks! + others.year!) / 2) : [];
  const averageOf = (weeks: typeof below): number => mean(Float64Array.from(weeks, ({ average }) => average!))!;
  const half = Math.ceil(below.length / 2);
  const isFalling = below.length > 1 && averageOf(below.slice(half)) - averageOf(below.slice(0, half)) >= DECLINE_POINTS_MIN;
  const change = weeks === null || year === null ? null : weeks - year;
  return { weeks, year, change, declineSince: below.length === 0 ? null : dayText(below.at(-1)!.monday), isFalling };
}

/** The consecutive weeks, from the latest one back, with an average below a limit. Weeks without batches do not count. */
function weeksBelow(columns: Columns, rows: Int32Array, measure: Measure, limit: number) {
  const weeks = groupBy(rows, (row) => weekStart(columns.day[row]!))
    .map(([monday, rows]) => ({ monday, average: mean(presentValues(columns[measure], Int32Array.from(rows))) }))
    .filter(({ average }) => average !== null)
    .reverse();
  const isBelow = ({ average }: { average: number | null }): boolean => average! < limit;
  // The latest week may not be over, with one good batch only.
  const last = isBelow(weeks[0]!) ? weeks : weeks.slice(1);
  const before = last.findIndex((week) => !isBelow(week));
  return last.slice(0, before < 0 ? undefined : before);
}
