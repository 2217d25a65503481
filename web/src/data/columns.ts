// Batches as columns, so that filtering fifty thousand is a loop over typed arrays. Owns the rows and
// what is derived from each once (numbers, days, the text to search). Refuses to filter, sort or sum.

import type { Batch, Decimal } from './batch';
import { DAY_MS, instantMs } from './day';

// One page of the service: most windows need no growth at all, and a dozen doublings reach the limit.
const ROWS_AT_FIRST = 1024;

/**
 * Rows in the order they came. The arrays are longer than `length` and are replaced when they grow:
 * read them through the object each time, and only at rows below `length`.
 */
export class Columns {
  /** Percent, millimetres; NaN where the batch has no value. */
  germination = new Float64Array(ROWS_AT_FIRST);
  usable = new Float64Array(ROWS_AT_FIRST);
  variation = new Float64Array(ROWS_AT_FIRST);
  size = new Float64Array(ROWS_AT_FIRST);
  /** The moment of creation in ms since 1970, with microseconds as a fraction, and its UTC day. */
  ms = new Float64Array(ROWS_AT_FIRST);
  day = new Int32Array(ROWS_AT_FIRST);
  images = new Float64Array(ROWS_AT_FIRST);
  cells = new Float64Array(ROWS_AT_FIRST);
  warning = new Uint8Array(ROWS_AT_FIRST);
  /** Indices into `crops` and `scanners`, in the order first met; -1 where the batch names none. */
  crop = new Int32Array(ROWS_AT_FIRST);
  crops: string[] = [];
  scanner = new Int32Array(ROWS_AT_FIRST);
  scanners: string[] = [];
  /** Lower-cased text of each row for the search, made once. */
  readonly haystack: string[] = [];

  #batches: Batch[] = [];
  #rowById = new Map<string, number>();
  #cropIndex = new Map<string, number>();
  #scannerIndex = new Map<string, number>();
  #version = 0;
  #oldestFirst = true;

  get length(): number {
    return this.#batches.length;
  }

  /** Changes with every `append` and `clear`: what was derived from another version is stale. */
  get version(): number {
    return this.#version;
  }

  /** Whether the rows lie oldest first, as the service sends them. */
  get oldestFirst(): boolean {
    return this.#oldestFirst;
  }

  /** Adds rows. A batch whose id is here already takes its row over: it is a correction, or a page that came twice. */
  append(batches: Batch[]): void {
    this.#reserve(this.length + batches.length);
    for (const batch of batches) this.#put(batch);
    this.#version++;
  }

  batch(row: number): Batch {
    const batch = this.#batches[row];
    if (batch === undefined) throw new RangeError(`There is no row ${row}; there are ${this.length}.`);
    return batch;
  }

  /** The row of a batch, or -1 when it is not here. */
  rowOf(batchId: string): number {
    return this.#rowById.get(batchId) ?? -1;
  }

  /** The name behind a crop index: null for -1. */
  cropName(index: number): string | null {
    return this.crops[index] ?? null;
  }

  /** Forgets all rows. The arrays keep their size: the next window is likely to be as large. */
  clear(): void {
    this.#batches = [];
    this.haystack.length = 0;
    this.crops = [];
    this.scanners = [];
    this.#rowById.clear();
    this.#cropIndex.clear();
    this.#scannerIndex.clear();
    this.#oldestFirst = true;
    this.#version++;
  }

  #put(batch: Batch): void {
    const row = this.#rowById.get(batch.batch_id) ?? this.length;
    this.#batches[row] = batch;
    this.#rowById.set(batch.batch_id, row);
    this.germination[row] = numberOf(batch.avg_germination_rate);
    this.usable[row] = numberOf(batch.avg_usable_seedling_rate);
    this.variation[row] = numberOf(batch.avg_coefficient_of_variation);
    this.size[row] = numberOf(batch.avg_median_seedling_size_mm2);
    this.#putInstant(row, instantMs(batch.batch_creation_date));
    this.images[row] = batch.number_of_images;
    this.cells[row] = batch.total_cells_per_tray ?? NaN;
    this.warning[row] = batch.warnings ? 1 : 0;
    this.crop[row] = indexOf(batch.crop_type, this.crops, this.#cropIndex);
    this.scanner[row] = indexOf(batch.scanned_by_email, this.scanners, this.#scannerIndex);
    this.haystack[row] = haystackOf(batch);
  }

  #putInstant(row: number, ms: number): void {
    this.ms[row] = ms;
    this.day[row] = Math.floor(ms / DAY_MS);
    const afterOlder = row === 0 || this.ms[row - 1]! <= ms;
    const beforeNewer = row === this.length - 1 || ms <= this.ms[row + 1]!;
    if (!afterOlder || !beforeNewer) this.#oldestFirst = false;
  }

  #reserve(rows: number): void {
    const capacity = this.ms.length;
    if (rows <= capacity) return;
    // Doubling makes the copies cost as much as the rows themselves, however small the pages are.
    const wanted = Math.max(rows, capacity * 2);
    this.germination = grown(this.germination, new Float64Array(wanted));
    this.usable = grown(this.usable, new Float64Array(wanted));
    this.variation = grown(this.variation, new Float64Array(wanted));
    this.size = grown(this.size, new Float64Array(wanted));
    this.ms = grown(this.ms, new Float64Array(wanted));
    this.day = grown(this.day, new Int32Array(wanted));
    this.images = grown(this.images, new Float64Array(wanted));
    this.cells = grown(this.cells, new Float64Array(wanted));
    this.warning = grown(this.warning, new Uint8Array(wanted));
    this.crop = grown(this.crop, new Int32Array(wanted));
    this.scanner = grown(this.scanner, new Int32Array(wanted));
  }
}

/** A decimal as a number for drawing, means and sorting; NaN for null. */
export function numberOf(decimal: Decimal | null): number {
  return decimal === null ? NaN : Number(decimal);
}

/** The form in which texts are searched: one case, and composed letters, so that é is found however it was typed. */
export function folded(text: string): string {
  return text.normalize('NFC').toLowerCase();
}

// Stands between the searched texts of a row, so that no word is found across two of them.
const BETWEEN = '\u0000';

function haystackOf(batch: Batch): string {
  const { batch_name, batch_id, crop_type, comment, scanned_by_email } = batch;
  return folded([batch_name, batch_id, crop_type ?? '', comment ?? '', scanned_by_email ?? ''].join(BETWEEN));
}

// A Map, never a plain object: a crop may be called "__proto__".
function indexOf(name: string | null, names: string[], indices: Map<string, number>): number {
  // A blank name names nothing, as none does.
  if (name === null || name.trim() === '') return -1;
  const known = indices.get(name);
  if (known !== undefined) return known;
  indices.set(name, names.length);
  return names.push(name) - 1;
}

function grown<T extends Float64Array | Int32Array | Uint8Array>(from: T, to: T): T {
  to.set(from);
  return to;
}
