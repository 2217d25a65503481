import { expect, it } from 'vitest';
import { FIELDS, type Batch } from './batch';
import { csv } from './csv';
import { exportColumns, withOthers } from './export-columns';
import { allRows, sampleColumns } from './test-data';

/** The file without its byte order mark, which Blob.text() would drop unnoticed. */
async function fileOf(changes: Partial<Batch>[], fields: (keyof Batch)[], locale = 'en'): Promise<string> {
  const columns = sampleColumns(changes);
  const bytes = new Uint8Array(await csv(exportColumns(columns, fields), allRows(columns), locale).arrayBuffer());
  expect([...bytes.subarray(0, 3)]).toEqual([0xef, 0xbb, 0xbf]);
  return new TextDecoder().decode(bytes.subarray(3));
}

it('has the headings of the screen in the given order, and CRLF after every line', async () => {
  expect(await fileOf([{}], ['warnings', 'batch_id', 'number_of_images'])).toBe(
    'Warnings,Batch ID,Images\r\nNo,b-0,4\r\n',
  );
});

it('adds the other columns', () => {
  const fields = withOthers(['comment', 'batch_name']);
  expect(fields.slice(0, 3)).toEqual(['comment', 'batch_name', 'batch_creation_date']);
  expect(fields.toSorted()).toEqual(FIELDS.map(({ name }) => name).toSorted());
});

it('writes decimals exactly as sent, negative ones too', async () => {
  const fields: (keyof Batch)[] = ['avg_germination_rate', 'avg_usable_seedlings', 'avg_non_usable_cells'];
  const change = {
    avg_germination_rate: '92.50',
    avg_usable_seedlings: '-0.10',
    avg_non_usable_cells: '999999999999.99',
  };
  expect(await fileOf([change], fields)).toMatch(/\r\n92\.50,-0\.10,999999999999\.99\r\n$/);
});

it('has decimal commas and semicolons where the reader expects them', async () => {
  const fields: (keyof Batch)[] = ['batch_id', 'avg_germination_rate', 'comment', 'batch_creation_date'];
  const change = { avg_germination_rate: '92.50', comment: 'a; 1.5', batch_creation_date: '2026-03-02T08:00:00.5Z' };
  expect(await fileOf([change], fields, 'de')).toBe(
    'Batch ID;Germination rate (%);Comment;Scanned (UTC)\r\nb-0;92,50;"a; 1.5";2026-03-02 08:00:00.5\r\n',
  );
});

it('writes null as an empty cell', async () => {
  expect(await fileOf([{ comment: null, crop_type: null }], ['crop_type', 'comment'])).toBe(
    'Crop,Comment\r\n,\r\n',
  );
});

it('quotes commas, quotes and line breaks', async () => {
  const file = await fileOf([{ comment: 'a, "b"\r\nc' }, { comment: 'x\ny' }], ['comment']);
  expect(file).toBe('Comment\r\n"a, ""b""\r\nc"\r\n"x\ny"\r\n');
});

it.each(['=1+1', '+1', '-1', '@SUM(A1)', '\tx'])('escapes the formula %j', async (comment) => {
  expect(await fileOf([{ comment }], ['comment'])).toBe(`Comment\r\n'${comment}\r\n`);
});

it('escapes and quotes', async () => {
  expect(await fileOf([{ comment: '\r=1' }, { batch_name: '=A,"B"', comment: 'a=1' }], ['batch_name', 'comment'])).toBe(
    'Name,Comment\r\nTray 1,"\'\r=1"\r\n"\'=A,""B""",a=1\r\n',
  );
});

it('keeps non-ASCII text, and replaces a lone surrogate', async () => {
  expect(await fileOf([{ comment: 'Größe 日本 🌱' }, { comment: '\ud800!' }], ['comment'])).toBe(
    'Comment\r\nGröße 日本 🌱\r\n\ufffd!\r\n',
  );
});

it('writes all fields, the rows in the given order, and no rows', async () => {
  const sample = sampleColumns([{}, {}]);
  const columns = exportColumns(sample, FIELDS.map((field) => field.name));
  const lines = (await csv(columns, Int32Array.of(1, 0), 'en').text()).split('\r\n');
  expect(lines.slice(1, 3).map((line) => line.split(',').at(-1))).toEqual(['b-1', 'b-0']);
  expect(await csv(exportColumns(sample, ['batch_id']), new Int32Array(), 'en').text()).toMatch(/Batch ID\r\n$/);
  expect(csv(columns, new Int32Array(), 'en').type).toBe('text/csv;charset=utf-8');
});

it('writes the addresses of people, as an import reads them, and why a batch is unusual before its comment', async () => {
  const columns = sampleColumns([{ scanned_by_email: 'ines.moreau@example.org', comment: 'Dry' }, { scanned_by_email: null, comment: null }]);
  const file = csv(exportColumns(columns, ['scanned_by_email', 'comment'], { 'Why unusual': new Map([[0, 'Only 50%.']]), Seen: new Map() }), allRows(columns), 'en');
  expect(await file.text()).toMatch(/Scanned by \(e-mail\),Why unusual,Comment\r\nines.moreau@example.org,Only 50%\.,Dry\r\n,,\r\n$/);
});
