// What a batch is, as the service sends it: its fields, their names for people, and the one door
// through which an unknown value becomes a `Batch`. Knows nothing of requests, rows or screens.

import { instantMs } from './day';

/** A decimal exactly as sent, such as "92.50". Numbers are made of it only for drawing, means and sorting. */
export type Decimal = string;

/** One tray scan session, with the eighteen fields of the interface. */
export interface Batch {
  batch_id: string;
  batch_name: string;
  batch_creation_date: string;
  crop_type: string | null;
  number_of_images: number;
  total_cells_per_tray: number | null;
  avg_germinated_seedlings: Decimal | null;
  avg_non_germinated_seedlings: Decimal | null;
  avg_germination_rate: Decimal | null;
  avg_usable_seedlings: Decimal | null;
  avg_non_usable_cells: Decimal | null;
  avg_usable_seedling_rate: Decimal | null;
  avg_coefficient_of_variation: Decimal | null;
  avg_median_seedling_size_mm2: Decimal | null;
  scanned_by_email: string | null;
  analysis_link: string | null;
  comment: string | null;
  warnings: boolean;
}

export type FieldKind = 'text' | 'instant' | 'integer' | 'decimal' | 'percent' | 'link' | 'flag';

export interface Field {
  name: keyof Batch;
  label: string;
  kind: FieldKind;
  unit?: string;
}

/** All eighteen fields, in the interface's order. */
export const FIELDS: readonly Field[] = [
  { name: 'batch_id', label: 'Batch ID', kind: 'text' },
  { name: 'batch_name', label: 'Name', kind: 'text' },
  { name: 'batch_creation_date', label: 'Created', kind: 'instant' },
  { name: 'crop_type', label: 'Crop', kind: 'text' },
  { name: 'number_of_images', label: 'Images', kind: 'integer' },
  { name: 'total_cells_per_tray', label: 'Cells per tray', kind: 'integer' },
  { name: 'avg_germinated_seedlings', label: 'Germinated seedlings', kind: 'decimal', unit: 'per tray' },
  { name: 'avg_non_germinated_seedlings', label: 'Non-germinated seedlings', kind: 'decimal', unit: 'per tray' },
  { name: 'avg_germination_rate', label: 'Germination rate', kind: 'percent', unit: '%' },
  { name: 'avg_usable_seedlings', label: 'Usable seedlings', kind: 'decimal', unit: 'per tray' },
  { name: 'avg_non_usable_cells', label: 'Non-usable cells', kind: 'decimal', unit: 'per tray' },
  { name: 'avg_usable_seedling_rate', label: 'Usable rate', kind: 'percent', unit: '%' },
  { name: 'avg_coefficient_of_variation', label: 'Size variation', kind: 'percent', unit: '%' },
  { name: 'avg_median_seedling_size_mm2', label: 'Median size', kind: 'decimal', unit: 'mm²' },
  { name: 'scanned_by_email', label: 'Scanned by', kind: 'text' },
  { name: 'analysis_link', label: 'Analysis report', kind: 'link' },
  { name: 'comment', label: 'Comment', kind: 'text' },
  { name: 'warnings', label: 'Warnings', kind: 'flag' },
];

const FIELD_BY_NAME: ReadonlyMap<string, Field> = new Map(FIELDS.map((field) => [field.name, field]));

/** The field of that name; `undefined` for a name that no field has. */
export function fieldNamed(name: string): Field | undefined {
  return FIELD_BY_NAME.get(name);
}

/** Whether a text names a field; the text may come from a URL. */
export function isFieldName(name: string): name is keyof Batch {
  return FIELD_BY_NAME.has(name);
}

/** The link to the full analysis if it is safe to follow: absolute http(s), never `javascript:` and its kin. */
export function reportLink(batch: Batch): string | null {
  const link = batch.analysis_link;
  return link !== null && /^https?:\/\/[^\s/]/i.test(link) ? link : null;
}

