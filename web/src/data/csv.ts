// Rows as a CSV file for spreadsheets, in the form that they expect in the reader's language: with a decimal comma, cells
// are separated by semicolons. Headings and times are those of the screen.

import { text } from '../text';
import { findField, type Batch } from './batch';
import type { Columns } from './columns';
import { exportHead } from './export-head';
import { clockMs } from './zone';

/** `reasons` says why batches are unusual, by row. */
export function csv(
  columns: Columns,
  rows: Int32Array,
  fields: (keyof Batch)[],
  locale: string,
  reasons: ReadonlyMap<number, string> = new Map(),
): Blob {
  const style = styleFor(locale);
  const toLine = (cells: readonly string[]): string => `${cells.join(style.separator)}\r\n`;
  const kinds = fields.map((field) => ({ field, kind: findField(field)?.kind }));
  const hasReasons = reasons.size > 0;
  const heads = [...fields.map((field) => exportHead(findField(field)!)), ...(hasReasons ? [text.outliers.why] : [])];
  const blocks: string[] = [BOM + toLine(heads.map(quote))];
  for (let from = 0; from < rows.length; from += BLOCK_ROWS) {
    let block = '';
    for (const row of rows.subarray(from, from + BLOCK_ROWS)) {
      const batch = columns.batch(row);
      const cells = kinds.map(({ field, kind }) => toCell(batch[field], kind, style));
      block += toLine(hasReasons ? [...cells, quote(reasons.get(row) ?? '')] : cells);
    }
    blocks.push(block);
  }
  return new Blob(blocks, { type: 'text/csv;charset=utf-8' });
}

interface Style {
  separator: ',' | ';';
  decimalPoint: '.' | ',';
}

function styleFor(locale: string): Style {
  const hasComma = new Intl.NumberFormat(locale).format(1.5).includes(',');
  return hasComma ? { separator: ';', decimalPoint: ',' } : { separator: ',', decimalPoint: '.' };
}

// A Blob of one part per row is slow, and a single string may become too long.
const BLOCK_ROWS = 1_000;

// Without it, Excel does not read the file as UTF-8.
const BOM = '\uFEFF';

function toCell(value: Batch[keyof Batch], kind: string | undefined, style: Style): string {
  if (value === null) return '';
  if (kind === 'decimal' || kind === 'percent') return (value as string).replace('.', style.decimalPoint);
  if (kind === 'flag') return value === true ? text.batch.yes : text.batch.no;
  if (kind === 'instant') return new Date(clockMs(value as string)).toISOString().slice(0, 19).replace('T', ' ');
  return quote(kind === 'text' || kind === 'link' ? escapeFormula(value as string) : String(value));
}

/** Prefixes texts that a spreadsheet would run as a formula. Numbers are safe: -1.50 is a number. */
function escapeFormula(text: string): string {
  return /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
}

function quote(text: string): string {
  return /[",;\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
