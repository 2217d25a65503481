// Corrects a search that finds nothing because of a typing mistake.

import { normalize, searchWords } from './columns';

// Short words are near too many others.
const CHARS_MIN = 4;

/** The search with each unknown word replaced by one of `texts` that differs in one letter; null if there is none. */
export function corrected(search: string, texts: readonly string[]): string | null {
  const known = new Set<string>();
  for (const text of texts) for (const word of text.split(' ')) known.add(word);
  const all = [...known];
  const typed = normalize(search);
  let found = typed;
  for (const word of searchWords(search)) {
    if (word.length < CHARS_MIN || all.some((other) => other.includes(word))) continue;
    const near = all.find((other) => isNear(word, other));
    if (near === undefined) return null;
    found = found.replace(word, near);
  }
  return found === typed ? null : found;
}

/** Whether one letter is wrong, missing, too much, or swapped with the next. */
function isNear(a: string, b: string): boolean {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  const [restA, restB] = [a.slice(at), b.slice(at)];
  const swapped = `${restA[1]}${restA[0]}${restA.slice(2)}`;
  return restA.slice(1) === restB.slice(1) || restA === restB.slice(1) || restA.slice(1) === restB || swapped === restB;
}
