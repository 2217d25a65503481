// How a field of a batch reads in a table or on its page.
import type { Batch, Field } from '../data/batch';
import { count, decimal, instant, NONE, percent } from '../data/locale';

export function cellText(batch: Batch, field: Field): string {
  const value = batch[field.name];
  if (value === null) return NONE;
  switch (field.kind) {
    case 'integer':
      return count(value as number);
    case 'decimal':
      return decimal(value as string);
    case 'percent':
      return percent(Number(value), 2);
    case 'instant':
      return instant(value as string);
    case 'flag':
      return value === true ? 'Warning' : NONE;
    case 'text':
    case 'link':
      return String(value);
  }
}

export function isNumber(field: Field): boolean {
  return field.kind === 'integer' || field.kind === 'decimal' || field.kind === 'percent';
}

const WIDTHS_REM: Partial<Record<keyof Batch, number>> = {
  batch_id: 20,
  batch_name: 13,
  batch_creation_date: 10.5,
  crop_type: 11.5,
  number_of_images: 5.5,
  total_cells_per_tray: 6,
  scanned_by_email: 14,
  analysis_link: 18,
  comment: 20,
  warnings: 6,
};

/** Columns have fixed widths, so that rows scrolling by never shift them. */
export function widthRem(field: Field): number {
  return WIDTHS_REM[field.name] ?? 7;
}
