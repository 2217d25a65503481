// The order of rows by one field: stable, with batches that lack the value last either way. Numbers sort as
// numbers, texts as the reader's language sorts them (natural.ts). Selects nothing.
//
// Why ranks: fifty thousand rows take some 800,000 comparisons, and comparing texts as people do is dear. So
// every row is ranked by a field once, the ranks are kept for as long as their columns live, and every sort
// after that is a counting sort over integers, whatever rows are selected.

import { fieldNamed, type Batch } from './batch';
import { numberOf, type Columns } from './columns';
import { rankTexts } from './natural';

export type SortKey = { field: keyof Batch; descending: boolean };

/** The rows in the order of the key. Equal ones keep the order in which they were given. */
export function sorted(columns: Columns, rows: Int32Array, key: SortKey): Int32Array {
  const { ranks, count } = rankingOf(columns, key.field);
  // The place after all ranks is for rows without a value.
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

/** A rank for each row, from 0 to `count` - 1; -1 where there is no value. */
interface Ranking {
  ranks: Int32Array;
  count: number;
  /** Of texts: what makes the next ranking cheap when a page has come. */
  order?: readonly number[];
}

// At most one entry for each field of each living Columns: it cannot grow with use.
const kept = new WeakMap<Columns, Map<keyof Batch, Ranking & { version: number }>>();

function rankingOf(columns: Columns, field: keyof Batch): Ranking {
  const rankings = kept.get(columns) ?? new Map<keyof Batch, Ranking & { version: number }>();
  kept.set(columns, rankings);
  const known = rankings.get(field);
  if (known?.version === columns.version) return known;
  const made = { ...rank(columns, field, known?.order), version: columns.version };
  rankings.set(field, made);
  return made;
}

function rank(columns: Columns, field: keyof Batch, before?: readonly number[]): Ranking {
  if (field === 'crop_type') return rankByName(columns.crop, columns.crops, columns.length);
  if (field === 'scanned_by_email') return rankByName(columns.scanner, columns.scanners, columns.length);
  const kind = fieldNamed(field)?.kind;
  if (kind !== 'text' && kind !== 'link') return rankNumbers(numbersOf(columns, field));
  const texts = new Array<string | null>(columns.length);
  for (let row = 0; row < texts.length; row++) texts[row] = columns.batch(row)[field] as string | null;
  return rankTexts(texts, before);
}

/** Names are few and shared by many rows: only they are ranked. */
function rankByName(index: Int32Array, names: readonly string[], length: number): Ranking {
  const { ranks: ofNames, count } = rankTexts(names);
  const ranks = new Int32Array(length);
  for (let row = 0; row < length; row++) ranks[row] = ofNames[index[row]!] ?? -1;
  return { ranks, count };
}

/** Ranks by the typed array's own sort, which makes no calls back, and a binary search for each value. */
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
  const { length } = columns;
  switch (field) {
    case 'batch_creation_date':
      return columns.ms.subarray(0, length);
    case 'number_of_images':
      return columns.images.subarray(0, length);
    case 'total_cells_per_tray':
      return columns.cells.subarray(0, length);
    case 'avg_germination_rate':
      return columns.germination.subarray(0, length);
    case 'avg_usable_seedling_rate':
      return columns.usable.subarray(0, length);
    case 'avg_coefficient_of_variation':
      return columns.variation.subarray(0, length);
    case 'avg_median_seedling_size_mm2':
      return columns.size.subarray(0, length);
    case 'warnings':
      return Float64Array.from(columns.warning.subarray(0, length));
    default:
      return listedDecimals(columns, field);
  }
}

/** The decimals that are only ever listed have no column of their own. */
function listedDecimals(columns: Columns, field: keyof Batch): Float64Array {
  const values = new Float64Array(columns.length);
  for (let row = 0; row < values.length; row++) values[row] = numberOf(columns.batch(row)[field] as string | null);
  return values;
}
