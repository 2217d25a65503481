// The period shown: UTC days, both ends inclusive. Knows nothing about batches; today comes from outside.

import { dayNumber, dayText } from './day';

/** `from` and `to` are 'YYYY-MM-DD', both inclusive. */
export interface Period {
  from: string;
  to: string;
}

export type Preset = '7d' | '30d' | '90d' | '365d' | 'this-year' | 'last-year';

export const PRESETS: readonly { id: Preset; label: string }[] = [
  { id: '7d', label: 'Last 7 days' },
  { id: '30d', label: 'Last 30 days' },
  { id: '90d', label: 'Last 90 days' },
  { id: '365d', label: 'Last 365 days' },
  { id: 'this-year', label: 'This year' },
  { id: 'last-year', label: 'Last year' },
];

export const DEFAULT_PRESET: Preset = '90d';

// Twenty years. Daily figures have one entry per day, so the length is limited.
export const PERIOD_DAYS_MAX = 7_320;

/** Early enough for any scan, and the previous period still has a four-digit year. */
export const FIRST_DAY = '1900-01-01';

/** "Last n days" includes today; "this year" ends today. */
export function presetPeriod(preset: Preset, today: string): Period {
  const year = Number(today.slice(0, 4));
  switch (preset) {
    case 'this-year':
      return { from: `${today.slice(0, 4)}-01-01`, to: today };
    case 'last-year':
      return { from: `${year - 1}-01-01`, to: `${year - 1}-12-31` };
    default:
      return { from: dayText(dayNumber(today) - (parseInt(preset) - 1)), to: today };
  }
}

/** The period of the same length that ends the day before this one starts. */
export function previousPeriod(period: Period): Period {
  const start = dayNumber(period.from);
  return { from: dayText(start - dayCount(period)), to: dayText(start - 1) };
}

/** The query parameters of the API. It stores microseconds, so the end is the last one of the day. */
export function requestDates(period: Period): { start_date: string; end_date: string } {
  return { start_date: `${period.from}T00:00:00Z`, end_date: `${period.to}T23:59:59.999999Z` };
}

export function dayCount(period: Period): number {
  return dayNumber(period.to) - dayNumber(period.from) + 1;
}

/** Whether both are real days, in order, and at most `PERIOD_DAYS_MAX` apart. */
export function isPeriod(value: unknown): value is Period {
  if (typeof value !== 'object' || value === null) return false;
  const { from, to } = value as Record<string, unknown>;
  if (typeof from !== 'string' || typeof to !== 'string') return false;
  const length = dayNumber(to) - dayNumber(from) + 1;
  // False for NaN, which stands for an invalid day.
  return length >= 1 && length <= PERIOD_DAYS_MAX && from >= FIRST_DAY;
}

export function samePeriod(a: Period, b: Period): boolean {
  return a.from === b.from && a.to === b.to;
}
