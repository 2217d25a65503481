// What the start page shows: the batches since the last working day, those that need a look, and four weeks of each crop.

import { HOUSE, type Columns } from './columns';
import { dayNumber } from '../time/day';
import { groupBy } from './percentile';
import { plusDays, recentPeriod } from './period';
import { byName, rowsBy, type Group } from './statistics';
import { text } from '../text';
import { findUnusual, isSevere, severity, type Reason, type UnusualBatch, type UsualRanges } from './usual';

export interface Morning {
  /** The batches since the last working day, newest first. */
  recent: Int32Array;
  /** The unusual batches of the last seven days that were not marked as seen: new ones first, of those the worst first. */
  open: OpenBatch[];
  /** How many of `open` are in `recent`. */
  newlyOpen: number;
  /** `open` in the same order, but together what has something in common. */
  groups: OpenGroup[];
  /** The unusual batches of the last seven days that were marked as seen, newest first, together as `groups`. */
  seen: OpenGroup[];
  /** How many of `recent` are of a crop with a usual range. */
  compared: number;
  crops: Group[];
  /** Crops of the four weeks that are not in `crops`. */
  omitted: number;
  /** Why batches of the four weeks are unusual, by row. */
  reasons: ReadonlyMap<number, Reason[]>;
  /** The latest batch of the four weeks; none if undefined. */
  latest: number | undefined;
}

export interface OpenBatch extends UnusualBatch {
  isNew: boolean;
}

/** Several batches with something in common, or one batch without. */
export interface OpenGroup {
  cause: { kind: 'place' | 'crop'; name: string } | null;
  batches: OpenBatch[];
}

// Older ones leave by themselves.
const OPEN_DAYS = 7;

// As many rows as fit on a screen.
const CROPS_MAX = 10;

/** `rows` are those of four weeks, oldest first. */
export function morningOf(columns: Columns, rows: Int32Array, ranges: UsualRanges, today: string, isSeen: (batchId: string) => boolean): Morning {
  const firstNew = dayNumber(recentPeriod(today).from);
  const firstOpen = dayNumber(plusDays(today, 1 - OPEN_DAYS));
  const isNew = (row: number): boolean => columns.day[row]! >= firstNew;
  const unusual = findUnusual(columns, rows, ranges);
  const late = unusual.filter(({ row }) => columns.day[row]! >= firstOpen).map((batch) => ({ ...batch, isNew: isNew(batch.row) }));
  const seen = late.filter(({ row }) => isSeen(columns.batch(row).batch_id)).reverse();
  const open = late
    .filter((batch) => !seen.includes(batch))
    .sort((a, b) => Number(b.isNew) - Number(a.isNew) || severity(b.reasons.slice(0, 1)) - severity(a.reasons.slice(0, 1)) || b.row - a.row);
  const recent = rows.filter(isNew).reverse();
  return {
    recent,
    open,
    newlyOpen: open.filter(({ isNew }) => isNew).length,
    groups: groupsOf(columns, open),
    seen: groupsOf(columns, seen),
    compared: recent.filter((row) => ranges.has(columns.cropName(columns.crop[row]!))).length,
    ...cropRows(columns, rows, open),
    reasons: new Map(unusual.map(({ row, reasons }) => [row, reasons])),
    latest: rows.at(-1),
  };
}

// Where a batch is, in its name or comment, in English or German.
const PLACE = /(?<![\p{L}\d])(?:(?:greenhouse|house|tunnel|bay|bench|gewächshaus|haus|halle|abteil|tisch)\s*|h(?=\d))\d+\p{L}?(?![\p{L}\d])/giu;

/** `House 3` for any spelling of it, also H3. */
function placesOf(columns: Columns, row: number): string[] {
  const { batch_name, comment } = columns.batch(row);
  const found = `${batch_name}\n${comment ?? ''}`.match(PLACE) ?? [];
  return [...new Set(found.map((place) => capital(place.toLowerCase().replace(/\s*(?=\d)/, ' ').replace(/^\S+/, (word) => (HOUSE.test(word) ? text.today.house : word)))))];
}

const capital = (text: string): string => text[0]!.toUpperCase() + text.slice(1);

// The most telling first.
const CAUSES = [
  { kind: 'place', namesOf: placesOf },
  { kind: 'crop', namesOf: (columns: Columns, row: number) => columns.crops.slice(columns.crop[row]!, columns.crop[row]! + 1) },
] as const;
// Two may be chance.
const GROUP_MIN = 3;

function groupsOf(columns: Columns, open: OpenBatch[]): OpenGroup[] {
  const groups: OpenGroup[] = [];
  let rest = open;
  for (const { kind, namesOf } of CAUSES) {
    for (;;) {
      const named = rest.flatMap((batch) => namesOf(columns, batch.row).map((name) => ({ name, batch })));
      const [largest] = groupBy(named, ({ name }) => name).sort(([, a], [, b]) => b.length - a.length);
      if (largest === undefined || largest[1].length < GROUP_MIN) break;
      const batches = largest[1].map(({ batch }) => batch);
      groups.push({ cause: { kind, name: largest[0] }, batches });
      rest = rest.filter((batch) => !batches.includes(batch));
    }
  }
  const place = ({ batches }: OpenGroup): number => open.indexOf(batches[0]!);
  return [...groups, ...rest.map((batch) => ({ cause: null, batches: [batch] }))].sort((a, b) => place(a) - place(b));
}

/** The most frequent crops, and all with a batch that needs a look, by name. */
function cropRows(columns: Columns, rows: Int32Array, open: OpenBatch[]): Pick<Morning, 'crops' | 'omitted'> {
  const openCrops = new Set(open.map(({ row }) => columns.cropName(columns.crop[row]!)));
  const all = rowsBy('crop', columns, rows.filter((row) => !Number.isNaN(columns.germination[row]!)));
  const crops = [...new Set([...all.filter(({ name }) => openCrops.has(name)), ...all])].slice(0, CROPS_MAX).sort(byName);
  return { crops, omitted: all.length - crops.length };
}

export const isSevereGroup = ({ batches }: OpenGroup): boolean => batches.some(({ reasons }) => isSevere(reasons));
export const isSlight = ({ batches }: OpenGroup): boolean => batches.every(({ reasons }) => !isSevere(reasons) && reasons.every(({ kind }) => kind !== 'warning'));

const PLACES_MAX = 6;

/** "House 5–8": where batches are, or else of which crop. */
export function placesText(columns: Columns, batches: OpenBatch[]): string {
  const names = batches.map(({ row }) => placesOf(columns, row)[0] ?? columns.cropName(columns.crop[row]!) ?? '');
  const numbered = groupBy([...new Set(names)].sort(BY_NUMBER.compare), (name) => /^\S+(?= \d+$)/.exec(name)?.[0] ?? name);
  return numbered.map(([word, some]) => `${word}${numbersText(some.map((name) => name.slice(word.length)))}`).join(', ');
}

const BY_NUMBER = new Intl.Collator('en', { numeric: true });

function numbersText(numbers: string[]): string {
  const [first, last] = [numbers[0]!, numbers.at(-1)!];
  if (numbers.length > 2 && Number(last) - Number(first) === numbers.length - 1) return `${first}–${last.trim()}`;
  return `${numbers.slice(0, PLACES_MAX).join(',')}${numbers.length > PLACES_MAX ? ' …' : ''}`;
}
