// Rows as a CSV file for spreadsheets, in the form that they expect in the reader's language: with a decimal comma, cells
// are separated by semicolons. Headings and times are those of the screen.

import { text } from '../text';
import type { Batch } from './batch';
import type { ExportColumn } from './export-columns';
import { clockMs } from '../time/zone';

export function csv(columns: readonly ExportColumn[], rows: Int32Array, locale: string): Blob {
  const decimalPoint = new Intl.NumberFormat(locale).format(1.5).includes(',') ? ',' : '.';
  const toLine = (cells: readonly string[]): string => `${cells.join(decimalPoint === ',' ? ';' : ',')}\r\n`;
  const blocks: string[] = [BOM + toLine(columns.map(({ head }) => quote(head)))];
  for (let from = 0; from < rows.length; from += BLOCK_ROWS) {
    let block = '';
    for (const row of rows.subarray(from, from + BLOCK_ROWS)) {
      block += toLine(columns.map(({ kind, value }) => toCell(value(row), kind, decimalPoint)));
    }
    blocks.push(block);
  }
  return new Blob(blocks, { type: 'text/csv;charset=utf-8' });
}

// A Blob of one part per row is slow, and a single string may become too long.
const BLOCK_ROWS = 1_000;

// Without it, Excel does not read the file as UTF-8.
const BOM = '\uFEFF';

function toCell(value: Batch[keyof Batch], kind: string, decimalPoint: string): string {
  if (value === null) return '';
  if (kind === 'decimal' || kind === 'percent') return (value as string).replace('.', decimalPoint);
  if (kind === 'flag') return value === true ? text.batch.yes : text.batch.no;
  if (kind === 'instant') return clockText(value as string);
  return quote(kind === 'text' || kind === 'link' ? escapeFormula(value as string) : String(value));
}

/** "2026-03-02 11:20:30", with the fraction of the second if there is one: an import must read back the same instant. */
function clockText(instant: string): string {
  const [fraction = ''] = /\.\d+/.exec(instant) ?? [];
  return new Date(clockMs(instant)).toISOString().slice(0, 19).replace('T', ' ') + fraction;
}

/** Prefixes texts that a spreadsheet would run as a formula. Numbers are safe: -1.50 is a number. */
const escapeFormula = (text: string): string => /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;

const quote = (text: string): string => /[",;\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
