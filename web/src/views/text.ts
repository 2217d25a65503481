// Texts that several views share.

import type { Failure } from '../data/api';
import { dayNumber, dayText } from '../data/day';
import { count, date, percent } from '../data/format';
import type { Reason } from '../data/outliers';
import { dayCount, type Period } from '../data/period';
import type { Measure } from '../data/statistics';

export const MEASURE_NAMES: Record<Measure, string> = { germination: 'Germination rate', usable: 'Usable rate' };

export function signInErrorText(failure: Failure): string {
  switch (failure.kind) {
    case 'wrong-credentials':
    case 'signed-out':
      return 'Wrong client ID or secret. Check both and try again.';
    case 'unavailable':
      return 'The service is unavailable. Try again in a few seconds.';
    case 'offline':
      return 'The service is unreachable. Check your connection and try again.';
    case 'rejected':
      return `The service rejected the sign-in: ${failure.detail}`;
  }
}

export function formatPeriod(period: Period): string {
  return period.from === period.to ? date(period.from) : `${date(period.from)} – ${date(period.to)}`;
}

/** As part of a sentence. */
export function periodPhrase(period: Period): string {
  return period.from === period.to ? `on ${date(period.from)}` : `from ${date(period.from)} to ${date(period.to)}`;
}

export function formatDayCount(period: Period): string {
  const length = dayCount(period);
  return length === 1 ? '1 day' : `${count(length)} days`;
}

const DAYS_AROUND = 45;

/** About ninety days with the given one in the middle, or near the end when it is recent. */
export function periodAround(day: string, today: string): Period {
  const last = dayText(dayNumber(day) + DAYS_AROUND);
  return { from: dayText(dayNumber(day) - DAYS_AROUND), to: last > today && day <= today ? today : last };
}

/** Why a batch is an outlier. */
export function reasonText(reason: Reason): string {
  switch (reason.kind) {
    case 'low-germination':
      return `${reason.value === 0 ? 'Nothing' : `Only ${percent(reason.value)}`} germinated${
        reason.typical === null ? '' : ` (typical: ${rangeText(reason.typical)})`
      }.`;
    case 'high-variation':
      return `Seedling size varies by ${percent(reason.value)} (typical: ${rangeText(reason.typical)}).`;
    case 'warning':
      return 'Scanner warning.';
  }
}

function rangeText(range: { low: number; high: number }): string {
  return `${percent(range.low, 0)} to ${percent(range.high, 0)}`;
}
