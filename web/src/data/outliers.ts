// The typical range of a crop, and the batches that are outliers. Uses percentiles, never standard deviations: one
// ruined tray must not widen the range.
//
// The score of a value is its distance to its crop's median in interquartile ranges (IQR). For evenly spread data a
// score of 2 is Tukey's fence (quartile + 1.5 IQR); 0.35 % of a normal distribution lie beyond.

import type { Batch } from './batch';
import type { Columns } from './columns';
import { percentile, presentValues } from './percentile';
import { rowsByCrop } from './statistics';

/** 5th, 50th and 95th percentile. */
export interface Range {
  low: number;
  median: number;
  high: number;
}

// Below twenty, the 5th percentile is the smallest value.
export const BATCHES_FOR_RANGE_MIN = 20;

export type Reason =
  /** `typical` may be null only for a rate of 0, which needs no comparison. */
  | { kind: 'low-germination' | 'low-usable' | 'high-variation'; value: number; typical: Range | null }
  | { kind: 'warning' };

export interface Outlier {
  row: number;
  reasons: Reason[];
  /** The sum of the scores; a warning adds `WARNING_WEIGHT`, a rate of 0 `ZERO_WEIGHT`. */
  weight: number;
}

export const OUTLIER_IQRS = 2;

// Below any outlier score: many warnings are only about a blurred picture.
export const WARNING_WEIGHT = 1;

// Above any score: 100 points at the smallest IQR are 200.
export const ZERO_WEIGHT = 1_000;

// Rates are in percent with two digits, and trays have about a hundred cells: a smaller spread would make an outlier of
// a single cell.
const IQR_MIN = 0.5;

/** The outliers, the newest day first, and the strongest of a day first. */
export function findOutliers(columns: Columns, rows: Int32Array, spreads: CropSpreads): Outlier[] {
  const all: Outlier[] = [];
  for (const { index, rows: cropRows } of rowsByCrop(columns, rows)) {
    const spread = spreads.get(columns.cropName(index));
    for (const row of cropRows) {
      const outlier = toOutlier(columns, row, spread);
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

function toOutlier(columns: Columns, row: number, spreads: CropSpread | undefined): Outlier | null {
  const reasons: Reason[] = [];
  let weight = 0;
  for (const { kind, value: name, sign } of MEASURED) {
    const value = columns[name][row]!;
    const spread = spreads?.[name] ?? null;
    const score = spread === null ? 0 : sign * scoreBelow(value, spread);
    const isZero = value === 0 && sign === 1;
    if (!isZero && !(spread !== null && score > 0 && isUnusual(value, spread))) continue;
    reasons.push({ kind, value, typical: spread?.range ?? null });
    weight += score + (isZero ? ZERO_WEIGHT : 0);
    // What did not germinate is not usable either.
    if (isZero) break;
  }
  if (columns.warning[row] === 1) {
    reasons.push({ kind: 'warning' });
    weight += WARNING_WEIGHT;
  }
  return reasons.length === 0 ? null : { row, reasons, weight };
}

/** Some batches of one loader. */
export interface Part {
  columns: Columns;
  rows: Int32Array;
}

/** Each is null when fewer than `BATCHES_FOR_RANGE_MIN` batches have the value. */
export interface CropSpread extends Record<Value, Spread | null> {
  batches: number;
}

type Value = 'germination' | 'usable' | 'variation' | 'size';

/** By crop (null: not recorded); only those with enough batches. */
export type CropSpreads = Map<string | null, CropSpread>;

export function cropSpreads(parts: readonly Part[]): CropSpreads {
  const byCrop = new Map<string | null, Part[]>();
  for (const { columns, rows } of parts) {
    for (const crop of rowsByCrop(columns, rows)) {
      const name = columns.cropName(crop.index);
      byCrop.set(name, [...(byCrop.get(name) ?? []), { columns, rows: crop.rows }]);
    }
  }
  const spreads: CropSpreads = new Map();
  for (const [crop, parts] of byCrop) {
    const batches = parts.reduce((sum, { rows }) => sum + rows.length, 0);
    if (batches < BATCHES_FOR_RANGE_MIN) continue;
    spreads.set(crop, {
      batches,
      germination: spreadOf(parts, 'germination'),
      usable: spreadOf(parts, 'usable'),
      variation: spreadOf(parts, 'variation'),
      size: spreadOf(parts, 'size'),
    });
  }
  return spreads;
}

export interface Spread {
  range: Range;
  iqr: number;
}

/** Whether a value is outside the typical range, and far from the median. */
export function isUnusual(value: number, spread: Spread): boolean {
  const { low, high } = spread.range;
  return (value < low || value > high) && Math.abs(scoreBelow(value, spread)) >= OUTLIER_IQRS;
}

/** NaN for a batch without the value: every comparison with it is false. */
function scoreBelow(value: number, spread: Spread): number {
  return (spread.range.median - value) / Math.max(spread.iqr, IQR_MIN);
}

function spreadOf(parts: readonly Part[], value: Value): Spread | null {
  const values = concat(parts.map(({ columns, rows }) => presentValues(columns[value], rows))).sort();
  if (values.length < BATCHES_FOR_RANGE_MIN) return null;
  const at = (p: number): number => percentile(values, p)!;
  return { range: { low: at(0.05), median: at(0.5), high: at(0.95) }, iqr: at(0.75) - at(0.25) };
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
