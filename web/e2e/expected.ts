// What the dashboard should display, computed from the API's responses without the dashboard's code.
import type { Batch } from '../src/data/batch';
import type { Period } from '../src/data/period';
import { fetchBatches, type Service } from './service';
import { expect, keyFigures, type Page } from './test';

const DAY_MS = 86_400_000;

export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
export const today = (): string => dayOf(Date.now());
export const plusDays = (day: string, days: number): string => dayOf(Date.parse(day) + days * DAY_MS);
/** The period of a number of days that ends on `to`. */
export const lastDays = (days: number, to = today()): Period => ({ from: plusDays(to, 1 - days), to });
export const dayCount = ({ from, to }: Period): number => (Date.parse(to) - Date.parse(from)) / DAY_MS + 1;
export const query = ({ from, to }: Period): string => `?from=${from}&to=${to}`;

const format = (value: number, options?: Intl.NumberFormatOptions): string =>
  new Intl.NumberFormat('en-GB', options).format(value);
export const count = (n: number): string => format(n);
const PERCENT = { style: 'unit', unit: 'percent' } as const;
const ONE_DIGIT = { minimumFractionDigits: 1, maximumFractionDigits: 1 };

/** The mean germination rate, computed in exact hundredths. */
function germination(batches: Batch[]): number {
  const rates = batches.map((batch) => batch.avg_germination_rate).filter((rate) => rate !== null);
  return rates.reduce((sum, rate) => sum + Number(rate.replace('.', '')), 0) / rates.length / 100;
}

/** Waits until the analysis shows the figures of these batches. */
export async function expectFigures(page: Page, batches: Batch[]): Promise<void> {
  const expected = { Batches: count(batches.length), 'Germination rate': format(germination(batches), { ...PERCENT, ...ONE_DIGIT }) };
  await expect.poll(() => keyFigures(page)).toMatchObject(expected);
}

export async function expectFiguresOf(page: Page, service: Service, period: Period): Promise<void> {
  await expectFigures(page, await fetchBatches(service, period));
}

/** How often each value of a field occurs, most frequent first. Ignores null. */
export function tally(batches: Batch[], field: 'crop_type' | 'scanned_by_email'): [string, number][] {
  const counts = new Map<string, number>();
  for (const { [field]: value } of batches) if (value !== null) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

/** Whether a text that the search looks at matches. */
export function matches({ batch_name, crop_type, comment, scanned_by_email }: Batch, pattern: RegExp): boolean {
  return [batch_name, crop_type, comment, scanned_by_email].some((text) => text !== null && pattern.test(text));
}

/** Parses RFC 4180. */
export function parseCsv(text: string): string[][] {
  const records: string[][] = [[]];
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/gy;
  for (let found = cell.exec(text); found !== null && found.index < text.length; found = cell.exec(text)) {
    records.at(-1)!.push(found[1]?.replaceAll('""', '"') ?? found[2]!);
    if (found[3] === '\r\n') records.push([]);
  }
  return records.filter((record) => record.length > 0);
}
