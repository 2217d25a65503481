// The positions of the steps on the time axis, and its labels. In UTC.
import { DAY_MS, dayNumber, dayText, weekNumber, weekStart, type Step } from '../time/day';
import type { SeriesPoint } from '../data/statistics';
import { date, month, shortDate } from '../text/format';
import { dayCount, type Period } from '../data/period';
import { text } from '../text';

/** The first and last day of each step, limited to the period. */
export function spans(points: readonly SeriesPoint[], period: Period): { first: number; last: number }[] {
  const from = dayNumber(period.from);
  const to = dayNumber(period.to);
  return points.map(({ start }, at) => {
    const next = points[at + 1];
    return { first: Math.max(from, dayNumber(start)), last: next === undefined ? to : dayNumber(next.start) - 1 };
  });
}

export const middleMs = (span: { first: number; last: number }): number => ((span.first + span.last + 1) / 2) * DAY_MS;

/** The labels of the steps. The year is omitted if the whole period is in this year. */
export function stepLabels(step: Step, period: Period, today: string): (start: string) => string {
  if (step === 'month') return month;
  const isThisYear = (day: string): boolean => day.slice(0, 4) === today.slice(0, 4);
  const label = isThisYear(period.from) && isThisYear(period.to) ? shortDate : date;
  if (step === 'day') return label;
  return (start) => text.rates.weekOf(weekNumber(dayNumber(start)), label(start));
}

// A label such as "12 Sept" with its margin.
const LABEL_PX = 72;

const MONTH_STEPS = [1, 2, 3, 6, 12, 24, 60, 120];

/** The labelled days: as many as fit, on Mondays or the first of a month. */
export function labelDays(period: Period, widthPx: number): number[] {
  const most = Math.max(2, Math.floor(widthPx / LABEL_PX));
  const length = dayCount(period);
  if (length <= most) return everyDays(period, 1);
  for (const weeks of [1, 2]) if (length / (7 * weeks) <= most && length <= 100) return everyDays(period, 7 * weeks);
  return everyMonths(period, MONTH_STEPS.find((months) => length / (30.4 * months) <= most) ?? 240);
}

export function dayLabel(ms: number, period: Period): string {
  const day = dayText(Math.round(ms / DAY_MS));
  return dayCount(period) > 100 && day.endsWith('-01') ? month(day) : shortDate(day);
}

function everyDays(period: Period, step: number): number[] {
  const first = dayNumber(period.from);
  const start = step === 1 ? first : weekStart(first + 6);
  const found: number[] = [];
  for (let day = start; day <= dayNumber(period.to); day += step) found.push(day * DAY_MS);
  return found;
}

function everyMonths(period: Period, step: number): number[] {
  const found: number[] = [];
  const last = monthNumber(period.to);
  for (let at = Math.ceil(monthNumber(period.from) / step) * step; at <= last; at += step) {
    const day = `${String(Math.floor(at / 12)).padStart(4, '0')}-${String((at % 12) + 1).padStart(2, '0')}-01`;
    if (day >= period.from) found.push(dayNumber(day) * DAY_MS);
  }
  return found;
}

const monthNumber = (day: string): number => Number(day.slice(0, 4)) * 12 + Number(day.slice(5, 7)) - 1;
