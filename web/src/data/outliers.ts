// The typical range of a crop, and the batches that are outliers. Uses percentiles, never standard deviations: one
// ruined tray must not widen the range.
//
// The score of a value is its distance to its crop's median in interquartile ranges (IQR). For evenly spread data a
// score of 2 is Tukey's fence (quartile + 1.5 IQR); 0.35 % of a normal distribution lie beyond.

import type { Columns } from './columns';
import { ascendingValues, percentile } from './percentile';
import { rowsByCrop } from './statistics';

/** 5th, 50th and 95th percentile. */
export interface Range {
  low: number;
  median: number;
  high: number;
}

export interface TypicalRanges {
  crop: string | null;
  batches: number;
  /** Null when fewer than `BATCHES_FOR_RANGE_MIN` batches have the value. */
  germination: Range | null;
  usable: Range | null;
  variation: Range | null;
  size: Range | null;
}

// Below twenty, the 5th percentile is the smallest value.
export const BATCHES_FOR_RANGE_MIN = 20;

/** By crop index (-1: crop not recorded); only crops with at least `BATCHES_FOR_RANGE_MIN` batches. */
export function typicalRanges(columns: Columns, rows: Int32Array): Map<number, TypicalRanges> {
  const ranges = new Map<number, TypicalRanges>();
  for (const { index, rows: cropRows } of rowsByCrop(columns, rows)) {
    if (cropRows.length < BATCHES_FOR_RANGE_MIN) continue;
    const range = (column: Float64Array): Range | null => spreadOf(column, cropRows)?.range ?? null;
    ranges.set(index, {
      crop: columns.cropName(index),
      batches: cropRows.length,
      germination: range(columns.germination),
      usable: range(columns.usable),
      variation: range(columns.variation),
      size: range(columns.size),
    });
  }
  return ranges;
}

export type Reason =
  /** `typical` may be null only for a value of 0, which needs no comparison. */
  | { kind: 'low-germination'; value: number; typical: Range | null }
  | { kind: 'high-variation'; value: number; typical: Range }
  | { kind: 'warning' };

export interface Outlier {
  row: number;
  reasons: Reason[];
  /** The sum of the scores; a warning adds `WARNING_WEIGHT`, zero germination `ZERO_WEIGHT`. */
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

/** The outliers, strongest first, then newest; `total` counts those beyond `max` too. */
export function findOutliers(columns: Columns, rows: Int32Array, max: number): { found: Outlier[]; total: number } {
  const all: Outlier[] = [];
  for (const { rows: cropRows } of rowsByCrop(columns, rows)) {
    const germination = spreadOf(columns.germination, cropRows);
    const variation = spreadOf(columns.variation, cropRows);
    for (const row of cropRows) {
      const outlier = toOutlier(columns, row, germination, variation);
      if (outlier !== null) all.push(outlier);
    }
  }
  all.sort((a, b) => b.weight - a.weight || columns.ms[b.row]! - columns.ms[a.row]! || b.row - a.row);
  return { found: all.slice(0, Math.max(0, max)), total: all.length };
}

function toOutlier(
  columns: Columns,
  row: number,
  germination: Spread | null,
  variation: Spread | null,
): Outlier | null {
  const reasons: Reason[] = [];
  let weight = 0;
  const low = columns.germination[row]!;
  const below = germination === null ? 0 : scoreBelow(low, germination);
  if (low === 0 || below >= OUTLIER_IQRS) {
    reasons.push({ kind: 'low-germination', value: low, typical: germination?.range ?? null });
    weight += low === 0 ? ZERO_WEIGHT + below : below;
  }
  const high = columns.variation[row]!;
  if (variation !== null && -scoreBelow(high, variation) >= OUTLIER_IQRS) {
    reasons.push({ kind: 'high-variation', value: high, typical: variation.range });
    weight -= scoreBelow(high, variation);
  }
  if (columns.warning[row] === 1) {
    reasons.push({ kind: 'warning' });
    weight += WARNING_WEIGHT;
  }
  return reasons.length === 0 ? null : { row, reasons, weight };
}

interface Spread {
  range: Range;
  iqr: number;
}

/** NaN for a batch without the value: every comparison with it is false. */
function scoreBelow(value: number, spread: Spread): number {
  return (spread.range.median - value) / Math.max(spread.iqr, IQR_MIN);
}

function spreadOf(column: Float64Array, rows: Int32Array): Spread | null {
  const values = ascendingValues(column, rows);
  if (values.length < BATCHES_FOR_RANGE_MIN) return null;
  const at = (p: number): number => percentile(values, p)!;
  return { range: { low: at(0.05), median: at(0.5), high: at(0.95) }, iqr: at(0.75) - at(0.25) };
}
