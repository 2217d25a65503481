import { expect, it } from 'vitest';
import { dayNumber, dayText, instantMs, weekNumber } from './day';

it('agrees with Date on every day of four centuries', () => {
  for (let day = dayNumber('1900-01-01'); day <= dayNumber('2300-12-31'); day++) {
    if (dayNumber(dayText(day)) !== day) throw new Error(dayText(day));
  }
  expect(dayNumber('1970-01-01')).toBe(0);
  expect(dayNumber('0001-01-01')).toBe(-719_162);
});

it.each([
  '2026-02-29',
  '2100-02-29',
  '2026-13-01',
  '2026-00-10',
  '2026-04-31',
  '2026-1-01',
  '2026-01-01T',
  'abcd-ef-gh',
  '',
  '+026-01-01',
])('rejects the day %j', (text) => expect(dayNumber(text)).toBeNaN());

it('handles leap days', () => {
  expect(dayText(dayNumber('2024-02-29') + 1)).toBe('2024-03-01');
  expect(dayNumber('2000-02-29')).not.toBeNaN();
});

it.each([
  ['2026-10-05', 41],
  ['2025-12-29', 1],
  ['2021-01-03', 53],
])('%s is in week %i', (day, week) => expect(weekNumber(dayNumber(day))).toBe(week));

it('keeps the microseconds of an instant', () => {
  expect(instantMs('1970-01-01T00:00:01Z')).toBe(1000);
  expect(instantMs('2026-03-02T10:20:30.5Z')).toBe(Date.UTC(2026, 2, 2, 10, 20, 30, 500));
  expect(instantMs('2026-03-02T10:20:30.000002Z')).toBeGreaterThan(instantMs('2026-03-02T10:20:30.000001Z'));
  expect(instantMs('1969-12-31T23:59:59.999Z')).toBe(-1);
});

it.each([
  '2026-03-02',
  '2026-03-02T10:20Z',
  '2026-03-02T10:20:30',
  '2026-03-02T10:20:30+00:00',
  '2026-03-02T24:00:00Z',
  '2026-03-02T10:60:00Z',
  '2026-03-02T10:20:30.Z',
  '2026-03-02T10:20:30.1234567890Z',
  '2026-02-30T10:20:30Z',
  '2026-03-02 10:20:30Z',
  '',
])('rejects the instant %j', (text) => expect(instantMs(text)).toBeNaN());

