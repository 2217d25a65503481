// Which rows match the filter.

import { normalize, placeOf, searchable, searchWords, wordForms, type Columns } from './columns';
import { dayNumber } from '../time/day';
import type { Period } from './period';
import { parseSearchDate, type SearchDate } from './search-date';
import { findUnusual, isBelow, type UsualRanges } from './usual';

export interface Filter {
  /** Empty: all. '' stands for "crop not recorded". */
  crops: string[];
  /** 'unusual' includes batches with warnings; 'below' are those with a rate below the usual range, also slightly; 'unseen' are unusual batches that are not marked as seen yet. */
  warnings: (typeof SHOWN)[number];
  /** Empty: all. '' stands for "person not recorded". */
  people: string[];
  /** Words that must all occur in a batch's name, crop, comment, person or note; or a day or week; or the start of its id. */
  text: string;
}

export const SHOWN = ['all', 'unusual', 'below', 'unseen', 'noted', 'with', 'without'] as const;
/** Those that need the usual ranges. */
export const COMPARED: readonly Filter['warnings'][] = ['unusual', 'below', 'unseen'];

/** What the organisation knows of batches, by their ids. */
export interface Marks {
  isSeen: (batchId: string) => boolean;
  notes: ReadonlyMap<string, readonly { note: string; by: string }[]>;
}

export const NO_MARKS: Marks = { isSeen: () => false, notes: new Map() };

export const NO_FILTER: Filter = { crops: [], warnings: 'all', people: [], text: '' };

export const isSearch = ({ text }: Filter): boolean => text.trim() !== '';

/** How many of the four filters are set. */
export function activeFilters(filter: Filter): number {
  return (Number(filter.crops.length > 0) + Number(filter.people.length > 0) + Number(filter.warnings !== 'all') + Number(isSearch(filter)));
}

/** The rows that match, oldest first. Whether a batch is unusual depends on the `ranges`. */
export function select(columns: Columns, filter: Filter, period?: Period, ranges: UsualRanges = new Map(), marks = NO_MARKS): Int32Array {
  const matching = selectMatching(columns, filter, period, marks);
  if (filter.warnings === 'noted') return matching.filter((row) => marks.notes.has(columns.batch(row).batch_id));
  if (filter.warnings === 'below') return matching.filter((row) => isBelow(columns, row, ranges));
  if (!COMPARED.includes(filter.warnings)) return matching;
  const unusual = Int32Array.from(findUnusual(columns, matching, ranges), ({ row }) => row);
  return filter.warnings === 'unusual' ? unusual : unusual.filter((row) => !marks.isSeen(columns.batch(row).batch_id));
}

function selectMatching(columns: Columns, filter: Filter, period: Period | undefined, { notes }: Marks): Int32Array {
  const buffer = new Int32Array(columns.length);
  const words = searchWords(filter.text);
  const date = parseSearchDate(filter.text);
  // A date is found in texts only as it was typed: "10 Nov" is not in "Genovese, bench 10".
  const crops = ` ${searchWords(columns.crops.join(' ')).join(' ')} `;
  const searched = date === null ? phrases(words, (word) => word.length > 2 && wordForms(word).some((form) => crops.includes(` ${form}`))) : [whole(words).join(' ').replaceAll('  ', ' ')];
  const noteTexts = new Map(Array.from(notes, ([id, notes]) => [columns.rowOf(id), searchable(notes.flatMap(({ note, by }) => [note, by]))]));
  let count = collect(columns, filter, period, searched, date, noteTexts, buffer);
  if (count === 0 && date === null) count = collect(columns, filter, period, whole(words), date, noteTexts, buffer);
  // Copied, so that a small selection does not keep a large buffer alive.
  const rows = buffer.slice(0, count);
  if (columns.oldestFirst) return rows;
  const { ms } = columns;
  return rows.sort((a, b) => ms[a]! - ms[b]! || a - b);
}

function collect(columns: Columns, filter: Filter, period: Period | undefined, phrases: readonly string[], date: SearchDate | null, notes: ReadonlyMap<number, string>, into: Int32Array): number {
  const { length, day, warning, crop, person, searchText, searchId } = columns;
  const first = period === undefined ? -Infinity : dayNumber(period.from);
  const last = period === undefined ? Infinity : dayNumber(period.to);
  const crops = selectedFlags(filter.crops, columns.crops);
  const people = selectedFlags(filter.people, columns.people);
  const wanted = filter.warnings === 'with' ? 1 : filter.warnings === 'without' ? 0 : -1;
  const id = normalize(filter.text.trim());
  const isTextMatchable = phrases.length > 0 || id === '';
  const texts = phrases.map(wordForms);
  const dateTexts = whole(searchWords(date?.rest ?? '')).map(wordForms);
  let count = 0;
  for (let row = 0; row < length; row++) {
    if (day[row]! < first || day[row]! > last) continue;
    if (wanted !== -1 && warning[row] !== wanted) continue;
    if (crops !== null && crops[crop[row]! + 1] === 0) continue;
    if (people !== null && people[person[row]! + 1] === 0) continue;
    const text = searchText[row]! + (notes.get(row) ?? '');
    const isFound = isTextMatchable && includesAll(text, texts);
    const isOnDate = date?.days.has(day[row]!) && includesAll(text, dateTexts);
    if (!isFound && !isOnDate && !isStartOf(id, searchId[row]!)) continue;
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

const isNumber = (word: string): boolean => /^\p{N}/u.test(word);

/** A number belongs to the word before it: "bench 3" finds neither bench 13 nor row 3 of bench 1. But "basil 47" finds basil of
 * W47. A letter belongs to the number before it: "9A" does not find 9B. "Haus 3" finds House 3 and H3, "table 4" Tisch 4 and T4. */
function phrases(words: readonly string[], isCrop: (word: string) => boolean): string[] {
  const found: string[] = [];
  for (const word of words) {
    const isOfNumber = word.length === 1 && placeOf(word) === undefined && found.at(-1)?.endsWith(' ');
    const before = isNumber(word) && !isCrop(found.at(-1) ?? '') ? (found.pop() ?? '') : '';
    if (isNumber(word)) found.push(`${placeOf(before) ?? before} ${word} `);
    else found.push(isOfNumber ? `${found.pop()}${word} ` : word);
  }
  return found;
}

/** Numbers anywhere, but whole; only that of a place must follow it: for a query that finds nothing as phrases, or has a date. */
const whole = (words: readonly string[]): string[] => phrases(words, (word) => placeOf(word) === undefined);

/** Whether a text includes one form of each word. */
const includesAll = (text: string, words: readonly (readonly string[])[]): boolean => words.every((forms) => forms.some((form) => text.includes(form)));

// Fewer characters would find too many ids.
const ID_CHARS_MIN = 4;

const isStartOf = (start: string, id: string): boolean => id.startsWith(start) && (start.length >= ID_CHARS_MIN || start === id) && start !== '';
