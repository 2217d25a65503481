// The period shown: days, both ends inclusive. Knows nothing about batches; today comes from outside.

import { dayNumber, dayText, weekStart } from '../time/day';
import { dayStartMs } from '../time/zone';

/** `from` and `to` are 'YYYY-MM-DD', both inclusive. */
export interface Period {
  from: string;
  to: string;
}

export const PRESETS = ['1d', '7d', '30d', '90d', '365d'] as const;

export type Preset = (typeof PRESETS)[number];

/** Null for an unknown name. */
export const parsePreset = (text: string | null): Preset | null => PRESETS.find((preset) => preset === text) ?? null;

export const DEFAULT_PRESET: Preset = '90d';

// Twenty years. Daily figures have one entry per day, so the length is limited.
export const PERIOD_DAYS_MAX = 7_320;

/** Early enough for any batch, and the previous period still has a four-digit year. */
export const FIRST_DAY = '1900-01-01';

/** "n days" include today. */
export const presetPeriod = (preset: Preset, today: string): Period => lastDays(parseInt(preset), today);

const lastDays = (days: number, today: string): Period => ({ from: plusDays(today, 1 - days), to: today });

/** The days for the usual ranges, whatever the period shown. */
export const usualRangePeriod = (today: string): Period => lastDays(365, today);

/** As many days as a period can have. */
export const longestPeriod = (today: string): Period => lastDays(PERIOD_DAYS_MAX, today);

/** The days on the start page. */
export const fourWeeks = (today: string): Period => lastDays(28, today);

/** From the last working day until today: since Friday on a weekend and on Monday, otherwise since yesterday. */
export function recentPeriod(today: string): Period {
  const friday = weekStart(dayNumber(today) - FRIDAY) + FRIDAY;
  const days = dayNumber(today) - friday;
  return { from: plusDays(today, days >= 1 && days <= 3 ? -days : -1), to: today };
}

// Days after Monday.
const FRIDAY = 4;

/** As many days before. */
export function periodBefore(period: Period): Period {
  const days = dayCount(period);
  return { from: plusDays(period.from, -days), to: plusDays(period.to, -days) };
}

/** The day a number of days later, or earlier if it is negative. */
export const plusDays = (day: string, days: number): string => dayText(dayNumber(day) + days);

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
  return { start_date: new Date(start).toISOString(), end_date: new Date(end).toISOString().replace('Z', '999Z') };
}

export const dayCount = (period: Period): number => dayNumber(period.to) - dayNumber(period.from) + 1;

/** Whether both are real days, in order, and at most `PERIOD_DAYS_MAX` apart. */
export function isPeriod(value: unknown): value is Period {
  if (typeof value !== 'object' || value === null) return false;
  const { from, to } = value as Record<string, unknown>;
  if (typeof from !== 'string' || typeof to !== 'string') return false;
  const length = dayNumber(to) - dayNumber(from) + 1;
  // False for NaN, which stands for an invalid day.
  return length >= 1 && length <= PERIOD_DAYS_MAX && from >= FIRST_DAY;
}

export const samePeriod = (a: Period, b: Period): boolean => a.from === b.from && a.to === b.to;
