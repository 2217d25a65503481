// Rows as a CSV file for spreadsheets: RFC 4180, decimals exactly as the service sent them.

import { findField, type Batch } from './batch';
import type { Columns } from './columns';

export function csv(columns: Columns, rows: Int32Array, fields: (keyof Batch)[]): Blob {
  const cells = fields.map((field) => ({ field, isText: isText(field) }));
  const blocks: string[] = [BOM + toLine(fields)];
  for (let from = 0; from < rows.length; from += BLOCK_ROWS) {
    let block = '';
    for (const row of rows.subarray(from, from + BLOCK_ROWS)) {
      const batch = columns.batch(row);
      block += toLine(cells.map(({ field, isText }) => toCell(batch[field], isText)));
    }
    blocks.push(block);
  }
  return new Blob(blocks, { type: 'text/csv;charset=utf-8' });
}

// A Blob of one part per row is slow, and a single string may become too long.
const BLOCK_ROWS = 1_000;

// Without it, Excel does not read the file as UTF-8.
const BOM = '\uFEFF';

function toLine(cells: readonly string[]): string {
  return `${cells.join(',')}\r\n`;
}

/** Null is an empty cell, as in the service's CSV import. */
function toCell(value: Batch[keyof Batch], isText: boolean): string {
  if (value === null) return '';
  return quote(isText ? escapeFormula(value as string) : String(value));
}

function isText(field: keyof Batch): boolean {
  const kind = findField(field)?.kind;
  return kind === 'text' || kind === 'link';
}

/** Prefixes texts that a spreadsheet would run as a formula. Numbers are safe: -1.50 is a number. */
function escapeFormula(text: string): string {
  return /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
}

function quote(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
