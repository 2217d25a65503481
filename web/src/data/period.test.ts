import { describe, expect, it } from 'vitest';
import { dayCount, isPeriod, PERIOD_DAYS_MAX, PRESETS, presetPeriod, type Preset, previousPeriod, recentPeriod, requestDates, usualRangePeriod, yearBefore } from './period';

describe('presets', () => {
  it('include today', () => {
    expect(presetPeriod('30d', '2026-03-02')).toEqual({ from: '2026-02-01', to: '2026-03-02' });
    expect(dayCount(presetPeriod('90d', '2026-03-02'))).toBe(90);
    expect(dayCount(usualRangePeriod('2024-03-02'))).toBe(365);
  });

  it('are yesterday, the week since Monday, and the week before it', () => {
    expect(presetPeriod('yesterday', '2026-03-01')).toEqual({ from: '2026-02-28', to: '2026-02-28' });
    expect(presetPeriod('this-week', '2026-03-01')).toEqual({ from: '2026-02-23', to: '2026-03-01' });
    expect(presetPeriod('this-week', '2026-03-02')).toEqual({ from: '2026-03-02', to: '2026-03-02' });
    const week = { from: '2026-02-16', to: '2026-02-22' };
    for (const today of ['2026-02-23', '2026-03-01']) expect(presetPeriod('last-week', today)).toEqual(week);
  });

  it('are the days since the last Friday, which may be today', () => {
    for (const today of ['2026-02-27', '2026-03-02', '2026-03-05']) {
      expect(presetPeriod('since-friday', today)).toEqual({ from: '2026-02-27', to: today });
    }
    expect(presetPeriod('since-friday', '2026-03-06').from).toBe('2026-03-06');
  });

  it('are this month and the whole last month', () => {
    expect(presetPeriod('this-month', '2026-03-02')).toEqual({ from: '2026-03-01', to: '2026-03-02' });
    expect(presetPeriod('last-month', '2026-03-31')).toEqual({ from: '2026-02-01', to: '2026-02-28' });
    expect(presetPeriod('last-month', '2026-01-15')).toEqual({ from: '2025-12-01', to: '2025-12-31' });
  });

  it('end this year today and last year in December', () => {
    expect(presetPeriod('this-year', '2026-03-02')).toEqual({ from: '2026-01-01', to: '2026-03-02' });
    expect(presetPeriod('last-year', '2026-03-02')).toEqual({ from: '2025-01-01', to: '2025-12-31' });
  });

  it('are valid on the first day of a year and on a leap day', () => {
    for (const today of ['2026-01-01', '2024-02-29', '2025-12-31']) {
      for (const preset of PRESETS) expect(isPeriod(presetPeriod(preset, today))).toBe(true);
    }
  });
});

it('starts a morning with the last working day', () => {
  const days = ['2026-11-12', '2026-11-13', '2026-11-14', '2026-11-15', '2026-11-16', '2026-11-17'];
  const starts = ['2026-11-11', '2026-11-12', '2026-11-13', '2026-11-13', '2026-11-13', '2026-11-16'];
  expect(days.map(recentPeriod)).toEqual(days.map((to, at) => ({ from: starts[at], to })));
});

it('returns the previous period of the same length, and for a day the same weekday', () => {
  const previous = (from: string, to: string): unknown => previousPeriod({ from, to }, null);
  expect(previous('2026-03-01', '2026-03-31')).toEqual({ from: '2026-01-29', to: '2026-02-28' });
  expect(previous('2024-03-01', '2024-03-01')).toEqual({ from: '2024-02-23', to: '2024-02-23' });
});

it('compares a year and a week that are not over with the same days of the last one', () => {
  const previous = (preset: Preset): unknown => previousPeriod(presetPeriod(preset, '2026-03-04'), preset);
  expect(previous('this-year')).toEqual({ from: '2025-01-01', to: '2025-03-04' });
  expect(previous('last-year')).toEqual({ from: '2024-01-01', to: '2024-12-31' });
  expect(previous('this-week')).toEqual({ from: '2026-02-23', to: '2026-02-25' });
  expect(previous('last-week')).toEqual({ from: '2026-02-16', to: '2026-02-22' });
});

it('compares a month with the month before, a month that is not over with its first days', () => {
  const previous = (preset: Preset, today: string): unknown => previousPeriod(presetPeriod(preset, today), preset);
  expect(previous('this-month', '2026-03-04')).toEqual({ from: '2026-02-01', to: '2026-02-04' });
  expect(previous('this-month', '2026-03-31')).toEqual({ from: '2026-02-01', to: '2026-02-28' });
  expect(previous('last-month', '2026-03-31')).toEqual({ from: '2026-01-01', to: '2026-01-31' });
  expect(previous('since-friday', '2026-03-02')).toEqual({ from: '2026-02-20', to: '2026-02-23' });
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
