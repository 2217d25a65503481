// Sentences that more than one view says. Plain, short, and the same everywhere.
import type { Measure } from '../data/figures';
import { count, date, percent } from '../data/locale';
import type { Trouble } from '../data/service';
import type { Reason } from '../data/usual';
import { dayNumber, dayText } from '../data/day';
import { days, type Window } from '../data/window';

export const MEASURE_NAMES: Record<Measure, string> = { germination: 'Germination rate', usable: 'Usable rate' };

export function troubleAtSignIn(trouble: Trouble): string {
  switch (trouble.kind) {
    case 'wrong-credentials':
      return 'The client id and the secret do not match. Check both and try again.';
    case 'unavailable':
      return 'The service is not available at the moment. Try again in a few seconds.';
    case 'offline':
      return 'The service cannot be reached. Check the connection and try again.';
    case 'signed-out':
      return 'The sign-in has expired. Sign in again.';
    case 'refused':
      return `The service refused the sign-in: ${trouble.detail}`;
  }
}

/** A link that signs in failed while somebody is signed in. */
export function troubleWithLink(trouble: Trouble): string {
  return `The sign-in link did not work: ${reasonOf(trouble)}.`;
}

function reasonOf(trouble: Trouble): string {
  switch (trouble.kind) {
    case 'wrong-credentials':
    case 'signed-out':
      return 'the client id and the secret do not match';
    case 'unavailable':
      return 'the service is not available at the moment';
    case 'offline':
      return 'the service cannot be reached';
    case 'refused':
      return `the service refused it (${trouble.detail})`;
  }
}

export function windowInWords(window: Window): string {
  return window.from === window.to ? date(window.from) : `${date(window.from)} – ${date(window.to)}`;
}

/** When, as a part of a sentence. */
export function windowInSentence(window: Window): string {
  return window.from === window.to ? `on ${date(window.from)}` : `from ${date(window.from)} to ${date(window.to)}`;
}

export function daysInWords(window: Window): string {
  const length = days(window);
  return length === 1 ? '1 day' : `${count(length)} days`;
}

const DAYS_AROUND = 45;

/** Some ninety days with the given one in their middle, or at their end when it is recent. */
export function windowAround(day: string, today: string): Window {
  const last = dayText(dayNumber(day) + DAYS_AROUND);
  return { from: dayText(dayNumber(day) - DAYS_AROUND), to: last > today && day <= today ? today : last };
}

/** Why a batch stands out, as a sentence. */
export function reasonInWords(reason: Reason): string {
  switch (reason.kind) {
    case 'low-germination':
      return `${reason.value === 0 ? 'Nothing' : `Only ${percent(reason.value)}`} germinated${
        reason.usual === null ? '' : `, where ${rangeInWords(reason.usual)} is usual`
      }.`;
    case 'high-variation':
      return `The seedlings vary in size by ${percent(reason.value)}, where ${rangeInWords(reason.usual)} is usual.`;
    case 'warning':
      return 'The scanner gave a warning.';
  }
}

function rangeInWords(range: { low: number; high: number }): string {
  return `${percent(range.low, 0)} to ${percent(range.high, 0)}`;
}
