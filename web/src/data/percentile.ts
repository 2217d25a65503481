// Percentiles, means and grouping of numbers. Knows nothing about batches.

/**
 * The p-th quantile (0 to 1) of values sorted ascending, with linear interpolation at p·(n-1), as numpy.percentile and
 * Excel's PERCENTILE.INC do. Null when there are no values.
 */
export function percentile(ascending: Float64Array, p: number): number | null {
  if (ascending.length === 0) return null;
  const position = p * (ascending.length - 1);
  const below = Math.floor(position);
  const low = ascending[below]!;
  const high = ascending[Math.min(below + 1, ascending.length - 1)]!;
  return low + (high - low) * (position - below);
}

/** The mean; null when there are no values. */
export const mean = (values: Float64Array): number | null => (values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length);

/** The values of the rows, in their order, without NaN. */
export function presentValues(column: Float64Array, rows: Int32Array): Float64Array {
  const values = new Float64Array(rows.length);
  let count = 0;
  for (const row of rows) {
    const value = column[row]!;
    if (value === value) values[count++] = value;
  }
  return values.subarray(0, count);
}

/** Splits rows into groups and keeps their order. Drops rows whose group is not in 0..groups-1. */
export function splitRows(rows: Int32Array, groups: number, groupOf: (row: number) => number): Int32Array[] {
  const ends = new Int32Array(groups + 1);
  const group = new Int32Array(rows.length);
  for (let at = 0; at < rows.length; at++) {
    const index = groupOf(rows[at]!);
    group[at] = index >= 0 && index < groups ? index : groups;
    ends[group[at]!]!++;
  }
  let end = 0;
  const starts = ends.map((count) => (end += count) - count);
  const placed = new Int32Array(rows.length);
  const next = starts.slice();
  for (let at = 0; at < rows.length; at++) placed[next[group[at]!]!++] = rows[at]!;
  return Array.from({ length: groups }, (_, index) => placed.subarray(starts[index]!, next[index]!));
}

/** The items by key, in their order. */
export function groupBy<T, K>(items: Iterable<T>, keyOf: (item: T) => K): [K, T[]][] {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    if (!groups.get(key)?.push(item)) groups.set(key, [item]);
  }
  return [...groups];
}
