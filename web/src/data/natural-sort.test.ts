import { expect, it } from 'vitest';
import { rankTexts } from './natural-sort';
import { seededRandom } from './test-data';

const inOrder = (texts: string[]): string[] => rankTexts(texts).order.map((at) => texts[at]!);

it('sorts Tray 9 before Tray 10', () => {
  expect(inOrder(['Tray 10', 'Tray 9', 'Tray 10b', 'Tray 010', 'Tray'])).toEqual([
    'Tray',
    'Tray 9',
    'Tray 10',
    'Tray 010',
    'Tray 10b',
  ]);
});

it('compares letters before case and accents', () => {
  // Which case comes first depends on the language.
  expect(inOrder(['Zoe 10', 'zoé 2', 'zoe 1', 'abc'])).toEqual(['abc', 'zoe 1', 'zoé 2', 'Zoe 10']);
});

it('agrees with a numeric collator on realistic names', () => {
  const random = seededRandom(11);
  const pick = (from: string[]): string => from[Math.floor(random() * from.length)]!;
  const collator = new Intl.Collator(undefined, { numeric: true });
  const texts = Array.from({ length: 2_000 }, () =>
    [pick(['Tomato', 'tomato', 'Salat', 'basil']), pick(['north', 'South', 'Öst']), Math.floor(random() * 300)].join(
      ' ',
    ),
  );
  expect(inOrder(texts)).toEqual([...texts].sort(collator.compare));
});

it('gives equal texts the same rank, and null none', () => {
  const { ranks, count } = rankTexts(['b', null, 'a', 'b']);
  expect([...ranks]).toEqual([1, -1, 0, 1]);
  expect(count).toBe(2);
});

it('does not depend on the earlier order', () => {
  const texts = ['c', 'a', null, 'b', 'a'];
  const { ranks } = rankTexts(texts);
  for (const before of [[], [0], [1, 4, 3, 0], [4, 3, 2, 1, 0, 99], [0, 0, 0]]) {
    expect(rankTexts(texts, before).ranks).toEqual(ranks);
  }
});

it('handles unusual texts', () => {
  const odd = ['', '\ud800', '9'.repeat(400), '9'.repeat(401), '__proto__', 'x'.repeat(100_000), '٣', '0'];
  expect([...inOrder(odd)].sort()).toEqual([...odd].sort());
});
