// Natural sort: the order of the user's language, with "Tray 9" before "Tray 10".
//
// A numeric Intl.Collator alone takes 330 ms for fifty thousand names, because it compares the same words again and
// again. So each text is split into words and numbers, the collator ranks the distinct words once, and texts compare as
// lists of numbers. Only texts that differ just in case or accents need the collator again.

/** A rank per text (equal texts share one; -1 for null). */
interface TextRanks {
  ranks: Int32Array;
  count: number;
  /** Positions of the texts that are not null, in order. */
  order: number[];
}

/**
 * Ranks the texts. `before` is the `order` of an earlier call for the start of the same list, and makes this one faster.
 * It never changes the result.
 */
export function rankTexts(texts: readonly (string | null)[], before: readonly number[] = []): TextRanks {
  const compare = comparison(texts);
  const order = startingOrder(texts, before).sort(compare);
  const ranks = new Int32Array(texts.length).fill(-1);
  let count = 0;
  for (let at = 0; at < order.length; at++) {
    if (at === 0 || compare(order[at - 1]!, order[at]!) !== 0) count++;
    ranks[order[at]!] = count - 1;
  }
  return { ranks, count, order };
}

const words = new Intl.Collator();
const wordsByLetter = new Intl.Collator(undefined, { sensitivity: 'base' });
const wholeTexts = new Intl.Collator(undefined, { numeric: true });

function startingOrder(texts: readonly (string | null)[], before: readonly number[]): number[] {
  const placed = new Uint8Array(texts.length);
  const order: number[] = [];
  const place = (at: number): void => {
    if (at >= texts.length || texts[at] === null || placed[at] === 1) return;
    placed[at] = 1;
    order.push(at);
  };
  before.forEach(place);
  for (let at = 0; at < texts.length; at++) place(at);
  return order;
}

function comparison(texts: readonly (string | null)[]): (a: number, b: number) => number {
  const { starts, parts } = partsOf(texts);
  return (a, b) => {
    const startA = starts[a]!;
    const startB = starts[b]!;
    const lengthA = starts[a + 1]! - startA;
    const lengthB = starts[b + 1]! - startB;
    const shared = lengthA < lengthB ? lengthA : lengthB;
    for (let at = 0; at < shared; at++) {
      const difference = parts[startA + at]! - parts[startB + at]!;
      if (difference !== 0) return difference;
    }
    if (lengthA !== lengthB) return lengthA - lengthB;
    return texts[a] === texts[b] ? 0 : wholeTexts.compare(texts[a]!, texts[b]!);
  };
}

/** Word, number, word, number … of all texts; a text that starts with a digit starts with an empty word. */
interface Parts {
  starts: Int32Array;
  parts: number[];
}

function partsOf(texts: readonly (string | null)[]): Parts {
  const starts = new Int32Array(texts.length + 1);
  const parts: number[] = [];
  const wordIndex = new Map<string, number>();
  const distinct: string[] = [];
  const indexOf = (word: string): number => {
    const known = wordIndex.get(word);
    if (known !== undefined) return known;
    wordIndex.set(word, distinct.length);
    return distinct.push(word) - 1;
  };
  for (let at = 0; at < texts.length; at++) {
    starts[at] = parts.length;
    if (texts[at] !== null) split(texts[at]!, parts, indexOf);
  }
  starts[texts.length] = parts.length;
  const ranks = wordRanks(distinct);
  for (let at = 0; at < texts.length; at++) {
    // Every other part is a word: replace its index by its rank.
    for (let part = starts[at]!; part < starts[at + 1]!; part += 2) parts[part] = ranks[parts[part]!]!;
  }
  return { starts, parts };
}

function split(text: string, parts: number[], indexOf: (word: string) => number): void {
  let from = 0;
  while (from < text.length) {
    let at = from;
    while (at < text.length && !isDigit(text, at)) at++;
    parts.push(indexOf(text.slice(from, at)));
    if (at === text.length) return;
    let value = 0;
    // Rounded beyond fifteen digits.
    for (; at < text.length && isDigit(text, at); at++) value = value * 10 + text.charCodeAt(at) - 48;
    parts.push(Math.min(value, Number.MAX_VALUE));
    from = at;
  }
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 48 && code <= 57;
}

/** Words that differ only in case or accents share a rank. */
function wordRanks(distinct: readonly string[]): Int32Array {
  const order = distinct.map((_, index) => index).sort((a, b) => words.compare(distinct[a]!, distinct[b]!));
  const ranks = new Int32Array(distinct.length);
  let rank = -1;
  order.forEach((index, at) => {
    if (at === 0 || wordsByLetter.compare(distinct[order[at - 1]!]!, distinct[index]!) !== 0) rank++;
    ranks[index] = rank;
  });
  return ranks;
}
