// The text and column width of a field.
import { personName, type Batch, type Field } from '../data/batch';
import { count, decimal, instant, NONE, percent } from '../text/format';
import { text } from '../text';
import { view } from '../view.svelte';
import { momentText, recentDate } from './shared-text';

/** Rates are whole numbers, as the usual ranges are, unless digits are requested. */
export function cellText(batch: Batch, field: Field, digits = 0): string {
  const value = batch[field.name];
  if (value === null) return NONE;
  switch (field.kind) {
    case 'integer':
      return count(value as number);
    case 'decimal':
      return decimal(value as string);
    case 'percent':
      return percent(Number(value), digits);
    case 'instant':
      return digits > 0 ? instant(value as string) : momentText(value as string, view.today, recentDate);
    case 'flag':
      return value === true ? text.table.warning : NONE;
    case 'text':
    case 'link':
      return field.name === 'scanned_by_email' ? personName(String(value)) : String(value);
  }
}

export const isNumber = (field: Field): boolean => field.kind === 'integer' || field.kind === 'decimal' || field.kind === 'percent';

const WIDTHS_REM: Partial<Record<keyof Batch, number>> = {
  batch_id: 20,
  batch_name: 9,
  batch_creation_date: 11.5,
  crop_type: 13,
  number_of_images: 4.75,
  total_cells_per_tray: 6,
  avg_germination_rate: 5.75,
  avg_usable_seedling_rate: 5.75,
  avg_coefficient_of_variation: 5.75,
  avg_median_seedling_size_mm2: 6.5,
  scanned_by_email: 7.5,
  analysis_link: 18,
  comment: 9,
  warnings: 5.5,
};

/** Fixed widths, so that columns do not move while scrolling. */
export const widthRem = (field: Field): number => WIDTHS_REM[field.name] ?? 6.25;

/** The column header, with the unit if the cells do not show it. */
export function headText({ kind, label, unit }: Field): string {
  return kind === 'decimal' && unit === 'mm²' ? `${label} (${unit})` : label;
}
