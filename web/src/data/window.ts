// The span of UTC days that the reader looks at. Both ends are inclusive. Knows nothing of batches;
// what today is comes in from outside.

import { dayNumber, dayText } from './day';

/** `from` and `to` are 'YYYY-MM-DD', both inclusive. */
export interface Window {
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

// Figures by the day make one entry for each day: twenty years are more than a reader can see,
// and few enough that a URL with a silly span costs nothing.
export const WINDOW_DAYS_MAX = 7_320;

/** No scan is older; the window before the oldest window still has a four-digit year. */
export const FIRST_DAY = '1900-01-01';

/** The window a preset means today. "Last n days" includes today; "this year" ends today. */
export function presetWindow(preset: Preset, today: string): Window {
  switch (preset) {
    case '7d':
      return lastDays(7, today);
    case '30d':
      return lastDays(30, today);
    case '90d':
      return lastDays(90, today);
    case '365d':
      return lastDays(365, today);
    case 'this-year':
      return { from: `${today.slice(0, 4)}-01-01`, to: today };
    case 'last-year': {
      const year = String(Number(today.slice(0, 4)) - 1).padStart(4, '0');
      return { from: `${year}-01-01`, to: `${year}-12-31` };
    }
  }
}

/** The window of the same length that ends the day before this one starts. */
export function before(window: Window): Window {
  const start = dayNumber(window.from);
  return { from: dayText(start - days(window)), to: dayText(start - 1) };
}

/** The window as the service's inclusive dates; it stores microseconds, so the last one of the day is named. */
export function requestDates(window: Window): { start_date: string; end_date: string } {
  return { start_date: `${window.from}T00:00:00Z`, end_date: `${window.to}T23:59:59.999999Z` };
}

/** How many days the window holds; 1 when it starts and ends on the same day. */
export function days(window: Window): number {
  return dayNumber(window.to) - dayNumber(window.from) + 1;
}

/** Whether the value is a window that can be shown: real days in order, no longer than `WINDOW_DAYS_MAX`. */
export function isWindow(value: unknown): value is Window {
  if (typeof value !== 'object' || value === null) return false;
  const { from, to } = value as Record<string, unknown>;
  if (typeof from !== 'string' || typeof to !== 'string') return false;
  const length = dayNumber(to) - dayNumber(from) + 1;
  // A comparison with NaN is false, which refuses what is no day at all.
  return length >= 1 && length <= WINDOW_DAYS_MAX && from >= FIRST_DAY;
}

export function sameWindow(a: Window, b: Window): boolean {
  return a.from === b.from && a.to === b.to;
}

function lastDays(count: number, today: string): Window {
  return { from: dayText(dayNumber(today) - (count - 1)), to: today };
}
