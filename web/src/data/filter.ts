// Which rows are shown, and in which order. `select` is here; the ordering is in order.ts and is
// handed on, so that readers of rows have one door. Keeps nothing between two calls.

import { folded, type Columns } from './columns';
import { dayNumber } from './day';
import type { Window } from './window';

export { sorted, type SortKey } from './order';

export interface Filter {
  /** Empty: all. '' means "no crop given". */
  crops: string[];
  warnings: 'all' | 'with' | 'without';
  /** Empty: all. '' means "nobody named". */
  scanners: string[];
  /** Words that must all be found, in any case, in a batch's name, id, crop, comment or scanner. */
  text: string;
}

export const NO_FILTER: Filter = Object.freeze({
  crops: Object.freeze([]) as unknown as string[],
  warnings: 'all',
  scanners: Object.freeze([]) as unknown as string[],
  text: '',
});

/** Whether the filter leaves every row in. */
export function isNoFilter(filter: Filter): boolean {
  return (
    filter.crops.length === 0 &&
    filter.scanners.length === 0 &&
    filter.warnings === 'all' &&
    wordsOf(filter.text).length === 0
  );
}

/** The rows that pass, oldest first. */
export function select(columns: Columns, filter: Filter, window?: Window): Int32Array {
  const passing = new Int32Array(columns.length);
  const count = collect(columns, filter, window, passing);
  // A copy of just the rows, so that a narrow selection does not hold a wide buffer.
  const rows = passing.slice(0, count);
  if (columns.oldestFirst) return rows;
  const { ms } = columns;
  return rows.sort((a, b) => ms[a]! - ms[b]! || a - b);
}

function collect(columns: Columns, filter: Filter, window: Window | undefined, into: Int32Array): number {
  const { length, day, warning, crop, scanner, haystack } = columns;
  const first = window === undefined ? -Infinity : dayNumber(window.from);
  const last = window === undefined ? Infinity : dayNumber(window.to);
  const crops = admitted(filter.crops, columns.crops);
  const scanners = admitted(filter.scanners, columns.scanners);
  const wanted = filter.warnings === 'all' ? -1 : filter.warnings === 'with' ? 1 : 0;
  const words = wordsOf(filter.text);
  let count = 0;
  for (let row = 0; row < length; row++) {
    if (day[row]! < first || day[row]! > last) continue;
    if (wanted !== -1 && warning[row] !== wanted) continue;
    if (crops !== null && crops[crop[row]! + 1] === 0) continue;
    if (scanners !== null && scanners[scanner[row]! + 1] === 0) continue;
    if (!holdsAll(haystack[row]!, words)) continue;
    into[count++] = row;
  }
  return count;
}

/** One flag for each index, shifted by one so that "none" (-1) has its place; null when all are admitted. */
function admitted(chosen: readonly string[], names: readonly string[]): Uint8Array | null {
  if (chosen.length === 0) return null;
  const wanted = new Set(chosen);
  const flags = new Uint8Array(names.length + 1);
  flags[0] = wanted.has('') ? 1 : 0;
  names.forEach((name, index) => {
    flags[index + 1] = wanted.has(name) ? 1 : 0;
  });
  return flags;
}

function wordsOf(text: string): string[] {
  return folded(text)
    .split(/\s+/u)
    .filter((word) => word !== '');
}

function holdsAll(haystack: string, words: readonly string[]): boolean {
  for (const word of words) if (!haystack.includes(word)) return false;
  return true;
}
