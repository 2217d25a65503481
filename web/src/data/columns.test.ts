import { expect, it } from 'vitest';
import { Columns } from './columns';
import { dayNumber } from '../time/day';
import { manyBatches, sampleBatch, sampleColumns } from './test-data';

it('keeps a batch unchanged', () => {
  const batch = sampleBatch({ avg_germination_rate: '92.50' });
  expect(sampleColumns([batch]).batch(0)).toEqual({ ...batch });
});

it('stores NaN for a missing value, and -1 for a missing crop or person', () => {
  const columns = sampleColumns([
    { avg_germination_rate: null, crop_type: null, scanned_by_email: null },
  ]);
  expect(columns.germination[0]).toBeNaN();
  expect([columns.crop[0], columns.person[0]]).toEqual([-1, -1]);
  expect(columns.cropName(-1)).toBeNull();
});

it('stores numbers, days and flags', () => {
  const columns = sampleColumns([
    { batch_creation_date: '2026-03-02T23:59:59.999999Z', warnings: true },
  ]);
  expect(columns.germination[0]).toBe(92.5);
  expect(columns.day[0]).toBe(dayNumber('2026-03-02'));
  expect(columns.warning[0]).toBe(1);
});

it('assigns one index per crop, whatever its name', () => {
  const columns = sampleColumns(
    ['__proto__', 'constructor', '__proto__', 'Tomato'].map((crop_type) => ({ crop_type })),
  );
  expect(columns.crops).toEqual(['__proto__', 'constructor', 'Tomato']);
  expect([...columns.crop.subarray(0, 4)]).toEqual([0, 1, 0, 2]);
});

it('grows beyond its initial size', () => {
  const batches = manyBatches(5_000);
  const columns = new Columns();
  for (let at = 0; at < batches.length; at += 700) columns.append(batches.slice(at, at + 700));
  expect(columns.length).toBe(5_000);
  batches.forEach((batch, row) => {
    expect(columns.batch(row)).toBe(batch);
    expect(columns.usable[row]).toBe(Number(batch.avg_usable_seedling_rate));
  });
});

it('finds a batch by id', () => {
  const columns = sampleColumns([{}, { batch_id: '__proto__' }]);
  expect(columns.rowOf('__proto__')).toBe(1);
  expect(columns.rowOf('unknown')).toBe(-1);
});

it('replaces the row of a batch that is appended again', () => {
  const columns = sampleColumns([{}, {}]);
  columns.append([sampleBatch({ batch_id: 'b-0', avg_germination_rate: '10.00' })]);
  expect(columns.length).toBe(2);
  expect(columns.germination[0]).toBe(10);
  expect(columns.oldestFirst).toBe(true);
});

it('detects rows that are not sorted oldest first', () => {
  const at = (batch_creation_date: string): { batch_creation_date: string } => ({ batch_creation_date });
  expect(sampleColumns([at('2026-01-01T00:00:00Z'), at('2026-01-01T00:00:00Z')]).oldestFirst).toBe(true);
  expect(sampleColumns([at('2026-01-02T00:00:00Z'), at('2026-01-01T00:00:00Z')]).oldestFirst).toBe(false);
});

it('throws for a row that does not exist', () => {
  expect(() => new Columns().batch(0)).toThrow(RangeError);
});
