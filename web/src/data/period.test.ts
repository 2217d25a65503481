import { expect, it } from 'vitest';
import {
  dayCount,
  isPeriod,
  PERIOD_DAYS_MAX,
  periodBefore,
  presetPeriod,
  recentPeriod,
  requestDates,
  usualRangePeriod,
  yearBefore,
} from './period';

it('has presets that include today', () => {
  expect(presetPeriod('30d', '2026-03-02')).toEqual({ from: '2026-02-01', to: '2026-03-02' });
  expect(presetPeriod('1d', '2026-03-02')).toEqual({ from: '2026-03-02', to: '2026-03-02' });
  expect(dayCount(usualRangePeriod('2024-03-02'))).toBe(365);
});

it('starts a morning with the last working day', () => {
  const days = ['2026-11-12', '2026-11-13', '2026-11-14', '2026-11-15', '2026-11-16', '2026-11-17'];
  const starts = ['2026-11-11', '2026-11-12', '2026-11-13', '2026-11-13', '2026-11-13', '2026-11-16'];
  expect(days.map(recentPeriod)).toEqual(days.map((to, at) => ({ from: starts[at], to })));
});

it('returns as many days before', () => {
  const before = { from: '2026-01-29', to: '2026-02-28' };
  expect(periodBefore({ from: '2026-03-01', to: '2026-03-31' })).toEqual(before);
});

it('shifts a period by a year', () => {
  expect(yearBefore({ from: '2026-03-01', to: '2026-03-31' })).toEqual({ from: '2025-03-01', to: '2025-03-31' });
  expect(yearBefore({ from: '2024-02-29', to: '2024-03-01' })).toEqual({ from: '2023-02-28', to: '2023-03-01' });
});

it('requests whole days to the last microsecond', () => {
  expect(requestDates({ from: '2026-03-01', to: '2026-03-02' })).toEqual({
    start_date: '2026-03-01T00:00:00.000Z',
    end_date: '2026-03-02T23:59:59.999999Z',
  });
  expect(requestDates({ from: '0001-01-01', to: '9999-12-31' })).toEqual({
    start_date: '0001-01-01T00:00:00.000Z',
    end_date: '9999-12-31T23:59:59.999999Z',
  });
});

it('counts days, also across a change to summer time', () => {
  expect(dayCount({ from: '2026-03-29', to: '2026-03-29' })).toBe(1);
  expect(dayCount({ from: '2026-03-28', to: '2026-03-30' })).toBe(3);
});

it.each([
  null,
  7,
  {},
  { from: '2026-03-02' },
  { from: '2026-03-02', to: '2026-03-01' },
  { from: '2026-02-30', to: '2026-03-01' },
  { from: '2026-03-01', to: 'x' },
  { from: 1, to: 2 },
  { from: '1899-12-31', to: '1900-01-01' },
  { from: '1900-01-01', to: '9999-12-31' },
])('rejects %j', (value) => expect(isPeriod(value)).toBe(false));

it('allows twenty years and no more', () => {
  expect(isPeriod({ from: '2006-01-01', to: '2025-12-31' })).toBe(true);
  expect(PERIOD_DAYS_MAX).toBeGreaterThanOrEqual(20 * 366);
});
