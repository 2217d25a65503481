// Sorts rows by one field: stable, missing values always last, texts in the order of the user's language.
//
// Comparing texts by locale is slow. So the rows get a number for a field once, which is cached with their columns.

import { findField, type Batch } from './batch';
import type { Columns } from './columns';

export type SortKey = { field: keyof Batch; descending: boolean };

export function sorted(columns: Columns, rows: Int32Array, { field, descending }: SortKey): Int32Array {
  const keys = keysOf(columns, field);
  const sign = descending ? -1 : 1;
  return rows.toSorted((a, b) => {
    const [x, y] = [keys[a]!, keys[b]!];
    if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y));
    return (x - y) * sign;
  });
}

const cache = new WeakMap<Columns, Map<keyof Batch, { version: number; keys: Float64Array }>>();

/** A number per row; NaN where there is no value. */
function keysOf(columns: Columns, field: keyof Batch): Float64Array {
  const known = cache.get(columns) ?? new Map<keyof Batch, { version: number; keys: Float64Array }>();
  cache.set(columns, known);
  const cached = known.get(field);
  if (cached?.version === columns.version) return cached.keys;
  const keys = computeKeys(columns, field);
  known.set(field, { version: columns.version, keys });
  return keys;
}

// "Tray 9" comes before "Tray 10".
const collator = new Intl.Collator(undefined, { numeric: true });

function computeKeys(columns: Columns, field: keyof Batch): Float64Array {
  if (field === 'batch_creation_date') return columns.ms.slice(0, columns.length);
  const values = Array.from({ length: columns.length }, (_, row) => columns.batch(row)[field]);
  const kind = findField(field)?.kind;
  if (kind !== 'text' && kind !== 'link') return Float64Array.from(values, (value) => Number(value ?? NaN));
  const texts = [...new Set(values as (string | null)[])].filter((text) => text !== null).sort(collator.compare);
  const ranks = new Map<unknown, number>(texts.map((text, rank) => [text, rank]));
  return Float64Array.from(values, (value) => ranks.get(value) ?? NaN);
}
