// The time zone of days and times: the reader's.
import { DAY_MS, dayText, instantMs } from './day';

export const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();

/** Such as 'Europe/Berlin (UTC+1)', or 'UTC'. */
export function zoneLabel(nowMs: number): string {
  const minutes = offsetMs(nowMs) / 60_000;
  if (minutes === 0) return timeZone;
  const sign = minutes < 0 ? '−' : '+';
  const hours = Math.floor(Math.abs(minutes) / 60);
  const rest = Math.abs(minutes) % 60;
  return `${timeZone.replaceAll('_', ' ')} (UTC${sign}${hours}${rest === 0 ? '' : `:${String(rest).padStart(2, '0')}`})`;
}

/** The number of the day of a timestamp, since 1970-01-01. */
export const dayNumberAt = (ms: number): number => Math.floor((ms + offsetMs(ms)) / DAY_MS);

/** The day of a timestamp, 'YYYY-MM-DD'. */
export const dayAt = (ms: number): string => dayText(dayNumberAt(ms));

/** The day of an instant as the service sends it. */
export const dayOf = (instant: string): string => dayAt(instantMs(instant));

/** When a day starts, in ms; the day is its number since 1970-01-01. */
export function dayStartMs(day: number): number {
  const utc = day * DAY_MS;
  // Twice: the clocks may change between the two midnights.
  return utc - offsetMs(utc - offsetMs(utc));
}

/** The reading of the reader's clock, in ms as if it were UTC. */
export function clockMs(instant: string): number {
  const ms = instantMs(instant);
  return ms + offsetMs(ms);
}

const offsetMs = (ms: number): number => -new Date(ms).getTimezoneOffset() * 60_000;
