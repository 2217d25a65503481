// What the start page shows: the batches since the last working day, those that need a look, and four weeks of each crop.

import type { Columns } from './columns';
import { dayNumber } from '../time/day';
import { plusDays, recentPeriod } from './period';
import { rowsBy, type Group } from './statistics';
import { findUnusual, pointsOutside, type Reason, type UnusualBatch, type UsualRanges } from './usual';

export interface Morning {
  /** The batches since the last working day, newest first. */
  recent: Int32Array;
  /** The unusual batches of the last seven days that were not marked as seen: new ones first, of those the worst first. */
  open: OpenBatch[];
  /** How many of `open` are in `recent`. */
  newlyOpen: number;
  /** How many unusual batches of the last seven days were marked as seen. */
  seen: number;
  /** How many of `recent` are of a crop with a usual range. */
  compared: number;
  crops: CropRow[];
  /** Crops of the four weeks that are not in `crops`. */
  omitted: number;
}

export interface OpenBatch extends UnusualBatch {
  isNew: boolean;
}

export interface CropRow extends Group {
  /** The unusual batches of all crops. */
  unusual: ReadonlySet<number>;
}

// Older ones leave by themselves.
const OPEN_DAYS = 7;
// As many rows as fit on a screen.
const CROPS_MAX = 10;

/** `rows` are those of four weeks, oldest first. */
export function morningOf(
  columns: Columns,
  rows: Int32Array,
  ranges: UsualRanges,
  today: string,
  isSeen: (batchId: string) => boolean,
): Morning {
  const firstNew = dayNumber(recentPeriod(today).from);
  const firstOpen = dayNumber(plusDays(today, 1 - OPEN_DAYS));
  const isNew = (row: number): boolean => columns.day[row]! >= firstNew;
  const unusual = findUnusual(columns, rows, ranges);
  const late = unusual.filter(({ row }) => columns.day[row]! >= firstOpen);
  const open = late
    .filter(({ row }) => !isSeen(columns.batch(row).batch_id))
    .map((batch) => ({ ...batch, isNew: isNew(batch.row) }))
    .sort((a, b) => Number(b.isNew) - Number(a.isNew) || severity(b.reasons) - severity(a.reasons) || b.row - a.row);
  const recent = rows.filter(isNew).reverse();
  return {
    recent,
    open,
    newlyOpen: open.filter(({ isNew }) => isNew).length,
    seen: late.length - open.length,
    compared: recent.filter((row) => ranges.has(columns.cropName(columns.crop[row]!))).length,
    ...cropRows(columns, rows, unusual, open),
  };
}

/** The most frequent crops, and all with a batch that needs a look. By name: each is at its place every morning. */
function cropRows(
  columns: Columns,
  rows: Int32Array,
  unusual: UnusualBatch[],
  open: UnusualBatch[],
): Pick<Morning, 'crops' | 'omitted'> {
  const [unusualRows, openRows] = [unusual, open].map((batches) => new Set(batches.map(({ row }) => row)));
  const measured = rows.filter((row) => !Number.isNaN(columns.germination[row]!));
  const all = rowsBy('crop', columns, measured).map((group) => ({ ...group, unusual: unusualRows! }));
  const isOpen = ({ rows }: CropRow): boolean => rows.some((row) => openRows!.has(row));
  const shown = new Set([...all.filter(isOpen), ...all].slice(0, CROPS_MAX));
  const crops = [...shown].sort((a, b) => Number(a.name === null) - Number(b.name === null) || ((a.name ?? '') < (b.name ?? '') ? -1 : 1));
  return { crops, omitted: all.length - crops.length };
}

// Lost seedlings count more than uneven ones, and those more than a warning.
const VARIATION_WEIGHT = 0.1;

/** How many points the strongest value is outside its range; without a range, how far from 100 %. */
function severity(reasons: readonly Reason[]): number {
  const points = reasons.map((reason) => {
    if (reason.kind === 'warning') return 0;
    const { value, range, kind } = reason;
    const outside = range === null ? 100 - value : Math.abs(pointsOutside(value, range));
    return kind === 'high-variation' ? outside * VARIATION_WEIGHT : outside;
  });
  return Math.max(...points);
}
