// Numbers and dates in the user's locale and time zone. Never throws for invalid values. Caches the Intl formatters, which are
// slow to create.

import { locale } from './language';
import { dayNumber, DAY_MS, instantMs } from '../time/day';
import { timeZone } from '../time/zone';

/** Shown for a missing value. */
export const NONE = '–';

// The digits of a double; Intl rejects more than 20.
const DIGITS_MAX = 15;

/** The formatter of a language tag and a time zone. */
export function formatter(tag: string, timeZone: string) {
  const numbers = formatterCache((options: Intl.NumberFormatOptions) => new Intl.NumberFormat(tag, options));
  const dates = formatterCache((options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(tag, options));
  const fixed = (digits: number): Intl.NumberFormatOptions => ({
    minimumFractionDigits: Math.min(digits, DIGITS_MAX),
    maximumFractionDigits: Math.min(digits, DIGITS_MAX),
  });
  const day = (text: string, name: string, options: Intl.DateTimeFormatOptions): string => {
    // A day has no time zone.
    const [ms, zone] = text.length === 10 ? [dayNumber(text) * DAY_MS, 'UTC'] : [instantMs(text), timeZone];
    return Number.isNaN(ms) ? text : dates(`${name} ${zone}`, { ...options, timeZone: zone }).format(ms);
  };
  const number = (value: number, name: string, options: Intl.NumberFormatOptions): string => Number.isFinite(value) ? numbers(name, options).format(value) : NONE;

  return {
    count: (n: number | null) => (n === null ? NONE : number(n, 'count', { maximumFractionDigits: 0 })),
    /** 92.5 is "92.5%". */
    percent: (n: number | null, digits = 1) => (n === null ? NONE : number(n, `percent${digits}`, { ...PERCENT, ...fixed(digits) })),
    /** A decimal with the digits it was sent with; a number with two. */
    decimal: (value: string | number | null, digits?: number) => {
      if (value === null) return NONE;
      const shown = digits ?? (typeof value === 'string' ? digitsOf(value) : 2);
      return number(Number(value), `decimal${shown}`, fixed(shown));
    },
    signed: (n: number) => number(n, 'signed', { ...fixed(1), signDisplay: 'exceptZero' }),
    /** A day, 'YYYY-MM-DD', or the day of an instant, with its year. */
    date: (text: string | null) => (text === null ? NONE : day(text, 'date', { dateStyle: 'medium' })),
    weekday: (text: string) => day(text, 'weekday', { weekday: 'long', day: 'numeric', month: 'short', year: 'numeric' }),
    shortDate: (text: string) => day(text, 'shortDate', { day: 'numeric', month: 'short' }),
    month: (text: string) => day(text, 'month', { month: 'short', year: 'numeric' }),
    /** An instant to the minute. */
    instant: (iso: string | null) => {
      if (iso === null) return NONE;
      const ms = instantMs(iso);
      const options = { dateStyle: 'medium', timeStyle: 'short', timeZone } as const;
      return Number.isNaN(ms) ? iso : dates('instant', options).format(ms);
    },
    time: (ms: number) => dates('time', { timeStyle: 'short', timeZone }).format(ms),
    /** How long ago something was, a minute at least, such as "3 minutes ago". */
    ago: (ms: number) => {
      const minutes = Math.max(1, Math.round(ms / 60_000));
      const [, length, unit] = AGO.find(([from]) => minutes >= from)!;
      return new Intl.RelativeTimeFormat(tag).format(-Math.round(minutes / length), unit);
    },
  };
}

// From how many minutes on, the minutes of a unit, and the unit.
const AGO: readonly [number, number, Intl.RelativeTimeFormatUnit][] = [[2 * 1440, 1440, 'day'], [120, 60, 'hour'], [0, 1, 'minute']];

// Style 'percent' would expect fractions.
const PERCENT = { style: 'unit', unit: 'percent' } as const;

function digitsOf(decimal: string): number {
  const point = decimal.indexOf('.');
  return point === -1 ? 0 : decimal.length - point - 1;
}

function formatterCache<O, F>(make: (options: O) => F): (name: string, options: O) => F {
  const cache = new Map<string, F>();
  return (name, options) => {
    const format = cache.get(name) ?? make(options);
    cache.set(name, format);
    return format;
  };
}

export const { count, percent, decimal, signed, date, weekday, shortDate, month, instant, time, ago } = formatter(locale, timeZone);
