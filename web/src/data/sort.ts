// Sorts rows by one field: stable, missing values always last, texts in the order of the user's language.
//
// Comparing texts by locale is slow. So the rows are ranked by a field once, the ranks are cached with their columns, and
// every sort is a counting sort over integers.

import { findField, type Batch } from './batch';
import type { Columns } from './columns';

export type SortKey = { field: keyof Batch; descending: boolean };

export function sorted(columns: Columns, rows: Int32Array, key: SortKey): Int32Array {
  const { ranks, count } = rankingOf(columns, key.field);
  // Rows without a value come after all ranks.
  const place = (row: number): number => {
    const rank = ranks[row]!;
    return rank === -1 ? count : key.descending ? count - 1 - rank : rank;
  };
  const starts = new Int32Array(count + 2);
  for (let at = 0; at < rows.length; at++) starts[place(rows[at]!) + 1]!++;
  for (let at = 1; at < starts.length; at++) starts[at]! += starts[at - 1]!;
  const result = new Int32Array(rows.length);
  for (let at = 0; at < rows.length; at++) result[starts[place(rows[at]!)]!++] = rows[at]!;
  return result;
}

/** A rank per row, from 0 to `count` - 1; -1 where there is no value. */
interface Ranking {
  ranks: Int32Array;
  count: number;
}

const cache = new WeakMap<Columns, Map<keyof Batch, Ranking & { version: number }>>();

function rankingOf(columns: Columns, field: keyof Batch): Ranking {
  const rankings = cache.get(columns) ?? new Map<keyof Batch, Ranking & { version: number }>();
  cache.set(columns, rankings);
  const known = rankings.get(field);
  if (known?.version === columns.version) return known;
  const ranking = { ...rank(columns, field), version: columns.version };
  rankings.set(field, ranking);
  return ranking;
}

function rank(columns: Columns, field: keyof Batch): Ranking {
  if (field === 'crop_type') return rankByName(columns.crop, columns.crops, columns.length);
  if (field === 'scanned_by_email') return rankByName(columns.person, columns.people, columns.length);
  const kind = findField(field)?.kind;
  if (kind !== 'text' && kind !== 'link') return rankNumbers(numbersOf(columns, field));
  const texts = new Array<string | null>(columns.length);
  for (let row = 0; row < texts.length; row++) texts[row] = columns.batch(row)[field] as string | null;
  return rankTexts(texts);
}

// "Tray 9" comes before "Tray 10".
const collator = new Intl.Collator(undefined, { numeric: true });

function rankTexts(texts: readonly (string | null)[]): Ranking {
  const distinct = [...new Set(texts)].filter((text) => text !== null).sort(collator.compare);
  const rankOf = new Map<string | null, number>(distinct.map((text, rank) => [text, rank]));
  return { ranks: Int32Array.from(texts, (text) => rankOf.get(text) ?? -1), count: distinct.length };
}

/** Ranks the names only: they are few and shared by many rows. */
function rankByName(index: Int32Array, names: readonly string[], length: number): Ranking {
  const { ranks: nameRanks, count } = rankTexts(names);
  const ranks = new Int32Array(length);
  for (let row = 0; row < length; row++) ranks[row] = nameRanks[index[row]!] ?? -1;
  return { ranks, count };
}

/** Uses the typed array's sort, which needs no callback, and a binary search per value. */
function rankNumbers(values: Float64Array): Ranking {
  const present = new Float64Array(values.length);
  let length = 0;
  for (const value of values) if (value === value) present[length++] = value;
  const distinct = present.subarray(0, length).sort();
  let count = 0;
  for (let at = 0; at < length; at++) {
    if (count === 0 || distinct[at] !== distinct[count - 1]) distinct[count++] = distinct[at]!;
  }
  const ranks = new Int32Array(values.length);
  for (let at = 0; at < values.length; at++) ranks[at] = rankIn(distinct, count, values[at]!);
  return { ranks, count };
}

function rankIn(distinct: Float64Array, count: number, value: number): number {
  if (value !== value) return -1;
  let low = 0;
  let high = count - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (distinct[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A field of every row as numbers, NaN for null. */
function numbersOf(columns: Columns, field: keyof Batch): Float64Array {
  if (field === 'batch_creation_date') return columns.ms.subarray(0, columns.length);
  return Float64Array.from({ length: columns.length }, (_, row) => Number(columns.batch(row)[field] ?? NaN));
}
