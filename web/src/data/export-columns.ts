// The columns of an exported file: the headings of the screen with the unit or the time zone, and the values.

import { text } from '../text';
import { FIELDS, findField, type Batch, type Field, type FieldKind } from './batch';
import type { Columns } from './columns';
import { timeZone } from '../time/zone';

export interface ExportColumn {
  head: string;
  kind: FieldKind;
  value: (row: number) => Batch[keyof Batch];
}

/** The fields, then all others: an import of the file must not empty them. */
export const withOthers = (fields: readonly (keyof Batch)[]): (keyof Batch)[] => [...new Set([...fields, ...FIELDS.map(({ name }) => name)])];

/** The fields in the given order. What is known of batches otherwise, by row, comes before the comment. */
export function exportColumns(columns: Columns, fields: readonly (keyof Batch)[], others: Readonly<Record<string, ReadonlyMap<number, string>>> = {}): ExportColumn[] {
  const found = fields.map((name): ExportColumn => {
    const field = findField(name)!;
    return { head: headOf(field), kind: field.kind, value: (row) => columns.batch(row)[name] };
  });
  const known = Object.entries(others).filter(([, texts]) => texts.size > 0);
  const at = fields.indexOf('comment');
  return found.toSpliced(at < 0 ? found.length : at, 0, ...known.map(([head, texts]): ExportColumn => ({ head, kind: 'text', value: (row) => texts.get(row) ?? null })));
}

// People are names on the screen. A file has their addresses: an import of it must read them back.
function headOf({ name, kind, label, unit = kind === 'instant' ? timeZone : name === 'scanned_by_email' ? text.export.address : undefined }: Field): string {
  // Hyphens for narrow columns.
  const head = label.replaceAll('\u00AD', '');
  return unit === undefined ? head : `${head} (${unit})`;
}
