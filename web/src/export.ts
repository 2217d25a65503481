// Saves the files of the export menu. Loaded when one is chosen.
import { batches } from './batches.svelte';
import type { Batch } from './data/batch';
import { csv } from './data/csv';
import { exportColumns, withOthers, type ExportColumn } from './data/export-columns';
import { activeFilters } from './data/filter';
import { xlsx } from './data/xlsx';
import { results } from './results.svelte';
import { seen } from './seen.svelte';
import { text } from './text';
import { locale } from './text/language';
import { view } from './view.svelte';
import { cropLabel, joined, noteText, reasonText, seenText } from './views/shared-text';

/** Saves the shown batches with all columns, the given ones first; without any, the crops of the analysis. */
export function saveShown(extension: 'xlsx' | 'csv', fields?: (keyof Batch)[]): void {
  const [columns, rows] = fields === undefined ? [cropColumns(), Int32Array.from(results.byCrop.keys())] : [batchColumns(fields), results.sortedRows];
  const screen = fields === undefined ? 'analysis' : 'batches';
  save(extension === 'xlsx' ? xlsx(columns, rows, text.layout[screen]) : csv(columns, rows, locale), nameOf(screen, extension));
}

function batchColumns(fields: (keyof Batch)[]): ExportColumn[] {
  const { columns, reasons, sortedRows } = results;
  const textsOf = (of: (id: string, row: number) => string[]): Map<number, string> => {
    const texts = Array.from(sortedRows, (row) => [row, joined(' ', ...of(columns.batch(row).batch_id, row)).replaceAll('\u2060', '')] as const);
    return new Map(texts.filter(([, text]) => text !== ''));
  };
  return exportColumns(columns, withOthers(fields), {
    [text.reasons.why]: textsOf((_, row) => (reasons.get(row) ?? []).map(reasonText)),
    [text.today.isSeen]: textsOf((id) => [seenText(seen.mark(id), view.today)]),
    [text.today.note]: textsOf((id) => seen.notesOn([id]).map((note) => noteText(note, view.today))),
  });
}

function cropColumns(): ExportColumn[] {
  const { byCrop, measure, ranges, averages } = results;
  const { average, range, weeks, year } = text.crops;
  const rate = (head: string, valueOf: (crop: (typeof byCrop)[number]) => number | null | undefined): ExportColumn => {
    return { head: `${text.measures[measure]}: ${head} (%)`, kind: 'percent', value: (row) => valueOf(byCrop[row]!)?.toFixed(2) ?? null };
  };
  return [
    { head: text.fields.crop_type, kind: 'text', value: (row) => cropLabel(byCrop[row]!.name) },
    { head: text.layout.batches, kind: 'integer', value: (row) => byCrop[row]!.rows.length },
    rate(average, ({ average }) => average),
    rate(`${range}, ${text.period.from}`, ({ name }) => ranges.get(name)?.[measure]?.low),
    rate(`${range}, ${text.period.to}`, ({ name }) => ranges.get(name)?.[measure]?.high),
    rate(weeks, ({ name }) => averages[measure].get(name)?.weeks),
    rate(year, ({ name }) => averages[measure].get(name)?.year),
    rate(`${weeks} − ${year}`, ({ name }) => averages[measure].get(name)?.change),
  ];
}

function save(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser reads the file after the click; a minute is enough.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

// The file name shows what is missing.
function nameOf(screen: string, extension: string): string {
  const { period, filter } = view.current;
  const filtered = filter.warnings === 'unusual' ? '-unusual' : activeFilters(filter) > 0 ? '-filtered' : '';
  const part = batches.main?.covers(period) ? '' : '-part';
  return `${screen}-${period.from}-to-${period.to}${filtered}${part}.${extension}`;
}
