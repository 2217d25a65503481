// Texts that several views share.

import type { SeenMark } from '../data/api';
import { personName } from '../data/batch';
import type { Failure } from '../data/errors';
import { isSearch } from '../data/filter';
import { dayCount, plusDays, type Period } from '../data/period';
import { parseSearchDate } from '../data/search-date';
import type { View } from '../data/url';
import { LOW_RATE, type Range, type Reason } from '../data/usual';
import { dayText, instantMs } from '../time/day';
import { dayOf } from '../time/zone';
import { seen } from '../seen.svelte';
import { text } from '../text';
import { date, percent, shortDate, time, weekday } from '../text/format';

export const formatPeriod = (period: Period): string => period.from === period.to ? weekday(period.from) : `${date(period.from)} – ${date(period.to)}`;

/** "Today", "Yesterday", or the date. */
export const dayName = (day: string, today: string): string => day === today ? text.layout.today : day === plusDays(today, -1) ? text.today.yesterday : recentDate(day, today);

/** The date, with its year only if it is another one. */
export const recentDate = (day: string, today: string): string => day.slice(0, 4) === today.slice(0, 4) ? shortDate(day) : date(day);

/** "Today, 08:12", "Yesterday, 08:12", or with the date. */
export const momentText = (instant: string, today: string, label = dayName): string => `${label(dayOf(instant), today)}, ${time(instantMs(instant))}`;

/** "New since yesterday", or since Friday. */
export const sinceText = ({ from }: Period, today: string): string => from === plusDays(today, -1) ? text.today.sinceYesterday : text.today.sinceFriday;

/** "Seen by Anna, 16 Nov, 07:12", or nothing. */
export const seenText = ({ is_seen, at, by }: SeenMark, today: string): string => (is_seen ? text.today.seenBy(by, savedText(at, today)) : '');

/** When something was saved. A change that has no time is sent at once, unless there is no connection. */
function savedText(at: string, today: string): string {
  if (at !== '') return momentText(at, today, recentDate);
  return seen.isUnsaved ? text.today.unsaved : '';
}

/** "“resown” – Jan, 16 Nov, 07:12". */
export const noteText = ({ at, by, note }: SeenMark, today: string): string => joined(' – ', text.quoted(note), joined(', ', by, savedText(at, today)));

/** "Anna: resown", and the comment of the scan. */
export const commentText = (notes: readonly SeenMark[], comment: string | null): string => joined(' · ', ...notes.map(({ by, note }) => joined(': ', by, note)), comment ?? '');

/** The texts that are not empty. */
export const joined = (separator: string, ...texts: string[]): string => texts.filter((text) => text !== '').join(separator);

export const cropLabel = (crop: string | null): string => crop ?? text.cropNotRecorded;

/** "usually 76–95%", or why a rate is unusual without a range. */
export const usuallyText = (range: Range | null): string => range === null ? text.today.lowRate(percent(LOW_RATE, 0)) : text.today.usually(text.range(range.low, range.high));

/** The period, its length, and the filters: a printed page has no other sign of them. */
export function describeView({ period, filter }: View): string {
  const parts = [
    `${formatPeriod(period)}, ${text.period.days(dayCount(period))}`,
    ...filter.crops.map((name) => cropLabel(name || null)),
    ...(filter.warnings === 'all' ? [] : [text.filters.shown[filter.warnings]]),
    ...filter.people.map(personName),
    ...(isSearch(filter) ? [`${text.quoted(filter.text.trim())}${searchedDays(filter.text, period)}`] : []),
  ];
  return parts.join(' · ');
}

/** " (16 Nov – 22 Nov)" for "last week". */
function searchedDays(searched: string, period: Period): string {
  const days = Array.from(parseSearchDate(searched)?.days ?? [], dayText).filter((day) => day >= period.from && day <= period.to);
  return days.length === 0 || dayCount({ from: days[0]!, to: days.at(-1)! }) !== days.length ? '' : ` (${formatPeriod({ from: days[0]!, to: days.at(-1)! })})`;
}

const DAYS_AROUND = 45;

/** About ninety days with the given one in the middle, or near the end when it is recent. */
export function periodAround(day: string, today: string): Period {
  const last = plusDays(day, DAYS_AROUND);
  return { from: plusDays(day, -DAYS_AROUND), to: last > today && day <= today ? today : last };
}

/** Why a batch is unusual. */
export function reasonText(reason: Reason): string {
  if (reason.kind === 'warning') return reason.isMeasured ? text.reasons.warning : text.reasons.warningOnly;
  const { kind, value, range } = reason;
  return `${percent(value, 0)} ${text.today.reasons[kind]}, ${usuallyText(range)}.`;
}

/** "41%", "41–64%" or "71% usable": the unusual values of the same kind as the first. */
export function figuresText(reasons: readonly Reason[]): string {
  const { kind } = reasons[0]!;
  if (kind === 'warning') return text.table.warning;
  const values = reasons.flatMap((reason) => (reason.kind === kind && 'value' in reason ? [Math.round(reason.value)] : []));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const rates = low === high ? percent(low, 0) : text.range(low, high);
  return kind === 'low-germination' ? rates : `${rates} ${text.today.reasons[kind]}`;
}

/** Why a sign-in failed. */
export function signInError(failure: Failure): string {
  if (failure.kind === 'rejected') return text.signIn.rejected(failure.detail);
  return text.signIn.errors[failure.kind === 'signed-out' ? 'wrong-credentials' : failure.kind];
}
