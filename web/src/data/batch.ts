// A batch as the API sends it: its fields, their labels, and its validation.

import { text } from '../text';
import { instantMs } from '../time/day';

/** A decimal exactly as sent, such as "92.50". Converted to a number only for charts, means and sorting. */
export type Decimal = string;

/** The trays of one scan. */
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
  required?: boolean;
}

/** All fields, in the order that people read them. */
export const FIELDS: readonly Field[] = (
  [
    { name: 'batch_name', kind: 'text', required: true },
    { name: 'batch_creation_date', kind: 'instant', required: true },
    { name: 'crop_type', kind: 'text' },
    { name: 'scanned_by_email', kind: 'text' },
    { name: 'comment', kind: 'text' },
    { name: 'avg_germination_rate', kind: 'percent', unit: '%' },
    { name: 'avg_usable_seedling_rate', kind: 'percent', unit: '%' },
    { name: 'avg_coefficient_of_variation', kind: 'percent', unit: '%' },
    { name: 'avg_median_seedling_size_mm2', kind: 'decimal', unit: 'mm²' },
    { name: 'warnings', kind: 'flag', required: true },
    { name: 'number_of_images', kind: 'integer', required: true },
    { name: 'total_cells_per_tray', kind: 'integer' },
    { name: 'avg_germinated_seedlings', kind: 'decimal', unit: text.perTray },
    { name: 'avg_non_germinated_seedlings', kind: 'decimal', unit: text.perTray },
    { name: 'avg_usable_seedlings', kind: 'decimal', unit: text.perTray },
    { name: 'avg_non_usable_cells', kind: 'decimal', unit: text.perTray },
    { name: 'analysis_link', kind: 'link' },
    { name: 'batch_id', kind: 'text', required: true },
  ] satisfies Omit<Field, 'label'>[]
).map((field) => ({ ...field, label: text.fields[field.name] }));

const FIELD_BY_NAME: ReadonlyMap<string, Field> = new Map(FIELDS.map((field) => [field.name, field]));

export const findField = (name: string): Field | undefined => FIELD_BY_NAME.get(name);

export const isFieldName = (name: string): name is keyof Batch => FIELD_BY_NAME.has(name);

/** The rates, and the counts that they follow from. */
export const RATES = [
  { kind: 'low-germination', rate: 'avg_germination_rate', seedlings: 'avg_germinated_seedlings' },
  { kind: 'low-usable', rate: 'avg_usable_seedling_rate', seedlings: 'avg_usable_seedlings' },
] as const;

/** Whether a rate and its count differ by more than rounding: a cell, or one in a hundred. False if one is not known. */
export function contradicts(batch: Batch, { rate, seedlings }: (typeof RATES)[number]): boolean {
  const cells = batch.total_cells_per_tray ?? NaN;
  const count = Number(batch[seedlings] ?? NaN);
  return batch[rate] !== null && Math.abs((Number(batch[rate]) * cells) / 100 - count) > Math.max(1, cells / 100);
}

/** The name in an e-mail address: "M. Okafor" of m.okafor@example.org, "Ines Moreau" of ines.moreau@example.org. */
export function personName(email: string | null): string {
  const name = /^(.+)@/.exec(email ?? '')?.[1];
  if (name === undefined) return email || text.personNotRecorded;
  return name
    .replace(/[._]+/g, ' ')
    .replace(/(^| )(\p{L}) /gu, '$1$2. ')
    .replace(/(^|[ -])\p{L}/gu, (start) => start.toUpperCase());
}

export class InvalidBatch extends Error {
  constructor(readonly field: string) {
    super(`The field ${field} of a batch is missing or invalid.`);
    this.name = 'InvalidBatch';
  }
}

/** Validates a parsed JSON value, or throws `InvalidBatch`. Drops unknown fields: a newer service may add some. */
export function parseBatch(value: unknown): Batch {
  if (typeof value !== 'object' || value === null) throw new InvalidBatch('batch_id');
  const sent = value as Record<string, unknown>;
  const batch: Record<string, unknown> = {};
  for (const { name, kind, required } of FIELDS) {
    const field = sent[name];
    if (field === null ? required : !IS_VALID[kind](field)) throw new InvalidBatch(name);
    batch[name] = field;
  }
  if (batch['batch_id'] === '') throw new InvalidBatch('batch_id');
  return batch as unknown as Batch;
}

// Limited in length: Number() of a thousand digits is Infinity.
const DECIMAL = /^-?\d{1,30}(?:\.\d{1,30})?$/;

const isText = (value: unknown): boolean => typeof value === 'string';
const isDecimal = (value: unknown): boolean => typeof value === 'string' && DECIMAL.test(value);

const IS_VALID: Record<FieldKind, (value: unknown) => boolean> = {
  text: isText,
  link: isText,
  instant: (value) => typeof value === 'string' && !Number.isNaN(instantMs(value)),
  integer: Number.isSafeInteger,
  decimal: isDecimal,
  percent: isDecimal,
  flag: (value) => typeof value === 'boolean',
};
