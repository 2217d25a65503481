// Numbers and dates in the reader's own writing. Owns the Intl formatters, made once each: making one costs
// more than a thousand uses. Everything is UTC. Says no words of its own, and never throws at odd data.

import type { Decimal } from './batch';
import { dayNumber, DAY_MS, instantMs } from './day';

/** What stands where there is no value. */
export const NONE = '–';

/** A difference from before to now, ready to show. */
export interface Change {
  value: number;
  /** Signed, such as "+1.2"; by `changeInPercent` with its percent sign. */
  text: string;
  /** By the text: what rounds to zero is 'same'. */
  direction: 'up' | 'down' | 'same';
}

export interface Locale {
  count(n: number | null): string;
  /** 92.5 is "92.5%". */
  percent(n: number | null, digits?: number): string;
  /** A decimal with the digits it was sent with; a number with two. */
  decimal(value: Decimal | number | null, digits?: number): string;
  /** A UTC day ('YYYY-MM-DD', or an instant, of which the day is taken), with its year. */
  date(day: string | null): string;
  /** As `date` without the year, for axes. */
  shortDate(day: string): string;
  /** The month of a day, with its year. */
  month(day: string): string;
  /** A UTC instant to the minute. */
  instant(iso: string | null): string;
  /** A wait, such as "4 sec". */
  seconds(n: number): string;
  /** For rates: the difference in percentage points, without a unit. Null when either is missing. */
  changeInPoints(now: number | null, before: number | null): Change | null;
  /** For counts: the growth in percent. Null when either is missing, or nothing was before. */
  changeInPercent(now: number | null, before: number | null): Change | null;
}

/** The locale of a language tag; without one, the reader's own. */
export function localeFor(tag?: string): Locale {
  const key = tag ?? '';
  const known = locales.get(key);
  if (known !== undefined) return known;
  const made = makeLocale(tag);
  locales.set(key, made);
  return made;
}

// Holds what the program asks for by name: one or two.
const locales = new Map<string, Locale>();

// A number has 15 digits to show; Intl refuses more than 20 after the point.
const DIGITS_MAX = 15;

function makeLocale(tag: string | undefined): Locale {
  const numbers = formatterCache((options: Intl.NumberFormatOptions) => new Intl.NumberFormat(tag, options));
  const dates = formatterCache((options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(tag, options));
  const fixed = (digits: number): Intl.NumberFormatOptions => ({
    minimumFractionDigits: Math.min(digits, DIGITS_MAX),
    maximumFractionDigits: Math.min(digits, DIGITS_MAX),
  });
  const day = (text: string, name: string, options: Intl.DateTimeFormatOptions): string => {
    const number = dayNumber(text.slice(0, 10));
    return Number.isNaN(number) ? text : dates(name, { ...options, timeZone: 'UTC' }).format(number * DAY_MS);
  };
  const number = (value: number, name: string, options: Intl.NumberFormatOptions): string =>
    Number.isFinite(value) ? numbers(name, options).format(value) : NONE;
  const change = (value: number, name: string, options: Intl.NumberFormatOptions): Change => {
    const format = numbers(name, { ...options, signDisplay: 'exceptZero' });
    const sign = format.formatToParts(value).find((part) => part.type === 'plusSign' || part.type === 'minusSign');
    const direction = sign === undefined ? 'same' : value > 0 ? 'up' : 'down';
    return { value, text: format.format(value), direction };
  };

  return {
    count: (n) => (n === null ? NONE : number(n, 'count', { maximumFractionDigits: 0 })),
    percent: (n, digits = 1) => (n === null ? NONE : number(n, `percent${digits}`, { ...PERCENT, ...fixed(digits) })),
    decimal: (value, digits) => {
      if (value === null) return NONE;
      const shown = digits ?? (typeof value === 'string' ? digitsOf(value) : 2);
      return number(Number(value), `decimal${shown}`, fixed(shown));
    },
    date: (text) => (text === null ? NONE : day(text, 'date', { dateStyle: 'medium' })),
    shortDate: (text) => day(text, 'shortDate', { day: 'numeric', month: 'short' }),
    month: (text) => day(text, 'month', { month: 'short', year: 'numeric' }),
    instant: (iso) => {
      if (iso === null) return NONE;
      const ms = instantMs(iso);
      const options = { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' } as const;
      return Number.isNaN(ms) ? iso : dates('instant', options).format(ms);
    },
    seconds: (n) =>
      number(n, 'seconds', { style: 'unit', unit: 'second', unitDisplay: 'short', maximumFractionDigits: 0 }),
    changeInPoints: (now, before) =>
      now === null || before === null ? null : change(now - before, 'points', fixed(1)),
    changeInPercent: (now, before) => {
      if (now === null || before === null || before === 0) return null;
      return change(((now - before) / Math.abs(before)) * 100, 'growth', { ...PERCENT, maximumFractionDigits: 0 });
    },
  };
}

// Our percentages are whole percents already; style 'percent' would want fractions, and a division.
const PERCENT = { style: 'unit', unit: 'percent' } as const;

function digitsOf(decimal: Decimal): number {
  const point = decimal.indexOf('.');
  return point === -1 ? 0 : decimal.length - point - 1;
}

function formatterCache<O, F>(make: (options: O) => F): (name: string, options: O) => F {
  const made = new Map<string, F>();
  return (name, options) => {
    const known = made.get(name) ?? make(options);
    made.set(name, known);
    return known;
  };
}

/** The reader's own writing, under the names that views use. */
export const { count, percent, decimal, date, shortDate, month, instant, seconds, changeInPoints, changeInPercent } =
  localeFor();
