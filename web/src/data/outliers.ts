// The usual range of a crop, and the batches outside it. Uses quartiles, never standard deviations: one ruined tray must
// not widen the range.

import type { Batch } from './batch';
import type { Columns } from './columns';
import { ascendingValues, mean, percentile, presentValues } from './percentile';
import { rowsBy, type Measure, type SeriesPoint } from './statistics';

/** `low` and `high` are whole numbers. `mean` is that of all values, with those outside at the end of the range. */
export interface Range {
  low: number;
  mean: number;
  high: number;
}

// With fewer, the quartiles are too uncertain.
export const BATCHES_FOR_RANGE_MIN = 20;

export type Reason =
  /** `range` may be null only for a rate of 0, which needs no comparison. */
  | { kind: 'low-germination' | 'low-usable' | 'high-variation'; value: number; range: Range | null }
  | { kind: 'warning'; isMeasured: boolean };

interface Outlier {
  row: number;
  reasons: Reason[];
  /** How far the values are outside their ranges; a rate of 0 adds `ZERO_WEIGHT`. */
  weight: number;
}

// Above the sum of any distances.
export const ZERO_WEIGHT = 1_000;
// Lost seedlings count more than uneven ones.
const VARIATION_WEIGHT = 0.1;

/** The outliers, the strongest first, and of equal ones the newest. */
export function findOutliers(columns: Columns, rows: Int32Array, ranges: UsualRanges): Outlier[] {
  const all: Outlier[] = [];
  for (const { name, rows: cropRows } of rowsBy('crop', columns, rows)) {
    const cropRanges = ranges.get(name);
    for (const row of cropRows) {
      const outlier = toOutlier(columns, row, cropRanges);
      if (outlier !== null) all.push(outlier);
    }
  }
  const { ms } = columns;
  return all.sort((a, b) => b.weight - a.weight || ms[b.row]! - ms[a.row]! || b.row - a.row);
}

/** The usual range of every unusual value, by its field and row. Null if it is not known. */
export type UnusualRows = Partial<Record<keyof Batch, ReadonlyMap<number, Range | null>>>;

export function unusualRows(outliers: readonly Outlier[]): UnusualRows {
  const rows = MEASURED.map(({ kind, field }) => {
    const found = outliers.flatMap(({ row, reasons }) =>
      reasons.flatMap((reason) => (reason.kind === kind ? [[row, reason.range] as const] : [])),
    );
    return [field, new Map(found)];
  });
  return Object.fromEntries(rows) as UnusualRows;
}

const MEASURED = [
  { kind: 'low-germination', field: 'avg_germination_rate', value: 'germination', sign: 1 },
  { kind: 'low-usable', field: 'avg_usable_seedling_rate', value: 'usable', sign: 1 },
  { kind: 'high-variation', field: 'avg_coefficient_of_variation', value: 'variation', sign: -1 },
] as const;

/** Whether a value of a batch is unusual: a low rate, or a high variation. Rounded, as people read 33.1 % as within 33 %. */
export function isUnusual(field: keyof Batch, value: number, range: Range | null): boolean {
  const sign = MEASURED.find((measured) => measured.field === field)?.sign;
  if (sign === undefined) return false;
  return (value === 0 && sign === 1) || outside(Math.round(value), range, sign) > 0;
}

function outside(value: number, range: Range | null, sign: 1 | -1): number {
  if (range === null) return 0;
  return sign === 1 ? range.low - value : value - range.high;
}

function toOutlier(columns: Columns, row: number, ranges: CropRanges | undefined): Outlier | null {
  const reasons: Reason[] = [];
  let weight = 0;
  for (const { kind, field, value: name, sign } of MEASURED) {
    const value = columns[name][row]!;
    const range = ranges?.[name] ?? null;
    // NaN for a batch without the value: every comparison with it is false.
    if (!isUnusual(field, value, range)) continue;
    reasons.push({ kind, value, range });
    weight += outside(value, range, sign) * (sign === 1 ? 1 : VARIATION_WEIGHT) + (value === 0 && sign === 1 ? ZERO_WEIGHT : 0);
  }
  if (columns.warning[row] === 1) reasons.push({ kind: 'warning', isMeasured: !Number.isNaN(columns.germination[row]!) });
  return reasons.length === 0 ? null : { row, reasons, weight };
}

/** One failed batch must not count more than a weak batch. */
function clamp(value: number, low: number, high: number): number {
  return Math.max(low, Math.min(high, value));
}

