// Rows as an Excel workbook: typed cells, the headings of the screen, times of the reader's zone.

import { strToU8, Zip, ZipDeflate } from 'fflate';
import { text } from '../text';
import type { Batch, FieldKind } from './batch';
import { DAY_MS } from '../time/day';
import type { ExportColumn } from './export-columns';
import { clockMs } from '../time/zone';

// A limit of Excel.
const TEXT_CHARS_MAX = 32_767;
// A comment may be longer than a screen is wide.
const WIDTH_CHARS_MAX = 50;
// Rows that are joined to one string at a time.
const BLOCK_ROWS = 1_000;
// Indices in XFS.
const STYLE = { text: 0, head: 1, date: 2, twoDigits: 3 };
// 1970-01-01 as Excel counts days.
const EPOCH_DAY = 25_569;

export function xlsx(columns: readonly ExportColumn[], rows: Int32Array, title: string): Blob {
  const files: [string, Iterable<string>][] = [
    ['[Content_Types].xml', [CONTENT_TYPES]],
    ['_rels/.rels', [RELATIONS]],
    ['xl/workbook.xml', [workbook(title)]],
    ['xl/_rels/workbook.xml.rels', [WORKBOOK_RELATIONS]],
    ['xl/styles.xml', [STYLES]],
    ['xl/worksheets/sheet1.xml', sheet(columns, rows)],
  ];
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const zip = new Zip((_error, part) => parts.push(part as Uint8Array<ArrayBuffer>));
  for (const [name, texts] of files) {
    const file = new ZipDeflate(name);
    zip.add(file);
    // Piece by piece: the sheet may be too long for one string.
    for (const text of texts) file.push(strToU8(text));
    file.push(new Uint8Array(), true);
  }
  zip.end();
  return new Blob(parts, { type: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet' });
}

function* sheet(columns: readonly ExportColumn[], rows: Int32Array): Generator<string> {
  const widths = columns.map((column) => widthOf(column, rows.subarray(0, BLOCK_ROWS)));
  const cols = widths.map((width, at) => `<col min="${at + 1}" max="${at + 1}" width="${width}" customWidth="1"/>`);
  yield `${HEADER}<worksheet xmlns="${MAIN}"><sheetPr><pageSetUpPr fitToPage="1"/></sheetPr><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><cols>${cols.join('')}</cols><sheetData>`;
  yield `<row>${columns.map(({ head }) => textCell(head, STYLE.head)).join('')}</row>`;
  for (let from = 0; from < rows.length; from += BLOCK_ROWS) {
    let block = '';
    for (const row of rows.subarray(from, from + BLOCK_ROWS)) {
      block += `<row>${columns.map(({ kind, value }) => cell(kind, value(row))).join('')}</row>`;
    }
    yield block;
  }
  yield `</sheetData><autoFilter ref="A1:${columnName(columns.length)}${rows.length + 1}"/><pageSetup orientation="landscape" fitToHeight="0"/></worksheet>`;
}

/** Wide enough for the words of the heading, with the filter arrow, and for the first values; in characters. */
function widthOf({ head, value }: ExportColumn, rows: Int32Array): number {
  let chars = Math.max(...head.split(' ').map(({ length }) => length)) + 3;
  for (const row of rows) chars = Math.max(chars, String(value(row) ?? '').length);
  return Math.min(chars, WIDTH_CHARS_MAX) + 2;
}

/** A to Z: there are fewer fields. */
const columnName = (column: number): string => String.fromCharCode(64 + column);

function cell(kind: FieldKind, value: Batch[keyof Batch]): string {
  if (value === null) return '<c/>';
  switch (kind) {
    case 'integer':
      return `<c><v>${value}</v></c>`;
    case 'decimal':
    case 'percent':
      return `<c s="${STYLE.twoDigits}"><v>${value}</v></c>`;
    case 'instant': {
      const day = clockMs(value as string) / DAY_MS + EPOCH_DAY;
      // Excel has no dates before 1900.
      return day < 1 ? textCell(value as string) : `<c s="${STYLE.date}"><v>${day}</v></c>`;
    }
    case 'flag':
      return textCell(value === true ? text.batch.yes : text.batch.no);
    case 'text':
    case 'link':
      return textCell(value as string);
  }
}

const textCell = (text: string, style = STYLE.text): string => `<c t="inlineStr" s="${style}"><is><t xml:space="preserve">${escape(text.slice(0, TEXT_CHARS_MAX))}</t></is></c>`;

/** Characters that XML lacks are written as _x0001_, and a text that looks like that starts with an escaped _. */
function escape(text: string): string {
  return text
    .replace(/_(?=x[0-9A-Fa-f]{4}_)/g, '_x005F_')
    .replace(/[&<>]/g, (found) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[found]!)
    .replace(
      // eslint-disable-next-line no-control-regex
      /[\u0000-\u0008\u000B-\u001F\uFFFE\uFFFF]|\p{Surrogate}/gu,
      (found) => `_x${found.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}_`,
    );
}

const HEADER = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const MAIN = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';
const PACKAGE = 'http://schemas.openxmlformats.org/package/2006';
const OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
const TYPE = 'application/vnd.openxmlformats-officedocument.spreadsheetml';

const CONTENT_TYPES = `${HEADER}<Types xmlns="${PACKAGE}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="${TYPE}.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="${TYPE}.worksheet+xml"/><Override PartName="/xl/styles.xml" ContentType="${TYPE}.styles+xml"/></Types>`;
const RELATIONS = `${HEADER}<Relationships xmlns="${PACKAGE}/relationships"><Relationship Id="rId1" Type="${OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>`;
const workbook = (title: string): string => `${HEADER}<workbook xmlns="${MAIN}" xmlns:r="${OFFICE}"><sheets><sheet name="${title}" sheetId="1" r:id="rId1"/></sheets><definedNames><definedName name="_xlnm.Print_Titles" localSheetId="0">${title}!$1:$1</definedName></definedNames></workbook>`;
const WORKBOOK_RELATIONS = `${HEADER}<Relationships xmlns="${PACKAGE}/relationships"><Relationship Id="rId1" Type="${OFFICE}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="${OFFICE}/styles" Target="styles.xml"/></Relationships>`;
// The formats of STYLE. Long texts wrap, and so all cells start at the top of their row.
const XFS = ['', 'fontId="1" applyFont="1"', 'numFmtId="164" applyNumberFormat="1"', 'numFmtId="2" applyNumberFormat="1"'];
const STYLES = `${HEADER}<styleSheet xmlns="${MAIN}"><numFmts count="1"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd\\ hh:mm"/></numFmts><fonts count="2"><font><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="11"/><name val="Calibri"/></font></fonts><fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills><borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders><cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="4">${XFS.map((xf) => `<xf ${xf} applyAlignment="1"><alignment vertical="top" wrapText="1"/></xf>`).join('')}</cellXfs></styleSheet>`;
