// A crop's usual range, and the batches that stand out from it. Robust figures only (percentiles, never
// standard deviations): one ruined tray must not widen what counts as usual. Judges, but words nothing.
//
// The score of a value is its distance to its crop's median in interquartile ranges. For evenly spread
// data, 2 of them is Tukey's fence (a quartile and 1.5 IQR more); a bell curve has 0.35 % of its values beyond.

import type { Columns } from './columns';
import { rowsByCrop } from './figures';
import { ascendingValues, percentile } from './percentile';

/** 5th, 50th and 95th percentile. */
export interface Range {
  low: number;
  median: number;
  high: number;
}

export interface Usual {
  crop: string | null;
  batches: number;
  /** Null when fewer than `BATCHES_FOR_USUAL` batches have the value. */
  germination: Range | null;
  usable: Range | null;
  variation: Range | null;
  size: Range | null;
}

// Below twenty, a 5th percentile is just the smallest value.
export const BATCHES_FOR_USUAL = 20;

/** By crop index (-1: no crop given); only crops with at least `BATCHES_FOR_USUAL` batches. */
export function usual(columns: Columns, rows: Int32Array): Map<number, Usual> {
  const found = new Map<number, Usual>();
  for (const { index, rows: own } of rowsByCrop(columns, rows)) {
    if (own.length < BATCHES_FOR_USUAL) continue;
    const range = (column: Float64Array): Range | null => spreadOf(column, own)?.range ?? null;
    found.set(index, {
      crop: columns.cropName(index),
      batches: own.length,
      germination: range(columns.germination),
      usable: range(columns.usable),
      variation: range(columns.variation),
      size: range(columns.size),
    });
  }
  return found;
}

export type Reason =
  /** Without what is usual only when nothing germinated: that needs no comparison. */
  | { kind: 'low-germination'; value: number; usual: Range | null }
  | { kind: 'high-variation'; value: number; usual: Range }
  | { kind: 'warning' };

export interface StandOut {
  row: number;
  reasons: Reason[];
  /** The sum of its reasons' scores; a warning counts `WARNING_WEIGHT`, nothing germinated `NOTHING_WEIGHT` more. */
  weight: number;
}

/** From this score on a value stands out: see the fence above. */
export const STAND_OUT_IQRS = 2;

// Under any value that stands out: a warning is worth a look, but many are about a blurred picture only.
export const WARNING_WEIGHT = 1;

// Over any score: 100 points at the smallest IQR are 200. A tray without a seedling is the first thing to look at.
export const NOTHING_WEIGHT = 1_000;

// Values in percent carry two digits and trays have some hundred cells: under half a point all are alike,
// and a crop whose batches are all alike must not make a mountain of one cell.
const IQR_MIN = 0.5;

/** The batches that stand out, strongest first, among equals the newest; `of` counts those left out too. */
export function standOuts(columns: Columns, rows: Int32Array, max: number): { found: StandOut[]; of: number } {
  const all: StandOut[] = [];
  for (const { rows: own } of rowsByCrop(columns, rows)) {
    const germination = spreadOf(columns.germination, own);
    const variation = spreadOf(columns.variation, own);
    for (const row of own) {
      const standOut = judged(columns, row, germination, variation);
      if (standOut !== null) all.push(standOut);
    }
  }
  all.sort((a, b) => b.weight - a.weight || columns.ms[b.row]! - columns.ms[a.row]! || b.row - a.row);
  return { found: all.slice(0, Math.max(0, max)), of: all.length };
}

function judged(columns: Columns, row: number, germination: Spread | null, variation: Spread | null): StandOut | null {
  const reasons: Reason[] = [];
  let weight = 0;
  const low = columns.germination[row]!;
  const below = germination === null ? 0 : scoreBelow(low, germination);
  if (low === 0 || below >= STAND_OUT_IQRS) {
    reasons.push({ kind: 'low-germination', value: low, usual: germination?.range ?? null });
    weight += low === 0 ? NOTHING_WEIGHT + below : below;
  }
  const high = columns.variation[row]!;
  if (variation !== null && -scoreBelow(high, variation) >= STAND_OUT_IQRS) {
    reasons.push({ kind: 'high-variation', value: high, usual: variation.range });
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

/** NaN for a batch without the value, which no comparison passes. */
function scoreBelow(value: number, spread: Spread): number {
  return (spread.range.median - value) / Math.max(spread.iqr, IQR_MIN);
}

function spreadOf(column: Float64Array, rows: Int32Array): Spread | null {
  const values = ascendingValues(column, rows);
  if (values.length < BATCHES_FOR_USUAL) return null;
  const at = (p: number): number => percentile(values, p)!;
  return { range: { low: at(0.05), median: at(0.5), high: at(0.95) }, iqr: at(0.75) - at(0.25) };
}
