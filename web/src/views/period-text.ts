// Texts that several views share.

import { personName } from '../data/batch';
import { isSearch } from '../data/filter';
import { date, weekday } from '../data/format';
import { dayNumber, dayText } from '../data/day';
import { dayCount, plusDays, type Period } from '../data/period';
import type { View } from '../data/url';
import { text } from '../text';

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
    ...filter.operators.map(personName),
    ...(isSearch(filter) ? [text.quoted(filter.text.trim())] : []),
  ];
  return parts.join(' · ');
}

const DAYS_AROUND = 45;

/** About ninety days with the given one in the middle, or near the end when it is recent. */
export function periodAround(day: string, today: string): Period {
  const last = dayText(dayNumber(day) + DAYS_AROUND);
  return { from: dayText(dayNumber(day) - DAYS_AROUND), to: last > today && day <= today ? today : last };
}
