import { describe, expect, it } from 'vitest';
import type { Batch } from './batch';
import { allRows, sampleColumns } from './test-data';
import {
  BATCHES_FOR_RANGE_MIN,
  findOutliers,
  OUTLIER_IQRS,
  typicalRanges,
  WARNING_WEIGHT,
  ZERO_WEIGHT,
} from './outliers';

/** Germination rates 80.00, 81.00 … 100.00: median 90, quartiles 85 and 95. */
const evenly = (change: Partial<Batch> = {}): Partial<Batch>[] =>
  Array.from({ length: 21 }, (_, at) => ({ avg_germination_rate: `${80 + at}.00`, ...change }));

describe('typicalRanges', () => {
  it('are the 5th, 50th and 95th percentile', () => {
    const columns = sampleColumns(evenly());
    expect(typicalRanges(columns, allRows(columns)).get(0)).toMatchObject({
      crop: 'Tomato',
      batches: 21,
      germination: { low: 81, median: 90, high: 99 },
      variation: { low: 18.2, median: 18.2, high: 18.2 },
    });
  });

  it('need twenty batches with the value', () => {
    const few = sampleColumns(evenly().slice(0, BATCHES_FOR_RANGE_MIN - 1));
    expect(typicalRanges(few, allRows(few)).size).toBe(0);
    const sparse = sampleColumns(
      evenly().map((change, at) => (at < 2 ? { ...change, avg_usable_seedling_rate: null } : change)),
    );
    const found = typicalRanges(sparse, allRows(sparse)).get(0)!;
    expect(found.usable).toBeNull();
    expect(found.germination).not.toBeNull();
  });

  it('have the index -1 for batches without a crop', () => {
    const columns = sampleColumns(evenly({ crop_type: null }));
    expect(typicalRanges(columns, allRows(columns)).get(-1)!.crop).toBeNull();
  });
});

describe('findOutliers', () => {
  const found = (changes: Partial<Batch>[], max = 10) => {
    const columns = sampleColumns(changes);
    return findOutliers(columns, allRows(columns), max);
  };

  it('finds nothing among evenly spread batches', () => {
    expect(found(evenly())).toEqual({ found: [], total: 0 });
  });

  it('finds low germination, not high', () => {
    const { found: rows } = found([...evenly(), { avg_germination_rate: '40.00' }, { avg_germination_rate: '140.00' }]);
    expect(rows.map(({ row }) => row)).toEqual([21]);
    expect(rows[0]!.reasons).toEqual([
      { kind: 'low-germination', value: 40, typical: expect.objectContaining({ median: 90 }) as object },
    ]);
    expect(rows[0]!.weight).toBeGreaterThan(OUTLIER_IQRS);
  });

  it('finds high variation, not low', () => {
    const { found: rows } = found([
      ...evenly(),
      { avg_coefficient_of_variation: '40.00' },
      { avg_coefficient_of_variation: '1.00' },
    ]);
    expect(rows.map(({ row, reasons }) => [row, reasons[0]!.kind])).toEqual([[21, 'high-variation']]);
  });

  it('ignores a difference of a single cell', () => {
    const alike = Array.from({ length: 30 }, () => ({ avg_germination_rate: '99.50' }));
    expect(found([...alike, { avg_germination_rate: '99.00' }]).total).toBe(0);
    expect(found([...alike, { avg_germination_rate: '98.00' }]).total).toBe(1);
  });

  it('finds warnings in any crop, with the lowest weight', () => {
    const changes = [...evenly(), { avg_germination_rate: '40.00' }, { crop_type: 'Rare', warnings: true }];
    const { found: rows } = found(changes);
    expect(rows.map(({ row }) => row)).toEqual([21, 22]);
    expect(rows[1]).toEqual({ row: 22, reasons: [{ kind: 'warning' }], weight: WARNING_WEIGHT });
    expect(WARNING_WEIGHT).toBeLessThan(OUTLIER_IQRS);
  });

  it('ranks zero germination first, with or without a typical range', () => {
    const changes = [
      ...evenly(),
      { avg_germination_rate: '1.00', warnings: true },
      { avg_germination_rate: '0.00' },
      { crop_type: 'Rare', avg_germination_rate: '0.00' },
    ];
    const { found: rows } = found(changes);
    expect(rows.map(({ row }) => row)).toEqual([22, 23, 21]);
    expect(rows[1]).toEqual({
      row: 23,
      reasons: [{ kind: 'low-germination', value: 0, typical: null }],
      weight: ZERO_WEIGHT,
    });
  });

  it('sorts by weight, then newest first, and counts all', () => {
    const warned = (day: number) => ({
      crop_type: 'Rare',
      warnings: true,
      batch_creation_date: `2026-03-0${day}T00:00:00Z`,
    });
    const changes = [
      ...evenly(),
      warned(3),
      warned(4),
      { avg_germination_rate: '40.00', warnings: true },
      { avg_germination_rate: '20.00' },
    ];
    const { found: rows, total } = found(changes, 3);
    expect(rows.map(({ row }) => row)).toEqual([24, 23, 22]);
    expect(total).toBe(4);
  });

  it('does not treat a missing value as low', () => {
    expect(found([...evenly(), { avg_germination_rate: null, avg_coefficient_of_variation: null }]).total).toBe(0);
  });
});
