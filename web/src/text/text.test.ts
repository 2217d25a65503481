import { expect, it } from 'vitest';
import { de } from './de';
import { en } from './en';

it('uses the singular', () => {
  expect([1, 2].map((n) => en.today.needLook(n, 9))).toEqual(['1 of 9 batches needs a look', '2 of 9 batches need a look']);
  expect([1, 2].map((n) => en.today.fine(n))).toEqual(['1 batch, as usual', '2 batches, all as usual']);
  expect([1, 2].map((n) => de.today.fine(n))).toEqual(['1 Charge, unauffällig', '2 Chargen, alle unauffällig']);
});

it('never shows an age of 0 minutes', () => {
  expect(en.loading.outdated(5_000)).toBe('Showing data from 1 minute ago.');
  expect(en.loading.outdated(60_000)).toBe('Showing data from 1 minute ago.');
});

/** All texts, also in nested groups; functions are skipped. */
function texts(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(texts) : [];
}

it('has a no-break space before a German ellipsis, which stands for a word', () => {
  const found = texts(de).filter((text) => text.includes('…'));
  expect(found.length).toBeGreaterThan(0);
  for (const text of found) expect(text).toMatch(/\u00a0…$/);
});
