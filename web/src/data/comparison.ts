// Two series of a rate to compare: two crops, two people, or a period and the same a year before.

import type { Columns } from './columns';
import { select, type Filter } from './filter';
import type { Period } from './period';
import { meanOf, rowsByCrop, series, type Measure, type SeriesPoint, type Step } from './statistics';

/** `a` and `b` are crops or people; '' stands for "not recorded". */
export type Comparison = { by: 'crop' | 'operator'; a: string; b: string } | { by: 'year' };

export interface Side {
  rows: Int32Array;
  mean: number | null;
  points: SeriesPoint[];
}

/** The mean per step of the batches that match a filter, and of all of them. */
export function sideOf(columns: Columns, filter: Filter, period: Period, measure: Measure): Side & { step: Step } {
  const rows = select(columns, filter, period);
  const { all, step } = series(columns, rows, period, measure, 0);
  return { rows, mean: meanOf(all), points: all, step };
}

// Less than half in common: a difference says more about the crops than about the people.
const COMMON_MIN = 0.5;

/** The main crops of two people who scanned different ones, and the crops that both scanned. Null if they did not. */
export function differentCrops(
  columns: Columns,
  a: Int32Array,
  b: Int32Array,
): { a: string | null; b: string | null; shared: (string | null)[] } | null {
  const [ofA, ofB] = [rowsByCrop(columns, a), rowsByCrop(columns, b)];
  const [mainA, mainB] = [ofA[0]?.index, ofB[0]?.index];
  if (mainA === undefined || mainB === undefined || mainA === mainB) return null;
  const countsB = new Map(ofB.map(({ index, rows }) => [index, rows.length]));
  const shared = ofA.filter(({ index }) => countsB.has(index));
  const share = ({ index, rows }: (typeof ofA)[number]): number =>
    Math.min(rows.length / a.length, countsB.get(index)! / b.length);
  if (shared.reduce((sum, crop) => sum + share(crop), 0) >= COMMON_MIN) return null;
  return {
    a: columns.cropName(mainA),
    b: columns.cropName(mainB),
    shared: shared.map(({ index }) => columns.cropName(index)),
  };
}
