import { describe, expect, it } from 'vitest';
import type { Batch } from './batch';
import { allRows, sampleColumns } from './test-data';
import {
  BATCHES_FOR_RANGE_MIN,
  cropSpreads,
  findOutliers,
  OUTLIER_IQRS,
  unusualRows,
  WARNING_WEIGHT,
  ZERO_WEIGHT,
} from './outliers';

/** Germination rates 80.00, 81.00 … 100.00: median 90, quartiles 85 and 95. */
const evenly = (change: Partial<Batch> = {}): Partial<Batch>[] =>
  Array.from({ length: 21 }, (_, at) => ({ avg_germination_rate: `${80 + at}.00`, ...change }));

describe('cropSpreads', () => {
  const spreads = (...parts: Partial<Batch>[][]) =>
    cropSpreads(parts.map(sampleColumns).map((columns) => ({ columns, rows: allRows(columns) })));

  it('are the 5th, 50th and 95th percentile', () => {
    expect(spreads(evenly()).get('Tomato')).toMatchObject({
      batches: 21,
      germination: { range: { low: 81, median: 90, high: 99 }, iqr: 10 },
      variation: { range: { low: 18.2, median: 18.2, high: 18.2 } },
    });
  });

  it('are the same from several loaders, whatever their crop indices', () => {
    const all = evenly();
    const parts = spreads(all.slice(9), [{ crop_type: 'Leek' }, ...all.slice(0, 9)]);
    expect(parts).toEqual(spreads(all));
  });

  it('need twenty batches with the value', () => {
    expect(spreads(evenly().slice(0, BATCHES_FOR_RANGE_MIN - 1)).size).toBe(0);
    const sparse = evenly().map((change, at) => (at < 2 ? { ...change, avg_usable_seedling_rate: null } : change));
    expect(spreads(sparse).get('Tomato')).toMatchObject({ usable: null, germination: { iqr: 10 } });
  });

  it('have the name null for batches without a crop', () => {
    expect([...spreads(evenly({ crop_type: null })).keys()]).toEqual([null]);
  });
});

describe('findOutliers', () => {
  const found = (changes: Partial<Batch>[]) => {
    const columns = sampleColumns(changes);
    return findOutliers(columns, allRows(columns), cropSpreads([{ columns, rows: allRows(columns) }]));
  };

  it('finds nothing among evenly spread batches', () => {
    expect(found(evenly())).toEqual([]);
  });

  it('compares with the given spreads, whatever the other batches', () => {
    const year = sampleColumns(evenly());
    const today = sampleColumns([{ avg_germination_rate: '40.00' }, { avg_germination_rate: '89.00' }]);
    expect(findOutliers(today, allRows(today), new Map())).toEqual([]);
    const rows = findOutliers(today, allRows(today), cropSpreads([{ columns: year, rows: allRows(year) }]));
    expect(rows.map(({ row }) => row)).toEqual([0]);
    expect(rows[0]!.reasons[0]).toMatchObject({ typical: { low: 81, median: 90, high: 99 } });
  });

  it('finds low germination, not high', () => {
    const rows = found([...evenly(), { avg_germination_rate: '40.00' }, { avg_germination_rate: '140.00' }]);
    expect(rows.map(({ row }) => row)).toEqual([21]);
    expect(rows[0]!.reasons).toEqual([
      { kind: 'low-germination', value: 40, typical: expect.objectContaining({ median: 90 }) as object },
    ]);
    expect(rows[0]!.weight).toBeGreaterThan(OUTLIER_IQRS);
  });

  it('finds a low usable rate, also with normal germination', () => {
    const rows = found([
      ...evenly(),
      ...evenly(),
      ...evenly(),
      { avg_usable_seedling_rate: '50.00' },
      { avg_germination_rate: '40.00', avg_usable_seedling_rate: '30.00' },
      { avg_germination_rate: '0.00', avg_usable_seedling_rate: '0.00' },
    ]);
    const kinds = new Map(rows.map(({ row, reasons }) => [row, reasons.map(({ kind }) => kind)]));
    expect(kinds.get(63)).toEqual(['low-usable']);
    expect(kinds.get(64)).toEqual(['low-germination', 'low-usable']);
    expect(kinds.get(65)).toEqual(['low-germination']);
    expect(unusualRows(rows)).toMatchObject({
      avg_germination_rate: new Set([64, 65]),
      avg_usable_seedling_rate: new Set([63, 64]),
    });
  });

  it('finds high variation, not low', () => {
    const rows = found([
      ...evenly(),
      { avg_coefficient_of_variation: '40.00' },
      { avg_coefficient_of_variation: '1.00' },
    ]);
    expect(rows.map(({ row, reasons }) => [row, reasons[0]!.kind])).toEqual([[21, 'high-variation']]);
  });

  it('ignores a difference of a single cell', () => {
    const alike = Array.from({ length: 30 }, () => ({ avg_germination_rate: '99.50' }));
    expect(found([...alike, { avg_germination_rate: '99.00' }])).toHaveLength(0);
    expect(found([...alike, { avg_germination_rate: '98.00' }])).toHaveLength(1);
  });

  it('finds warnings in any crop, with the lowest weight', () => {
    const changes = [...evenly(), { avg_germination_rate: '40.00' }, { crop_type: 'Rare', warnings: true }];
    const rows = found(changes);
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
    const rows = found(changes);
    expect(rows.map(({ row }) => row)).toEqual([22, 23, 21]);
    expect(rows[1]).toEqual({
      row: 23,
      reasons: [{ kind: 'low-germination', value: 0, typical: null }],
      weight: ZERO_WEIGHT,
    });
  });

  it('lists the newest day first, and the strongest of a day first', () => {
    const on = (day: number, change: Partial<Batch>) => ({ ...change, batch_creation_date: `2026-03-0${day}T00:00:00Z` });
    const changes = [
      ...evenly(),
      on(3, { avg_germination_rate: '20.00' }),
      on(4, { warnings: true }),
      on(4, { avg_germination_rate: '40.00' }),
      on(4, { warnings: true }),
    ];
    expect(found(changes).map(({ row }) => row)).toEqual([23, 24, 22, 21]);
  });

  it('does not treat a missing value as low', () => {
    expect(found([...evenly(), { avg_germination_rate: null, avg_coefficient_of_variation: null }])).toHaveLength(0);
  });
});
