// Days and instants as numbers. All calendar arithmetic is here, without `Date` and without time zones (see zone.ts).

export const DAY_MS = 86_400_000;

export type Step = 'day' | 'week' | 'month';

/** Days since 1970-01-01 of 'YYYY-MM-DD'; NaN for an invalid date. */
export function dayNumber(day: string): number {
  return day.length === 10 ? dayAtStart(day) : NaN;
}

/** 'YYYY-MM-DD' of a number of days since 1970-01-01. Years 0000 to 9999 only. */
export function dayText(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** The Monday of a day's week. */
export function weekStart(day: number): number {
  // 1970-01-01 was a Thursday, three days after its Monday.
  return Math.floor((day + 3) / 7) * 7 - 3;
}

/** The ISO week of a day. */
export function weekNumber(day: number): number {
  const thursday = weekStart(day) + 3;
  return Math.floor((thursday - dayNumber(`${dayText(thursday).slice(0, 4)}-01-01`)) / 7) + 1;
}

/**
 * Milliseconds since 1970 of 'YYYY-MM-DDTHH:MM:SS[.fraction]Z'; NaN for anything else. Keeps microseconds as a fraction,
 * unlike `Date.parse`: two batches within a millisecond keep their order.
 */
export function instantMs(text: string): number {
  const day = dayAtStart(text);
  const end = text.length - 1;
  if (end < 19 || text.charCodeAt(10) !== CHAR_T || text.charCodeAt(end) !== CHAR_Z) return NaN;
  if (text.charCodeAt(13) !== COLON || text.charCodeAt(16) !== COLON) return NaN;
  const hour = digits(text, 11, 13);
  const minute = digits(text, 14, 16);
  const second = digits(text, 17, 19);
  if (!(hour < 24 && minute < 60 && second < 60)) return NaN;
  return day * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000 + fractionMs(text, end);
}

const CHAR_T = 84;
const CHAR_Z = 90;
const COLON = 58;
const DASH = 45;
const POINT = 46;
const ZERO = 48;

// The service sends at most nanoseconds.
const FRACTION_DIGITS_MAX = 9;

function fractionMs(text: string, end: number): number {
  if (end === 19) return 0;
  const count = end - 20;
  if (text.charCodeAt(19) !== POINT || count < 1 || count > FRACTION_DIGITS_MAX) return NaN;
  return digits(text, 20, end) / 10 ** (count - 3);
}

function dayAtStart(text: string): number {
  if (text.charCodeAt(4) !== DASH || text.charCodeAt(7) !== DASH) return NaN;
  const year = digits(text, 0, 4);
  const month = digits(text, 5, 7);
  const day = digits(text, 8, 10);
  if (!(month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month))) return NaN;
  return civilDay(year, month, day);
}

/** Parses digits; NaN when a character is not a digit. */
function digits(text: string, from: number, to: number): number {
  let value = 0;
  for (let at = from; at < to; at++) {
    const digit = text.charCodeAt(at) - ZERO;
    if (!(digit >= 0 && digit <= 9)) return NaN;
    value = value * 10 + digit;
  }
  return value;
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** Howard Hinnant's days_from_civil: years start in March, so that the leap day comes last. */
function civilDay(year: number, month: number, day: number): number {
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}
