// Texts that several views share.

import { weekLabel } from '../charts/time-axis';
import { personName } from '../data/batch';
import type { Failure } from '../data/errors';
import { isSearch } from '../data/filter';
import type { Range, Reason } from '../data/outliers';
import { dayCount, plusDays, type Period } from '../data/period';
import type { View } from '../data/url';
import { text } from '../text';
import { date, decimal, percent, weekday } from '../text/format';

export function formatPeriod(period: Period): string {
  return period.from === period.to ? weekday(period.from) : `${date(period.from)} – ${date(period.to)}`;
}

/** "Today", "Yesterday", or the date. */
export function dayLabel(day: string, today: string): string {
  if (day === today) return text.period.presets['1d'];
  return day === plusDays(today, -1) ? text.period.presets.yesterday : date(day);
}

/** The period, its length, and the filters: a printed page has no other sign of them. */
export function describeView({ period, filter }: View): string {
  const { unusual, withWarnings, withoutWarnings } = text.filters;
  const warnings = { all: [], with: [withWarnings], without: [withoutWarnings], unusual: [unusual] }[filter.warnings];
  const parts = [
    `${formatPeriod(period)}, ${text.period.days(dayCount(period))}`,
    ...filter.crops.map((name) => name || text.cropNotRecorded),
    ...warnings,
    ...filter.people.map(personName),
    ...(isSearch(filter) ? [text.quoted(filter.text.trim())] : []),
  ];
  return parts.join(' · ');
}

const DAYS_AROUND = 45;

/** About ninety days with the given one in the middle, or near the end when it is recent. */
export function periodAround(day: string, today: string): Period {
  const last = plusDays(day, DAYS_AROUND);
  return { from: plusDays(day, -DAYS_AROUND), to: last > today && day <= today ? today : last };
}

/** Whether a value is in the usual range, below or above, with the range. */
export function comparisonText(value: number, range: Range, show = (n: number) => percent(n, 0)): string {
  const { low, high } = range;
  const usual = text.batch.to(show(low), show(high));
  const rounded = Math.round(value);
  if (rounded >= low && rounded <= high) return text.batch.within(usual);
  return text.batch.outside(rounded < low, usual);
}

/** How far a rate is from what is usual; null if that is not known. */
export function fromUsualText(difference: number | null): string | null {
  return difference === null ? null : text.figures.fromUsual(Math.round(difference * 10) / 10);
}

/** Since when a crop is below what is usual. */
export function sinceText({ start, mean, usual }: { start: string; mean: number; usual: number }): string {
  const points = Math.round(usual * 10) - Math.round(mean * 10);
  return text.rates.below(percent(mean), weekLabel(start, date(start)), decimal(points / 10, 1), percent(usual));
}

/** Why a batch is unusual. */
export function reasonText(reason: Reason): string {
  if (reason.kind === 'warning') return reason.isMeasured ? text.outliers.warning : text.outliers.warningOnly;
  const { kind, value, range } = reason;
  const usual = range === null ? '' : text.outliers.range(text.batch.to(percent(range.low, 0), percent(range.high, 0)));
  return `${text.outliers.reasons[kind](value)}${usual}.`;
}

/** Why a sign-in failed. */
export function signInError(failure: Failure): string {
  if (failure.kind === 'rejected') return text.signIn.rejected(failure.detail);
  return text.signIn.errors[failure.kind === 'signed-out' ? 'wrong-credentials' : failure.kind];
}
