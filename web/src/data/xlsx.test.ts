import { expect, it } from 'vitest';
import { strFromU8, unzipSync } from 'fflate';
import type { Batch } from './batch';
import { allRows, sampleColumns } from './test-data';
import { exportColumns } from './export-columns';
import { xlsx } from './xlsx';

async function unzip(blob: Blob): Promise<Map<string, string>> {
  const files = unzipSync(new Uint8Array(await blob.arrayBuffer()));
  return new Map(Object.entries(files).map(([name, content]) => [name, strFromU8(content)]));
}

async function sheetOf(changes: Partial<Batch>[], fields: (keyof Batch)[]): Promise<string> {
  const columns = sampleColumns(changes);
  const files = await unzip(xlsx(exportColumns(columns, fields), allRows(columns), 'Batches'));
  return files.get('xl/worksheets/sheet1.xml')!;
}

it('writes typed cells', async () => {
  const change = { batch_creation_date: '2026-03-02T12:00:00Z', avg_germination_rate: '92.50', comment: null };
  const fields: (keyof Batch)[] = ['batch_creation_date', 'avg_germination_rate', 'comment', 'warnings'];
  const sheet = await sheetOf([change], fields);
  expect(sheet).toContain(
    '<row><c s="2"><v>46083.5</v></c><c s="3"><v>92.50</v></c><c/><c t="inlineStr" s="0"><is><t xml:space="preserve">No</t></is></c></row></sheetData>',
  );
  expect(sheet).toContain('<t xml:space="preserve">Germination rate (%)</t>');
});

it('has a filter, a fixed heading, and columns as wide as their texts', async () => {
  const sheet = await sheetOf([{ comment: 'x'.repeat(99) }, { batch_name: 'Bench 7, tray 12' }], ['batch_name', 'warnings', 'comment']);
  expect(sheet).toContain('state="frozen"');
  expect(sheet.match(/(?<=width=")\d+/g)).toEqual(['18', '13', '52']);
  expect(sheet).toContain('</sheetData><autoFilter ref="A1:C3"/>');
});

it('wraps long texts, and prints in landscape, as wide as the page, with the heading on each', async () => {
  const columns = sampleColumns([{}]);
  const files = await unzip(xlsx(exportColumns(columns, ['comment']), allRows(columns), 'Batches'));
  const sheet = files.get('xl/worksheets/sheet1.xml');
  expect(sheet).toContain('<sheetPr><pageSetUpPr fitToPage="1"/></sheetPr>');
  expect(sheet).toContain('<pageSetup orientation="landscape" fitToHeight="0"/></worksheet>');
  expect(files.get('xl/styles.xml')!.match(/wrapText="1"/g)).toHaveLength(4);
  expect(files.get('xl/workbook.xml')).toContain('>Batches!$1:$1</definedName>');
});

it('escapes what XML lacks, and never writes a formula', async () => {
  const sheet = await sheetOf([{ comment: '=1 <&> \u0001 _x0041_ \r\n' }], ['comment']);
  expect(sheet).toContain('t="inlineStr" s="0"><is><t xml:space="preserve">=1 &lt;&amp;&gt; _x0001_ _x005F_x0041_ _x000D_\n</t>');
});
