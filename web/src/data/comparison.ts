// Two series of a rate to compare: two crops, two people, or a period and the same a year before.

import type { Columns } from './columns';
import type { Period } from './period';
import { meanOf, rowsBy, series, type Group, type Measure, type SeriesPoint, type Step } from './statistics';

/** `a` and `b` are crops or people; '' stands for "not recorded". */
export type Comparison = { by: 'crop' | 'operator'; a: string; b: string } | { by: 'year' };

export interface Side {
  rows: Int32Array;
  mean: number | null;
  step: Step;
  points: SeriesPoint[];
}

/** The mean of the rows per step, and of all of them. */
export function sideOf(columns: Columns, rows: Int32Array, period: Period, measure: Measure): Side {
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
  const [ofA, ofB] = [rowsBy('crop', columns, a), rowsBy('crop', columns, b)];
  const [mainA, mainB] = [ofA[0], ofB[0]];
  if (mainA === undefined || mainB === undefined || mainA.name === mainB.name) return null;
  const countsB = new Map(ofB.map(({ name, rows }) => [name, rows.length]));
  const shared = ofA.filter(({ name }) => countsB.has(name));
  const share = ({ name, rows }: Group): number => Math.min(rows.length / a.length, countsB.get(name)! / b.length);
  if (shared.reduce((sum, crop) => sum + share(crop), 0) >= COMMON_MIN) return null;
  return { a: mainA.name, b: mainB.name, shared: shared.map(({ name }) => name) };
}