/** A value that is no batch, with the field at fault. */
export class MalformedBatch extends Error {
  readonly field: string;

  constructor(field: string) {
    super(`The field ${field} of a batch is missing or malformed.`);
    this.field = field;
    this.name = 'MalformedBatch';
  }
}

/**
 * Makes a batch of a parsed JSON value, or throws `MalformedBatch`. Fields it does not know are left
 * behind, so that a newer service may add some. Every batch gets the same shape, which keeps the
 * engine's property access fast over tens of thousands of them.
 */
export function parseBatch(value: unknown): Batch {
  if (typeof value !== 'object' || value === null) throw new MalformedBatch('batch_id');
  const sent = value as Record<string, unknown>;
  return {
    batch_id: nonEmpty(sent['batch_id'], 'batch_id'),
    batch_name: text(sent['batch_name'], 'batch_name'),
    batch_creation_date: instant(sent['batch_creation_date'], 'batch_creation_date'),
    crop_type: textOrNull(sent['crop_type'], 'crop_type'),
    number_of_images: whole(sent['number_of_images'], 'number_of_images'),
    total_cells_per_tray: wholeOrNull(sent['total_cells_per_tray'], 'total_cells_per_tray'),
    avg_germinated_seedlings: decimalOrNull(sent['avg_germinated_seedlings'], 'avg_germinated_seedlings'),
    avg_non_germinated_seedlings: decimalOrNull(sent['avg_non_germinated_seedlings'], 'avg_non_germinated_seedlings'),
    avg_germination_rate: decimalOrNull(sent['avg_germination_rate'], 'avg_germination_rate'),
    avg_usable_seedlings: decimalOrNull(sent['avg_usable_seedlings'], 'avg_usable_seedlings'),
    avg_non_usable_cells: decimalOrNull(sent['avg_non_usable_cells'], 'avg_non_usable_cells'),
    avg_usable_seedling_rate: decimalOrNull(sent['avg_usable_seedling_rate'], 'avg_usable_seedling_rate'),
    avg_coefficient_of_variation: decimalOrNull(sent['avg_coefficient_of_variation'], 'avg_coefficient_of_variation'),
    avg_median_seedling_size_mm2: decimalOrNull(sent['avg_median_seedling_size_mm2'], 'avg_median_seedling_size_mm2'),
    scanned_by_email: textOrNull(sent['scanned_by_email'], 'scanned_by_email'),
    analysis_link: textOrNull(sent['analysis_link'], 'analysis_link'),
    comment: textOrNull(sent['comment'], 'comment'),
    warnings: flag(sent['warnings'], 'warnings'),
  };
}

function text(value: unknown, field: string): string {
  if (typeof value !== 'string') throw new MalformedBatch(field);
  return value;
}

function nonEmpty(value: unknown, field: string): string {
  if (typeof value !== 'string' || value === '') throw new MalformedBatch(field);
  return value;
}

function textOrNull(value: unknown, field: string): string | null {
  return value === null ? null : text(value, field);
}

function instant(value: unknown, field: string): string {
  if (typeof value !== 'string' || Number.isNaN(instantMs(value))) throw new MalformedBatch(field);
  return value;
}

function whole(value: unknown, field: string): number {
  if (!Number.isSafeInteger(value)) throw new MalformedBatch(field);
  return value as number;
}

function wholeOrNull(value: unknown, field: string): number | null {
  return value === null ? null : whole(value, field);
}

// The length is held as well: a thousand digits are no measurement, and Number() of them is Infinity.
const DECIMAL = /^-?\d{1,30}(?:\.\d{1,30})?$/;

function decimalOrNull(value: unknown, field: string): Decimal | null {
  if (value === null) return null;
  if (typeof value !== 'string' || !DECIMAL.test(value)) throw new MalformedBatch(field);
  return value;
}

function flag(value: unknown, field: string): boolean {
  if (typeof value !== 'boolean') throw new MalformedBatch(field);
  return value;
}
