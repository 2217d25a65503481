import { describe, expect, it } from 'vitest';
import { before, days, isWindow, PRESETS, presetWindow, requestDates, WINDOW_DAYS_MAX } from './window';

describe('presets', () => {
  it('count today in', () => {
    expect(presetWindow('7d', '2026-03-02')).toEqual({ from: '2026-02-24', to: '2026-03-02' });
    expect(days(presetWindow('90d', '2026-03-02'))).toBe(90);
    expect(days(presetWindow('365d', '2024-03-02'))).toBe(365);
  });

  it('end this year today and last year in December', () => {
    expect(presetWindow('this-year', '2026-03-02')).toEqual({ from: '2026-01-01', to: '2026-03-02' });
    expect(presetWindow('last-year', '2026-03-02')).toEqual({ from: '2025-01-01', to: '2025-12-31' });
  });

  it('are windows, on the first day of a year and on a leap day too', () => {
    for (const today of ['2026-01-01', '2024-02-29', '2025-12-31']) {
      for (const { id } of PRESETS) expect(isWindow(presetWindow(id, today))).toBe(true);
    }
  });
});

it('puts the window before right in front, as long as this one', () => {
  expect(before({ from: '2026-03-01', to: '2026-03-31' })).toEqual({ from: '2026-01-29', to: '2026-02-28' });
  expect(before({ from: '2024-03-01', to: '2024-03-01' })).toEqual({ from: '2024-02-29', to: '2024-02-29' });
});

it('asks for whole days to the last microsecond', () => {
  expect(requestDates({ from: '2026-03-01', to: '2026-03-02' })).toEqual({
    start_date: '2026-03-01T00:00:00Z',
    end_date: '2026-03-02T23:59:59.999999Z',
  });
});

it('counts a day as one, and no day twice over a change of clocks', () => {
  expect(days({ from: '2026-03-29', to: '2026-03-29' })).toBe(1);
  expect(days({ from: '2026-03-28', to: '2026-03-30' })).toBe(3);
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
])('takes %j for no window', (value) => expect(isWindow(value)).toBe(false));

it('allows twenty years and no more', () => {
  expect(isWindow({ from: '2006-01-01', to: '2025-12-31' })).toBe(true);
  expect(WINDOW_DAYS_MAX).toBeGreaterThanOrEqual(20 * 366);
});
