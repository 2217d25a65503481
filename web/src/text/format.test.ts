import { expect, it } from 'vitest';
import { formatter, NONE } from './format';

const en = formatter('en-GB', 'UTC');
const de = formatter('de-DE', 'Europe/Berlin');

it('formats counts, percents and decimals by locale', () => {
  expect(en.count(1_234_567)).toBe('1,234,567');
  expect(de.count(1e12)).toBe('1.000.000.000.000');
  expect(en.percent(92.46)).toBe('92.5%');
  expect(de.percent(92.46, 2)).toMatch(/^92,46\s%$/);
  expect(en.percent(100, 0)).toBe('100%');
});

it('keeps all digits of a decimal', () => {
  expect(en.decimal('92.50')).toBe('92.50');
  expect(de.decimal('999999999999.99')).toBe('999.999.999.999,99');
  expect(en.decimal('7')).toBe('7');
  expect(en.decimal('-0.05')).toBe('-0.05');
  expect(en.decimal(1.5)).toBe('1.50');
  expect(en.decimal(3.14159, 1)).toBe('3.1');
});

it('formats instants in the time zone, and days as they are', () => {
  expect(de.date('2026-03-02')).toBe('02.03.2026');
  expect(de.date('2026-03-02T23:59:59Z')).toBe('03.03.2026');
  expect(de.instant('2026-03-02T23:59:59Z')).toBe('03.03.2026, 00:59');
  expect(de.time(Date.UTC(2026, 6, 1, 8, 5))).toBe('10:05');
});

it('formats how long ago something was', () => {
  expect(en.ago(20_000)).toBe('1 minute ago');
  expect(en.ago(119 * 60_000)).toBe('119 minutes ago');
  expect(en.ago(3 * 3_600_000)).toBe('3 hours ago');
  expect(de.ago(72 * 3_600_000)).toBe('vor 3 Tagen');
});

it('formats days and instants in UTC', () => {
  expect(en.date('2026-03-02')).toBe('2 Mar 2026');
  expect(en.date('2026-03-02T23:59:59Z')).toBe('2 Mar 2026');
  expect(en.shortDate('2026-03-02')).toBe('2 Mar');
  expect(en.month('2026-03-02')).toBe('Mar 2026');
  expect(en.instant('2026-03-29T01:30:00.123456Z')).toBe('29 Mar 2026, 01:30');
});

it('never throws for invalid values', () => {
  expect([en.count(null), en.percent(null), en.decimal(null), en.date(null), en.instant(null)]).toEqual(
    Array(5).fill(NONE),
  );
  expect([en.count(NaN), en.percent(Infinity), en.decimal('abc')]).toEqual(Array(3).fill(NONE));
  expect([en.date('yesterday'), en.instant('noon'), en.month('')]).toEqual(['yesterday', 'noon', '']);
});
