// Corrects a search that finds nothing because of a typing mistake.

import { personName } from './batch';
import { searchWords, WORD, wordForms, type Columns } from './columns';

// Short words are near too many others.
const CHARS_MIN = 4;

/** The words of the batches as they are written, by how they are compared. Those of the crops first: a comment may have them
    in lower case. */
export function knownWords(all: readonly Columns[]): ReadonlyMap<string, string> {
  const words = new Set<string>();
  const add = (text: string | null): void => text?.match(WORD)?.forEach((word) => words.add(word));
  for (const { crops, people } of all) [...crops, ...people.map(personName)].forEach(add);
  for (const columns of all) {
    for (let row = 0; row < columns.length; row++) {
      add(columns.batch(row).batch_name);
      add(columns.batch(row).comment);
    }
  }
  return new Map(Array.from(words, (word) => [searchWords(word).join(''), word] as const).reverse());
}

/** The search with each unknown word replaced by the nearest known one; null if more than a third of its letters are wrong. */
export function corrected(search: string, known: ReadonlyMap<string, string>): string | null {
  const all = [...known.keys()];
  let isNear = true;
  const found = search.replace(WORD, (typed) => {
    const [word = ''] = searchWords(typed);
    if (word.length < CHARS_MIN || wordForms(word).some((form) => all.some((other) => `${other} `.includes(form)))) return typed;
    let [near, least] = ['', word.length / 3];
    for (const other of all) {
      const far = Math.abs(other.length - word.length) > least ? Infinity : distance(word, other);
      if (far < least || (far === least && near === '')) [near, least] = [other, far];
    }
    isNear &&= near !== '';
    return known.get(near) ?? typed;
  });
  return !isNear || found === search ? null : found;
}

/** How many letters are wrong, missing, too many, or swapped with the next. */
function distance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= a.length; i++) {
    const [before, row] = [rows[i - 1]!, [i]];
    for (let j = 1; j <= b.length; j++) {
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwapped ? rows[i - 2]![j - 2]! + 1 : Infinity;
      row[j] = Math.min(before[j]! + 1, row[j - 1]! + 1, before[j - 1]! + Number(a[i - 1] !== b[j - 1]), swapped);
    }
    rows.push(row);
  }
  return rows[a.length]![b.length]!;
}
