// Rows as a CSV file for spreadsheets: RFC 4180, decimals exactly as the service sent them. Knows nothing of
// downloads or file names.

import { fieldNamed, type Batch } from './batch';
import type { Columns } from './columns';

/** The rows in the order given, the fields as columns in the order given, field names as the header. */
export function csv(columns: Columns, rows: Int32Array, fields: (keyof Batch)[]): Blob {
  const cells = fields.map((field) => ({ field, isText: isText(field) }));
  const blocks: string[] = [BOM + lineOf(fields)];
  for (let from = 0; from < rows.length; from += BLOCK_ROWS) {
    let block = '';
    for (const row of rows.subarray(from, from + BLOCK_ROWS)) {
      const batch = columns.batch(row);
      block += lineOf(cells.map(({ field, isText }) => cellOf(batch[field], isText)));
    }
    blocks.push(block);
  }
  return new Blob(blocks, { type: 'text/csv;charset=utf-8' });
}

// A part for each row makes a Blob slow, and one text of all rows may grow past what a string can hold.
const BLOCK_ROWS = 1_000;

// Without it, Excel reads UTF-8 as the machine's old code page and breaks every é.
const BOM = '\uFEFF';

function lineOf(cells: readonly string[]): string {
  return `${cells.join(',')}\r\n`;
}

/** An empty cell is null, as in the service's own imports. */
function cellOf(value: Batch[keyof Batch], isText: boolean): string {
  if (value === null) return '';
  return quoted(isText ? inert(value as string) : String(value));
}

function isText(field: keyof Batch): boolean {
  const kind = fieldNamed(field)?.kind;
  return kind === 'text' || kind === 'link';
}

/** A text that a spreadsheet would run as a formula gets an apostrophe in front. Numbers do not: -1.50 is a number. */
function inert(text: string): string {
  return /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
}

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
