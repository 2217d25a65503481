// What the dashboard should say, worked out anew from the interface's own answers: in exact hundredths, with none of
// the dashboard's code. Knows nothing of pages.
import { READER } from './harness.mjs';

const DAY_MS = 86_400_000;

export const today = () => dayOf(Date.now());
export const dayOf = (ms) => new Date(ms).toISOString().slice(0, 10);
export const plusDays = (day, days) => dayOf(Date.parse(day) + days * DAY_MS);
/** The span of so many days that ends with `to`. */
export const lastDays = (days, to = today()) => ({ from: plusDays(to, 1 - days), to });
export const windowBefore = ({ from, to }) =>
  lastDays((Date.parse(to) - Date.parse(from)) / DAY_MS + 1, plusDays(from, -1));

const number = (options) => new Intl.NumberFormat(READER.locale, options);
export const count = (n) => number().format(n);
export const percent = (n) =>
  number({ style: 'unit', unit: 'percent', minimumFractionDigits: 1, maximumFractionDigits: 1 }).format(n);

const total = (batches) => batches.reduce((sum, batch) => sum + batch.number_of_images, 0);

/** The mean germination rate of the batches that have one. */
export function germination(batches) {
  const rates = batches.map((batch) => batch.avg_germination_rate).filter((rate) => rate !== null);
  return rates.reduce((hundredths, rate) => hundredths + Number(rate.replace('.', '')), 0) / rates.length / 100;
}

/** Batches, images and mean germination rate as the overview writes them. */
export function headline(batches) {
  return { batches: count(batches.length), images: count(total(batches)), germination: percent(germination(batches)) };
}

/** What the overview writes about the window before: counts in percent, the rate in points. */
export function changes(now, before) {
  const signed = (value, options) =>
    number({ ...options, signDisplay: 'exceptZero' })
      .format(value)
      .replace('-', '\u2212');
  const worded = (text, unit) => (/[1-9]/.test(text) ? text + unit : 'unchanged');
  const growth = (a, b) =>
    worded(signed((a / b - 1) * 100, { style: 'unit', unit: 'percent', maximumFractionDigits: 0 }), '');
  const points = signed(germination(now) - germination(before), { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  const was = headline(before);
  return {
    batches: `${growth(now.length, before.length)} from ${was.batches}`,
    images: `${growth(total(now), total(before))} from ${was.images}`,
    germination: `${worded(points, ' points')} from ${was.germination}`,
  };
}

/** How often each value of a field occurs, the most frequent first. */
export function tally(batches, field) {
  const counts = new Map();
  for (const batch of batches) counts.set(batch[field], (counts.get(batch[field]) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

/** Whether a word is in one of the texts that the search looks through. */
export function holds({ batch_name, batch_id, crop_type, comment, scanned_by_email }, word) {
  return [batch_name, batch_id, crop_type, comment, scanned_by_email].some((text) =>
    text?.toLowerCase().includes(word),
  );
}

/** The records of an RFC 4180 text. */
export function parseCsv(text) {
  const records = [[]];
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/gy;
  for (let found = cell.exec(text); found !== null && found.index < text.length; found = cell.exec(text)) {
    records.at(-1).push(found[1]?.replaceAll('""', '"') ?? found[2]);
    if (found[3] === '\r\n') records.push([]);
  }
  return records.filter((record) => record.length > 0);
}