/** The mean difference of a rate from the mean of each batch's own crop, and the mean of these means. Null without ranges. */
export function meanFromUsual(
  columns: Columns,
  rows: Int32Array,
  ranges: UsualRanges,
  measure: Measure,
): { points: number; usual: number } | null {
  let points = 0;
  let usual = 0;
  let count = 0;
  for (const { name, rows: cropRows } of rowsBy('crop', columns, rows)) {
    const range = ranges.get(name)?.[measure];
    if (!range) continue;
    const values = presentValues(columns[measure], cropRows);
    for (const value of values) points += clamp(value, range.low, range.high) - range.mean;
    usual += range.mean * values.length;
    count += values.length;
  }
  return count === 0 ? null : { points: points / count, usual: usual / count };
}

// In percentage points, and steps in a row. Less may be chance.
const BELOW_MIN = 1;
const STEPS_BELOW_MIN = 3;

/**
 * Since when, up to the end, the batches are below the mean of their crops, and their mean since then. A single good step
 * does not count, nor one with few batches: each is averaged with the steps next to it. Null if there are too few steps or
 * points.
 */
export function belowUsualSince(
  steps: readonly Pick<SeriesPoint, 'start' | 'rows'>[],
  columns: Columns,
  ranges: UsualRanges,
  measure: Measure,
): { start: string; mean: number } | null {
  const rowsOf = (some: typeof steps): Int32Array => Int32Array.from(some.flatMap(({ rows }) => [...rows]));
  const pointsBelow = (some: typeof steps): number => -(meanFromUsual(columns, rowsOf(some), ranges, measure)?.points ?? NaN);
  const measured = steps.filter((step) => !Number.isNaN(pointsBelow([step])));
  const last = measured.findLastIndex((_, at) => pointsBelow(measured.slice(Math.max(0, at - 1), at + 2)) < BELOW_MIN);
  const rest = measured.slice(last + 1);
  const below = rest.slice(rest.findIndex((step) => pointsBelow([step]) >= BELOW_MIN));
  if (below.length < STEPS_BELOW_MIN || pointsBelow(below) < BELOW_MIN) return null;
  return { start: below[0]!.start, mean: mean(presentValues(columns[measure], rowsOf(below)))! };
}

/** Each is null when fewer than `BATCHES_FOR_RANGE_MIN` batches have the value. */
interface CropRanges extends Record<Value, Range | null> {
  batches: number;
}

type Value = 'germination' | 'usable' | 'variation' | 'size';

/** By crop; only those with enough batches. */
export type UsualRanges = Map<string | null, CropRanges>;

export function usualRanges(columns: Columns, rows: Int32Array): UsualRanges {
  const ranges: UsualRanges = new Map();
  for (const { name, rows: cropRows } of rowsBy('crop', columns, rows)) {
    // Batches without a crop are of any.
    if (name === null || cropRows.length < BATCHES_FOR_RANGE_MIN) continue;
    const rangeIn = (value: Value): Range | null => rangeOf(ascendingValues(columns[value], cropRows));
    ranges.set(name, {
      batches: cropRows.length,
      germination: rangeIn('germination'),
      usable: rangeIn('usable'),
      variation: rangeIn('variation'),
      size: rangeIn('size'),
    });
  }
  return ranges;
}

// How far the range reaches, in distances from the median to a quartile. Beyond it are 2 % of a normal distribution per side.
const QUARTILES = 3;
// A bad spell moves only the quartile on its own side: neither counts for more than 1.5 times the other. Rates near 100 %
// are naturally about that skewed.
const RATIO_MAX = 1.5;
// Trays have about a hundred cells: a smaller distance would make an outlier of a few cells.
const DISTANCE_MIN = 1;
// In percentage points. Just outside is not unusual.
const MARGIN = 1;

function rangeOf(values: Float64Array): Range | null {
  if (values.length < BATCHES_FOR_RANGE_MIN) return null;
  const at = (p: number): number => percentile(values, p)!;
  const [below, above] = [at(0.5) - at(0.25), at(0.75) - at(0.5)];
  const distance = (own: number, other: number): number =>
    QUARTILES * Math.max(DISTANCE_MIN, Math.min(own, RATIO_MAX * other));
  const low = Math.floor(Math.max(at(0), at(0.5) - distance(below, above)) - MARGIN);
  const high = Math.ceil(Math.min(at(1), at(0.5) + distance(above, below) + MARGIN));
  return {
    low: Math.max(Math.min(0, Math.floor(at(0))), low),
    mean: mean(values.map((value) => clamp(value, low, high)))!,
    high,
  };
}
