// Corrects a search that finds nothing because of a typing mistake.

import { normalize, searchWords } from './columns';

// Short words are near too many others.
const CHARS_MIN = 4;

/** The search with each unknown word replaced by the nearest of `texts`; null if more than a third of its letters are wrong. */
export function corrected(search: string, texts: readonly string[]): string | null {
  const known = new Set<string>();
  for (const text of texts) for (const word of text.split(' ')) known.add(word);
  const all = [...known];
  const typed = normalize(search);
  let found = typed;
  for (const word of searchWords(search)) {
    if (word.length < CHARS_MIN || all.some((other) => other.includes(word))) continue;
    let [near, least] = ['', word.length / 3];
    for (const other of all) {
      const far = Math.abs(other.length - word.length) > least ? Infinity : distance(word, other);
      if (far < least || (far === least && near === '')) [near, least] = [other, far];
    }
    if (near === '') return null;
    found = found.replace(word, near);
  }
  return found === typed ? null : found;
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
