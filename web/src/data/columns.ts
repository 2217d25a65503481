// Batches as columns, so that filtering fifty thousand is a loop over typed arrays. Holds the rows and the values
// derived from each (numbers, days, search text).

import type { Batch } from './batch';
import { instantMs } from '../time/day';
import { dayNumberAt } from '../time/zone';

// One page of the service.
const INITIAL_ROWS = 1024;

const FLOAT_COLUMNS = ['germination', 'usable', 'variation', 'size', 'ms'] as const;
const INT_COLUMNS = ['day', 'crop', 'person'] as const;

/**
 * Rows in the order of their arrival. The arrays are longer than `length` and are replaced when they grow: read them
 * through the object each time, and only at rows below `length`.
 */
export class Columns {
  /** Percent, mm²; NaN where the batch has no value. */
  germination = new Float64Array(INITIAL_ROWS);
  usable = new Float64Array(INITIAL_ROWS);
  variation = new Float64Array(INITIAL_ROWS);
  size = new Float64Array(INITIAL_ROWS);
  /** Time of creation in ms since 1970, with microseconds as a fraction, and its day. */
  ms = new Float64Array(INITIAL_ROWS);
  day = new Int32Array(INITIAL_ROWS);
  warning = new Uint8Array(INITIAL_ROWS);
  /** Indices into `crops` and `people`; -1 where the batch has none. */
  crop = new Int32Array(INITIAL_ROWS);
  crops: string[] = [];
  person = new Int32Array(INITIAL_ROWS);
  people: string[] = [];
  /** What the search compares of each row. */
  readonly searchText: string[] = [];
  readonly searchId: string[] = [];

  #batches: Batch[] = [];
  #rowById = new Map<string, number>();
  #cropIndex = new Map<string, number>();
  #personIndex = new Map<string, number>();
  /** Changes with every `append`; values derived from another version are stale. */
  version = 0;
  /** Whether the rows are sorted oldest first, as the service sends them. */
  oldestFirst = true;

  get length(): number {
    return this.#batches.length;
  }

  /** Adds rows. A batch with a known id replaces its row: it is a correction, or a page loaded twice. */
  append(batches: Batch[]): void {
    this.#reserve(this.length + batches.length);
    for (const batch of batches) this.#put(batch);
    this.version++;
  }

  batch(row: number): Batch {
    const batch = this.#batches[row];
    if (batch === undefined) throw new RangeError(`There is no row ${row}; there are ${this.length}.`);
    return batch;
  }

  /** The row of a batch; -1 when it is not loaded. */
  rowOf(batchId: string): number {
    return this.#rowById.get(batchId) ?? -1;
  }

  /** The name of a crop index; null for -1. */
  cropName(index: number): string | null {
    return this.crops[index] ?? null;
  }

  #put(batch: Batch): void {
    const row = this.#rowById.get(batch.batch_id) ?? this.length;
    this.#batches[row] = batch;
    this.#rowById.set(batch.batch_id, row);
    this.germination[row] = Number(batch.avg_germination_rate ?? NaN);
    this.usable[row] = Number(batch.avg_usable_seedling_rate ?? NaN);
    this.variation[row] = Number(batch.avg_coefficient_of_variation ?? NaN);
    this.size[row] = Number(batch.avg_median_seedling_size_mm2 ?? NaN);
    this.#putInstant(row, instantMs(batch.batch_creation_date));
    this.warning[row] = batch.warnings ? 1 : 0;
    this.crop[row] = indexOf(batch.crop_type, this.crops, this.#cropIndex);
    this.person[row] = indexOf(batch.scanned_by_email, this.people, this.#personIndex);
    this.searchText[row] = searchable([batch.batch_name, batch.crop_type, batch.comment, batch.scanned_by_email, batch.warnings ? 'warning Warnung' : null]);
    this.searchId[row] = normalize(batch.batch_id);
  }

  #putInstant(row: number, ms: number): void {
    this.ms[row] = ms;
    this.day[row] = dayNumberAt(ms);
    const afterOlder = row === 0 || this.ms[row - 1]! <= ms;
    const beforeNewer = row === this.length - 1 || ms <= this.ms[row + 1]!;
    if (!afterOlder || !beforeNewer) this.oldestFirst = false;
  }

  #reserve(rows: number): void {
    const capacity = this.ms.length;
    if (rows <= capacity) return;
    const wanted = Math.max(rows, capacity * 2);
    for (const name of FLOAT_COLUMNS) this[name] = copyInto(new Float64Array(wanted), this[name]);
    for (const name of INT_COLUMNS) this[name] = copyInto(new Int32Array(wanted), this[name]);
    this.warning = copyInto(new Uint8Array(wanted), this.warning);
  }
}

/** Lower case without accents, so that "jalapeno" finds Jalapeño. */
export const normalize = (text: string): string => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();

/** A word or a number. */
export const WORD = /\p{N}+|[^\p{N}\p{P}\p{S}\p{Z}\p{C}]+/gu;

/** The words and numbers of a text: 'Batavia W46' is batavia, w, 46. Möhre, Mohre and Moehre are the same. */
export const searchWords = (text: string): string[] => normalize(text).replace(/(?<=[aou])e/g, '').replaceAll('ß', 'ss').match(WORD) ?? [];

// In German and in English.
const PLURAL_ENDINGS = ['s', 'n', 'e', 'en', 'er', 'es', 'se'];
const SINGULAR_CHARS_MIN = 3;

/** A word, and what may be its singular at the end of a word: "Möhren" finds Möhre, and "pansies" pansy. */
export function wordForms(word: string): string[] {
  const plural = word.replace(/ies$/, 'ys');
  const endings = PLURAL_ENDINGS.filter((ending) => plural.endsWith(ending) && plural.length - ending.length >= SINGULAR_CHARS_MIN);
  return [word, ...endings.map((ending) => `${plural.slice(0, -ending.length)} `)];
}

// Between two fields, so that no phrase matches across them.
const SEPARATOR = ' \u0000 ';

/** How people write "house" and "table" before their numbers. */
export const HOUSE = /^(?:house|haus|h)$/;
const TABLE = /^(?:table|tisch|bench|t)$/;
/** One word for each of them; undefined for other words. */
export const placeOf = (word: string): string | undefined => (HOUSE.test(word) ? 'house' : TABLE.test(word) ? 'table' : undefined);

/** The words of texts that people search, each between spaces. H3 and Haus 3 are a house 3 too. */
export function searchable(texts: readonly (string | null)[]): string {
  const wordsOf = (text: string | null): string[] => searchWords(text ?? '').map((word) => `${word} ${placeOf(word) ?? ''}`.trim());
  return ` ${texts.map((text) => wordsOf(text).join(' ')).join(SEPARATOR)} `;
}

// A Map, not a plain object: a crop may be called "__proto__". A blank name counts as none.
function indexOf(name: string | null, names: string[], indices: Map<string, number>): number {
  if (name === null || name.trim() === '') return -1;
  const known = indices.get(name);
  if (known !== undefined) return known;
  indices.set(name, names.length);
  return names.push(name) - 1;
}

function copyInto<T extends Float64Array | Int32Array | Uint8Array>(to: T, from: T): T {
  to.set(from);
  return to;
}
