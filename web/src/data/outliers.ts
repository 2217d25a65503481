// The typical range of a crop, and the batches outside it. Uses quartiles, never standard deviations: one ruined tray must
// not widen the range.

import type { Batch } from './batch';
import type { Columns } from './columns';
import { percentile, presentValues } from './percentile';
import { rowsBy, type Measure } from './statistics';

/** `low` and `high` are whole numbers, so that rounding on the screen cannot contradict a comparison. */
export interface Range {
  low: number;
  median: number;
  high: number;
}

// With fewer, the quartiles are too uncertain.
export const BATCHES_FOR_RANGE_MIN = 20;

export type Reason =
  /** `typical` may be null only for a rate of 0, which needs no comparison. */
  | { kind: 'low-germination' | 'low-usable' | 'high-variation'; value: number; typical: Range | null }
  | { kind: 'warning' };

export interface Outlier {
  row: number;
  reasons: Reason[];
  /** How far the values are outside their ranges; a rate of 0 adds `ZERO_WEIGHT`. */
  weight: number;
}

// Above the sum of any distances.
export const ZERO_WEIGHT = 1_000;

/** The outliers, the newest day first, and the strongest of a day first. */
export function findOutliers(columns: Columns, rows: Int32Array, ranges: TypicalRanges): Outlier[] {
  const all: Outlier[] = [];
  for (const { name, rows: cropRows } of rowsBy('crop', columns, rows)) {
    const typical = ranges.get(name);
    for (const row of cropRows) {
      const outlier = toOutlier(columns, row, typical);
      if (outlier !== null) all.push(outlier);
    }
  }
  const { day, ms } = columns;
  return all.sort(
    (a, b) => day[b.row]! - day[a.row]! || b.weight - a.weight || ms[b.row]! - ms[a.row]! || b.row - a.row,
  );
}

/** The rows with an unusual value, by its field. */
export type UnusualRows = Partial<Record<keyof Batch, ReadonlySet<number>>>;

export function unusualRows(outliers: readonly Outlier[]): UnusualRows {
  const rows = MEASURED.map(({ kind, field }) => {
    const found = outliers.filter(({ reasons }) => reasons.some((reason) => reason.kind === kind));
    return [field, new Set(found.map(({ row }) => row))];
  });
  return Object.fromEntries(rows) as UnusualRows;
}

/** Whether germination or the usable rate is low for the crop. */
export function isLow({ reasons }: Outlier): boolean {
  return reasons.some(({ kind }) => kind === 'low-germination' || kind === 'low-usable');
}

const MEASURED = [
  { kind: 'low-germination', field: 'avg_germination_rate', value: 'germination', sign: 1 },
  { kind: 'low-usable', field: 'avg_usable_seedling_rate', value: 'usable', sign: 1 },
  { kind: 'high-variation', field: 'avg_coefficient_of_variation', value: 'variation', sign: -1 },
] as const;

function toOutlier(columns: Columns, row: number, ranges: CropRanges | undefined): Outlier | null {
  const reasons: Reason[] = [];
  let weight = 0;
  for (const { kind, value: name, sign } of MEASURED) {
    const value = columns[name][row]!;
    const typical = ranges?.[name] ?? null;
    // NaN for a batch without the value: every comparison with it is false.
    const outside = typical === null ? 0 : sign === 1 ? typical.low - value : value - typical.high;
    const isZero = value === 0 && sign === 1;
    if (!isZero && !(outside > 0)) continue;
    reasons.push({ kind, value, typical });
    weight += outside + (isZero ? ZERO_WEIGHT : 0);
    // What did not germinate is not usable either.
    if (isZero) break;
  }
  if (columns.warning[row] === 1) reasons.push({ kind: 'warning' });
  return reasons.length === 0 ? null : { row, reasons, weight };
}

/** The mean difference of a rate from the median of each batch's own crop. Null for a single crop, and without ranges. */
export function meanFromTypical(columns: Columns, rows: Int32Array, ranges: TypicalRanges, measure: Measure): number | null {
  const crops = rowsBy('crop', columns, rows);
  let sum = 0;
  let count = 0;
  for (const { name, rows } of crops) {
    const typical = ranges.get(name)?.[measure];
    if (!typical) continue;
    const values = presentValues(columns[measure], rows);
    for (const value of values) sum += value - typical.median;
    count += values.length;
  }
  return crops.length < 2 || count === 0 ? null : sum / count;
}

/** Some batches of one loader. */
export interface Part {
  columns: Columns;
  rows: Int32Array;
}

/** Each is null when fewer than `BATCHES_FOR_RANGE_MIN` batches have the value. */
export interface CropRanges extends Record<Value, Range | null> {
  batches: number;
}

type Value = 'germination' | 'usable' | 'variation' | 'size';

/** By crop (null: not recorded); only those with enough batches. */
export type TypicalRanges = Map<string | null, CropRanges>;

export function typicalRanges(parts: readonly Part[]): TypicalRanges {
  const byCrop = new Map<string | null, Part[]>();
  for (const { columns, rows } of parts) {
    for (const crop of rowsBy('crop', columns, rows)) {
      byCrop.set(crop.name, [...(byCrop.get(crop.name) ?? []), { columns, rows: crop.rows }]);
    }
  }
  const ranges: TypicalRanges = new Map();
  for (const [crop, parts] of byCrop) {
    const batches = parts.reduce((sum, { rows }) => sum + rows.length, 0);
    if (batches < BATCHES_FOR_RANGE_MIN) continue;
    ranges.set(crop, {
      batches,
      germination: rangeOf(parts, 'germination'),
      usable: rangeOf(parts, 'usable'),
      variation: rangeOf(parts, 'variation'),
      size: rangeOf(parts, 'size'),
    });
  }
  return ranges;
}

// From the median, so many times the distance to a quartile. Beyond it are 2 % of a normal distribution on either side.
const QUARTILES = 3;
// A bad spell moves only the quartile on its own side: neither counts for more than 1.5 times the other. Rates near 100 %
// are naturally about that skewed.
const RATIO_MAX = 1.5;
// Trays have about a hundred cells: a smaller distance would make an outlier of a few cells.
const DISTANCE_MIN = 1;

function rangeOf(parts: readonly Part[], value: Value): Range | null {
  const values = concat(parts.map(({ columns, rows }) => presentValues(columns[value], rows))).sort();
  if (values.length < BATCHES_FOR_RANGE_MIN) return null;
  const at = (p: number): number => percentile(values, p)!;
  const [below, above] = [at(0.5) - at(0.25), at(0.75) - at(0.5)];
  const distance = (own: number, other: number): number =>
    QUARTILES * Math.max(DISTANCE_MIN, Math.min(own, RATIO_MAX * other));
  return {
    low: Math.floor(Math.max(at(0), at(0.5) - distance(below, above))),
    median: at(0.5),
    high: Math.ceil(Math.min(at(1), at(0.5) + distance(above, below))),
  };
}

function concat(arrays: readonly Float64Array[]): Float64Array {
  const all = new Float64Array(arrays.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const array of arrays) {
    all.set(array, at);
    at += array.length;
  }
  return all;
}
