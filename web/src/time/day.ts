// Days and instants as numbers, without time zones (see zone.ts).

export const DAY_MS = 86_400_000;

export type Step = 'day' | 'week' | 'month';

/** Days since 1970-01-01 of 'YYYY-MM-DD'; NaN for an invalid date. */
export function dayNumber(day: string): number {
  const number = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(day) / DAY_MS : NaN;
  // Date.parse accepts 30 February.
  return Number(day.slice(8)) > 28 && !Number.isNaN(number) && dayText(number) !== day ? NaN : number;
}

/** 'YYYY-MM-DD' of a number of days since 1970-01-01. Years 0000 to 9999 only. */
export const dayText = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10);

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

const INSTANT = /^(\d{4}-\d\d-\d\d)T((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(\.\d{1,9})?Z$/;

/**
 * Milliseconds since 1970 of 'YYYY-MM-DDTHH:MM:SS[.fraction]Z'; NaN for anything else. Keeps microseconds as a fraction,
 * unlike `Date.parse`: two batches within a millisecond keep their order.
 */
export function instantMs(text: string): number {
  const [, day, time, fraction = ''] = INSTANT.exec(text) ?? [];
  if (day === undefined || Number.isNaN(dayNumber(day))) return NaN;
  return Date.parse(`${day}T${time}Z`) + Number(`0${fraction}`) * 1000;
}
