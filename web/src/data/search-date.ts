// A date in a search text: "13 Nov", "Nov 13, 2026", "13.11.", "13/11/2026", "2026-11-13", "week 46", "W46", "KW 46",
// "November", "im Nov", "nov 2026", "today", "vorgestern", "Monday", "last week", "diesen Monat", "last 7 days", since any of them, and from one to another.

import { locale } from '../text/language';
import { normalize } from './columns';
import { DAY_MS, dayNumber, dayText, weekStart } from '../time/day';
import { dayNumberAt } from '../time/zone';

export interface SearchDate {
  /** The days it stands for; without a year, those of every year. */
  days: ReadonlySet<number>;
  /** The text without the date. */
  rest: string;
}

const YEAR = String.raw`(?:,?\s*(?<year>20\d\d))?`;
const SHORT_YEAR = String.raw`(?:/(?<year>(?:20)?\d\d))?`;
const SLASHED = [String.raw`(?<day>\d{1,2})/(?<month>\d{1,2})${SHORT_YEAR}`, String.raw`(?<month>\d{1,2})/(?<day>\d{1,2})${SHORT_YEAR}`];
function namesOf(options: Intl.DateTimeFormatOptions, times: number[]): string[] {
  return [locale, 'en', 'de'].flatMap((tag) => {
    const format = new Intl.DateTimeFormat(tag, { ...options, timeZone: 'UTC' });
    return times.map((time) => normalize(format.format(time)));
  });
}
const monthNames = namesOf({ month: 'long' }, Array.from({ length: 12 }, (_, month) => Date.UTC(2026, month)));
// From Thursday, 1970-01-01.
const dayNames = namesOf({ weekday: 'long' }, Array.from({ length: 7 }, (_, day) => day * DAY_MS));
const isMonthFirst = new Intl.DateTimeFormat(locale).formatToParts()[0]!.type === 'month';
const LAST = 'last|past|(?:letzte|vorige|vergangene)[mnrs]?';
const PATTERNS = [
  String.raw`(?:week|wk|w|cw|kw|(?:kalender)?woche)\s?(?<week>\d{1,2})${YEAR}`,
  String.raw`(?<week>\d{1,2})\.\s?(?:kw|(?:kalender)?woche)${YEAR}`,
  String.raw`(?<year>20\d\d)-(?<month>\d{1,2})-(?<day>\d{1,2})`,
  // The other order only if this one is no date.
  ...(isMonthFirst ? SLASHED.toReversed() : SLASHED),
  String.raw`(?<day>\d{1,2})\.\s?(?<month>\d{1,2})(?:\.(?:\s?(?<year>(?:20)?\d\d))?)?`,
  String.raw`(?<day>\d{1,2})\.?\s?(?<month>\p{L}{3,})\.?${YEAR}`,
  String.raw`(?<month>\p{L}{3,})\.?\s(?<day>\d{1,2})${YEAR}`,
  // A month without a year as a whole word: "mar" is more likely the start of a name.
  String.raw`(?<month>\p{L}{3,})\.?,?\s?(?<year>20\d\d)`,
  // Short ones that are no names, and any after "in".
  `(?:i[nm]\\s)?(?<month>${monthNames.join('|')}|feb|sept?|o[kc]t|nov|de[zc])`,
  String.raw`i[nm]\s(?<month>\p{L}{3,})`,
  String.raw`(?<ago>\d{1,2})\s(?:days?|(?<weeks>weeks?))\sago`,
  String.raw`vor\s(?<ago>\d{1,2})\s(?:tag(?:en)?|(?<weeks>wochen?))`,
  String.raw`(?:${LAST})\s(?<count>\d{1,3})\s(?:days|tagen?|(?<weeks>weeks|wochen))`,
  String.raw`(?:(?<last>${LAST})\s|(?:on|this|am|diese[mnrs]?)\s)?(?<weekday>${dayNames.join('|')})`,
  String.raw`(?:this|diese[mnrs]?|(?<last>${LAST}))\s(?<relative>week|woche|month|monat)`,
  '(?<now>today|this morning|heute(?: fruh| morgen)?)|(?<before>(?:the )?day before yesterday|vorgestern)|yesterday|gestern',
].map((pattern) => new RegExp(String.raw`(?<![\p{L}\p{N}]|(?:house|haus) (?=\d{1,2}\s))(?<since>(?:since|seit)\s+)?(?:${pattern})(?![\p{L}\p{N}])`, 'u'));

export function parseSearchDate(text: string): SearchDate | null {
  const searched = normalize(text);
  const full = SHORT_RANGES.reduce((full, [short, long]) => (full === searched ? full.replace(short, long) : full), searched);
  for (const { 0: separator, index } of full.matchAll(/[-–]|\s(?:to|bis)\s/g)) {
    const [start, end] = [parseOne(full.slice(0, index).trimEnd()), parseOne(full.slice(index + separator.length).trimStart())];
    if (start === null || end === null) continue;
    let days = between(start.days, end.days);
    // "Monday to Friday" on a Wednesday.
    if (days.size === 0 && !/\d/.test(full)) days = between(start.days, new Set(Array.from(end.days, (day) => day + 7)));
    return { days, rest: `${start.rest.replace(/\b(?:from|vom|von)\s*$/, '')} ${end.rest}` };
  }
  return parseOne(searched);
}

