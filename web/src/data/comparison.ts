// Two series of a rate to compare: two crops, two people, or a period and the same a year before.

import type { Columns } from './columns';
import type { Period } from './period';
import { meanOf, series, type Measure, type SeriesPoint } from './statistics';
import type { Step } from '../time/day';

/** `a` and `b` are crops or people; '' stands for "not recorded". */
export type Comparison = { by: 'crop' | 'person'; a: string; b: string } | { by: 'year' };

export interface Side {
  rows: Int32Array;
  mean: number | null;
  step: Step;
  points: SeriesPoint[];
}

/** Whether there are enough earlier batches: a rate of a few is chance. */
export function isComparable(batches: number, earlier: number): boolean {
  return earlier > 0 && earlier * 10 >= batches;
}

/** The mean of the rows per step, and of all of them. */
export function sideOf(columns: Columns, rows: Int32Array, period: Period, measure: Measure): Side {
  const { all, step } = series(columns, rows, period, measure, 0);
  return { rows, mean: meanOf(all), points: all, step };
}
