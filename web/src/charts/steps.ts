// Where the steps of a series lie on the time axis, and which days of it get a label. UTC throughout.
import { DAY_MS, dayNumber, dayText } from '../data/day';
import type { SeriesPoint, Step } from '../data/figures';
import { date, month, shortDate } from '../data/locale';
import { days, type Window } from '../data/window';

/** The first and last day of each step, cut at the window's ends. */
export function spans(points: readonly SeriesPoint[], window: Window): { first: number; last: number }[] {
  const from = dayNumber(window.from);
  const to = dayNumber(window.to);
  return points.map(({ start }, at) => {
    const next = points[at + 1];
    return { first: Math.max(from, dayNumber(start)), last: next === undefined ? to : dayNumber(next.start) - 1 };
  });
}

/** The middle of a span in ms: a step stands for all of its days. */
export function middleMs(span: { first: number; last: number }): number {
  return ((span.first + span.last + 1) / 2) * DAY_MS;
}

export function startMs(window: Window): number {
  return dayNumber(window.from) * DAY_MS;
}

export function endMs(window: Window): number {
  return (dayNumber(window.to) + 1) * DAY_MS;
}

/** What the steps of a window are called: day, week or month. Only this year goes without saying. */
export function stepNames(step: Step, window: Window, today: string): (start: string) => string {
  const dayName = stepDays(step, window, today);
  return (start) => (step === 'week' ? `Week of ${dayName(start)}` : dayName(start));
}

/** The same without the word for a week, where room is short. */
export function stepDays(step: Step, window: Window, today: string): (start: string) => string {
  if (step === 'month') return month;
  const isThisYear = (day: string): boolean => day.slice(0, 4) === today.slice(0, 4);
  const withYear = !isThisYear(window.from) || !isThisYear(window.to);
  return (start) => (withYear || !isThisYear(start) ? date(start) : shortDate(start));
}

// A label such as "12 Sept" and air around it.
const LABEL_PX = 72;

const MONTH_STEPS = [1, 2, 3, 6, 12, 24, 60, 120];

/** The days that get a label: as many as fit, on days that people think in. */
export function labelDays(window: Window, widthPx: number): number[] {
  const most = Math.max(2, Math.floor(widthPx / LABEL_PX));
  const length = days(window);
  if (length <= most) return everyDays(window, 1);
  // Mondays, as long as weeks are what one counts in.
  for (const weeks of [1, 2]) if (length / (7 * weeks) <= most && length <= 100) return everyDays(window, 7 * weeks);
  return everyMonths(window, MONTH_STEPS.find((months) => length / (30.4 * months) <= most) ?? 240);
}

/** What stands at a labelled day. */
export function dayLabel(ms: number, window: Window): string {
  const day = dayText(Math.round(ms / DAY_MS));
  return days(window) > 100 && day.endsWith('-01') ? month(day) : shortDate(day);
}

function everyDays(window: Window, step: number): number[] {
  const first = dayNumber(window.from);
  const start = step === 1 ? first : Math.ceil((first + 3) / 7) * 7 - 3;
  const found: number[] = [];
  for (let day = start; day <= dayNumber(window.to); day += step) found.push(day * DAY_MS);
  return found;
}

function everyMonths(window: Window, step: number): number[] {
  const found: number[] = [];
  const last = monthNumber(window.to);
  for (let at = Math.ceil(monthNumber(window.from) / step) * step; at <= last; at += step) {
    const day = `${String(Math.floor(at / 12)).padStart(4, '0')}-${String((at % 12) + 1).padStart(2, '0')}-01`;
    if (day >= window.from) found.push(dayNumber(day) * DAY_MS);
  }
  return found;
}

function monthNumber(day: string): number {
  return Number(day.slice(0, 4)) * 12 + Number(day.slice(5, 7)) - 1;
}
