// The period shown: days, both ends inclusive. Knows nothing about batches; today comes from outside.

import { dayNumber, dayText, weekStart } from '../time/day';
import { dayStartMs } from '../time/zone';

/** `from` and `to` are 'YYYY-MM-DD', both inclusive. */
export interface Period {
  from: string;
  to: string;
}

export const PRESETS = [
  '1d',
  'yesterday',
  'since-friday',
  'this-week',
  'last-week',
  'this-month',
  'last-month',
  '30d',
  '90d',
  '365d',
  'this-year',
  'last-year',
] as const;

export type Preset = (typeof PRESETS)[number];

export function isPreset(text: string | null): text is Preset {
  return PRESETS.some((preset) => preset === text);
}

export const DEFAULT_PRESET: Preset = '90d';

// Twenty years. Daily figures have one entry per day, so the length is limited.
export const PERIOD_DAYS_MAX = 7_320;

/** Early enough for any batch, and the previous period still has a four-digit year. */
export const FIRST_DAY = '1900-01-01';

/** "Last n days" includes today; "this week" and the like end today. Weeks start on Monday. */
export function presetPeriod(preset: Preset, today: string): Period {
  const year = Number(today.slice(0, 4));
  const monday = dayText(weekStart(dayNumber(today)));
  switch (preset) {
    case 'yesterday':
      return { from: plusDays(today, -1), to: plusDays(today, -1) };
    case 'since-friday':
      return { from: dayText(weekStart(dayNumber(today) - FRIDAY) + FRIDAY), to: today };
    case 'this-week':
      return { from: monday, to: today };
    case 'last-week':
      return { from: plusDays(monday, -7), to: plusDays(monday, -1) };
    case 'this-month':
      return { from: firstOfMonth(today), to: today };
    case 'last-month': {
      const to = plusDays(firstOfMonth(today), -1);
      return { from: firstOfMonth(to), to };
    }
    case 'this-year':
      return { from: `${today.slice(0, 4)}-01-01`, to: today };
    case 'last-year':
      return { from: `${year - 1}-01-01`, to: `${year - 1}-12-31` };
    default:
      return { from: plusDays(today, 1 - parseInt(preset)), to: today };
  }
}

/** The days for the usual ranges, whatever the period shown. */
export function usualRangePeriod(today: string): Period {
  return presetPeriod('365d', today);
}

/** From the last working day until today: since Friday on a weekend and on Monday, otherwise since yesterday. */
export function recentPeriod(today: string): Period {
  const [friday, yesterday] = [presetPeriod('since-friday', today).from, plusDays(today, -1)];
  const isNear = friday < today && friday >= plusDays(today, -3);
  return { from: isNear ? friday : yesterday, to: today };
}

// Days after Monday.
const FRIDAY = 4;

function firstOfMonth(day: string): string {
  return `${day.slice(0, 8)}01`;
}

/** The period to compare with: the same days of the last year or month, or as many days before, but at least a week. */
export function previousPeriod(period: Period, preset: Preset | null): Period {
  if (preset === 'this-year' || preset === 'last-year') return yearBefore(period);
  if (preset === 'this-month' || preset === 'last-month') return monthBefore(period, preset === 'last-month');
  const length = dayCount(period);
  const days = Math.max(7, length);
  return { from: plusDays(period.from, -days), to: plusDays(period.to, -days) };
}

/** The day a number of days later, or earlier if it is negative. */
export function plusDays(day: string, days: number): string {
  return dayText(dayNumber(day) + days);
}

function monthBefore({ from, to }: Period, isWhole: boolean): Period {
  const last = plusDays(from, -1);
  const same = `${last.slice(0, 8)}${to.slice(8)}`;
  return { from: firstOfMonth(last), to: isWhole || same > last ? last : same };
}

/** The same days a year before. 29 February becomes 28 February. */
export function yearBefore(period: Period): Period {
  const shift = (day: string): string => {
    const shifted = `${String(Number(day.slice(0, 4)) - 1).padStart(4, '0')}${day.slice(4)}`;
    return Number.isNaN(dayNumber(shifted)) ? `${shifted.slice(0, 8)}28` : shifted;
  };
  return { from: shift(period.from), to: shift(period.to) };
}

const FIRST_MS = Date.parse('0001-01-01T00:00:00Z');
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** The query parameters of the API. It stores microseconds, so the end is the last one of the day. */
export function requestDates(period: Period): { start_date: string; end_date: string } {
  const start = Math.max(FIRST_MS, dayStartMs(dayNumber(period.from)));
  const end = Math.min(LAST_MS, dayStartMs(dayNumber(period.to) + 1) - 1);
  return { start_date: iso(start), end_date: iso(end).replace('Z', '999Z') };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
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
