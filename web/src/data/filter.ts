// Which rows match the filter.

import { normalize, type Columns } from './columns';
import { dayNumber } from './day';
import type { Period } from './period';

export interface Filter {
  /** Empty: all. '' stands for "crop not recorded". */
  crops: string[];
  warnings: 'all' | 'with' | 'without';
  /** Empty: all. '' stands for "unknown operator". */
  operators: string[];
  /** Words that must all occur in a batch's name, id, crop, comment or operator; case-insensitive. */
  text: string;
}

export const NO_FILTER: Filter = Object.freeze({
  crops: Object.freeze([]) as unknown as string[],
  warnings: 'all',
  operators: Object.freeze([]) as unknown as string[],
  text: '',
});

/** How many of the four filters are set. */
export function activeFilters(filter: Filter): number {
  return (
    Number(filter.crops.length > 0) +
    Number(filter.operators.length > 0) +
    Number(filter.warnings !== 'all') +
    Number(filter.text.trim() !== '')
  );
}

/** The rows that match, oldest first. */
export function select(columns: Columns, filter: Filter, period?: Period): Int32Array {
  const buffer = new Int32Array(columns.length);
  const count = collect(columns, filter, period, buffer);
  // Copied, so that a small selection does not keep a large buffer alive.
  const rows = buffer.slice(0, count);
  if (columns.oldestFirst) return rows;
  const { ms } = columns;
  return rows.sort((a, b) => ms[a]! - ms[b]! || a - b);
}

function collect(columns: Columns, filter: Filter, period: Period | undefined, into: Int32Array): number {
  const { length, day, warning, crop, operator, searchText } = columns;
  const first = period === undefined ? -Infinity : dayNumber(period.from);
  const last = period === undefined ? Infinity : dayNumber(period.to);
  const crops = selectedFlags(filter.crops, columns.crops);
  const operators = selectedFlags(filter.operators, columns.operators);
  const wanted = filter.warnings === 'all' ? -1 : filter.warnings === 'with' ? 1 : 0;
  const words = normalize(filter.text)
    .split(/\s+/u)
    .filter((word) => word !== '');
  let count = 0;
  for (let row = 0; row < length; row++) {
    if (day[row]! < first || day[row]! > last) continue;
    if (wanted !== -1 && warning[row] !== wanted) continue;
    if (crops !== null && crops[crop[row]! + 1] === 0) continue;
    if (operators !== null && operators[operator[row]! + 1] === 0) continue;
    if (!includesAll(searchText[row]!, words)) continue;
    into[count++] = row;
  }
  return count;
}

/** One flag per index, shifted by one to make room for -1 ("none"); null when all are selected. */
function selectedFlags(selected: readonly string[], names: readonly string[]): Uint8Array | null {
  if (selected.length === 0) return null;
  const wanted = new Set(selected);
  return Uint8Array.from(['', ...names], (name) => (wanted.has(name) ? 1 : 0));
}

function includesAll(text: string, words: readonly string[]): boolean {
  for (const word of words) if (!text.includes(word)) return false;
  return true;
}
