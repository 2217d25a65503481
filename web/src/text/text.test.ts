import { expect, it } from 'vitest';
import { de } from './de';
import { en } from './en';

it('uses the singular', () => {
  expect(en.activity.summary('day', 1, 1, '3 Mar', 1)).toBe('1 batch on 3 Mar.');
  expect(en.activity.summary('month', 1, 2, 'Mar 2026', 1)).toBe(
    'Batches in 1 of 2 months. Busiest: Mar 2026, with 1 batch.',
  );
  expect(de.activity.summary('day', 1, 1, '3. März', 1)).toBe('1 Charge am 3. März.');
  expect(de.activity.summary('day', 1, 7, '3. März', 2)).toBe(
    'Chargen an einem von 7 Tagen. Die meisten: 3. März, mit 2 Chargen.',
  );
});

it('never shows an age of 0 minutes', () => {
  expect(en.loading.outdated(5_000)).toBe('Showing data from just now.');
  expect(en.loading.outdated(60_000)).toBe('Showing data from 1 minute ago.');
  expect(de.loading.outdated(5_000)).toBe('Angezeigt wird der Stand von gerade eben.');
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