const TO = String.raw`(\s*[-–]\s*|\s(?:to|bis)\s)`;
/** "1.–5. Nov" is "1 Nov – 5 Nov", "1.–5.11." is "1.11.–5.11.", and "KW 46–48" is "KW 46–KW 48". */
const SHORT_RANGES = [
  [new RegExp(String.raw`(?<![\d.])(\d{1,2})\.?${TO}(\d{1,2}\.?\s?(?!bis)(\p{L}{3,}))`, 'u'), '$1 $4$2$3'],
  [new RegExp(String.raw`(?<![\d.])(\d{1,2})\.?${TO}(\d{1,2}(\.\d{1,2}\.?))`, 'u'), '$1$4$2$3'],
  [new RegExp(String.raw`(\p{L}+\.?\s?)(\d{1,2})${TO}(\d{1,2})(?![\d.])`, 'u'), '$1$2$3$1$4'],
] as const;

// More would be two dates of different years.
const RANGE_DAYS_MAX = 366;

/** From the days of one date to those of another, also without a year. */
function between(starts: ReadonlySet<number>, ends: ReadonlySet<number>): Set<number> {
  const first = [...starts].filter((day) => !starts.has(day - 1));
  return new Set([...ends].flatMap((end) => {
    const start = ends.has(end + 1) ? undefined : first.findLast((day) => day <= end && end - day < RANGE_DAYS_MAX);
    return start === undefined ? [] : Array.from({ length: end - start + 1 }, (_, at) => start + at);
  }));
}

/** `searched` is normalized. */
function parseOne(searched: string): SearchDate | null {
  for (const pattern of PATTERNS) {
    const found = pattern.exec(searched);
    if (found === null) continue;
    const days = found.groups!['since'] === undefined ? daysOf(found.groups!) : daysSince(daysOf(found.groups!));
    if (days.length > 0) return { days: new Set(days), rest: searched.replace(found[0], ' ') };
  }
  return null;
}

const YEARS = Array.from({ length: 100 }, (_, at) => 2000 + at);
const twoDigits = (n: number): string => String(n).padStart(2, '0');

function daysOf({ year, month, day, week, weekday, ago, count, weeks, relative, last, now, before }: Record<string, string | undefined>): number[] {
  const today = dayNumberAt(Date.now());
  if (relative?.startsWith('w')) return sevenDays(weekStart(today) - (last === undefined ? 0 : 7));
  if (relative !== undefined) {
    const firstOfMonth = dayNumber(`${dayText(today).slice(0, 8)}01`);
    [year, month] = dayText(last === undefined ? today : firstOfMonth - 1).split('-');
  }
  if (ago !== undefined) return weeks === undefined ? [today - Number(ago)] : sevenDays(weekStart(today) - 7 * Number(ago));
  if (count !== undefined) return daysSince([today - Number(count) * (weeks === undefined ? 1 : 7) + 1]);
  const years = year === undefined ? YEARS : [2000 + Number(year.slice(-2))];
  if (week !== undefined) return daysOfWeek(years, Number(week));
  if (weekday !== undefined) return [lastDay(dayNames.indexOf(weekday) % 7, last === undefined ? today : today - 1)];
  if (month === undefined) return [today - (now !== undefined ? 0 : before !== undefined ? 2 : 1)];
  const daysOfMonth = day === undefined ? Array.from({ length: 31 }, (_, at) => at + 1) : [Number(day)];
  const prefixes = years.map((year) => `${year}-${twoDigits(monthNumber(month))}`);
  const days = prefixes.flatMap((prefix) => daysOfMonth.map((day) => dayNumber(`${prefix}-${twoDigits(day)}`)));
  return days.filter((day) => !Number.isNaN(day));
}

const sevenDays = (first: number): number[] => Array.from({ length: 7 }, (_, at) => first + at);

/** From the first of the latest days until today: from the Monday of the latest week 46, for example. */
function daysSince(days: number[]): number[] {
  const today = dayNumberAt(Date.now());
  const first = days.findLast((day, at) => day <= today && days[at - 1] !== day - 1) ?? today + 1;
  return Array.from({ length: today - first + 1 }, (_, at) => first + at);
}

/** The last such day until one; `weekday` counts from Thursday. */
const lastDay = (weekday: number, until: number): number => until - ((((until - weekday) % 7) + 7) % 7);

/** The days of an ISO week: it belongs to the year of its Thursday, and week 1 contains 4 January. */
function daysOfWeek(years: number[], week: number): number[] {
  return years.flatMap((year) => {
    const january4 = dayNumber(`${year}-01-04`);
    const monday = weekStart(january4) + (week - 1) * 7;
    const isOfYear = dayText(monday + 3).startsWith(`${year}`);
    return isOfYear ? sevenDays(monday) : [];
  });
}

/** From 1; 0 for a word that is no month, or not the start of one. */
function monthNumber(text: string): number {
  if (/^\d/.test(text)) return Number(text);
  return (monthNames.findIndex((name) => name.startsWith(text)) % 12) + 1;
}
