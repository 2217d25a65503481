// Saves the files of the export menu. Loaded when one is chosen.
import { batches } from './batches.svelte';
import type { Batch } from './data/batch';
import { csv } from './data/csv';
import { exportColumns, withOthers } from './data/export-columns';
import { activeFilters } from './data/filter';
import type { Reason } from './data/usual';
import { xlsx } from './data/xlsx';
import { results } from './results.svelte';
import { seen } from './seen.svelte';
import { locale } from './text/language';
import { view } from './view.svelte';
import { joined, noteText, reasonText, seenText } from './views/shared-text';

/** Saves the shown batches with all columns, the given ones first. */
export async function saveShown(extension: 'xlsx' | 'csv', fields: (keyof Batch)[]): Promise<void> {
  const { sortedRows: rows } = results;
  const reasons = new Map([...results.reasons].map(([row, reasons]) => [row, whyText(results.columns.batch(row).batch_id, reasons)]));
  const columns = exportColumns(results.columns, withOthers(fields), reasons);
  save(extension === 'xlsx' ? xlsx(columns, rows) : csv(columns, rows, locale), nameOf(extension));
}

function whyText(id: string, reasons: readonly Reason[]): string {
  const texts = [...reasons.map(reasonText), seenText(seen.mark(id), view.today), ...seen.notesOn([id]).map((note) => noteText(note, view.today))];
  return joined(' ', ...texts).replaceAll('\u2060', '');
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
function nameOf(extension: string): string {
  const { period, filter } = view.current;
  const filtered = filter.warnings === 'unusual' ? '-unusual' : activeFilters(filter) > 0 ? '-filtered' : '';
  const part = batches.main?.covers(period) ? '' : '-part';
  return `batches-${period.from}-to-${period.to}${filtered}${part}.${extension}`;
}
