import { describe, expect, it } from 'vitest';
import type { Batch } from './batch';
import { allRows, sampleColumns } from './sample';
import { BATCHES_FOR_USUAL, NOTHING_WEIGHT, standOuts, STAND_OUT_IQRS, usual, WARNING_WEIGHT } from './usual';

/** Germination rates 80.00, 81.00 … 100.00: median 90, quartiles 85 and 95. */
const evenly = (change: Partial<Batch> = {}): Partial<Batch>[] =>
  Array.from({ length: 21 }, (_, at) => ({ avg_germination_rate: `${80 + at}.00`, ...change }));

describe('usual', () => {
  it('is the 5th, 50th and 95th percentile', () => {
    const columns = sampleColumns(evenly());
    expect(usual(columns, allRows(columns)).get(0)).toMatchObject({
      crop: 'Tomato',
      batches: 21,
      germination: { low: 81, median: 90, high: 99 },
      variation: { low: 18.2, median: 18.2, high: 18.2 },
    });
  });

  it('is unknown below twenty batches, and for values that fewer have', () => {
    const few = sampleColumns(evenly().slice(0, BATCHES_FOR_USUAL - 1));
    expect(usual(few, allRows(few)).size).toBe(0);
    const sparse = sampleColumns(
      evenly().map((change, at) => (at < 2 ? { ...change, avg_usable_seedling_rate: null } : change)),
    );
    const found = usual(sparse, allRows(sparse)).get(0)!;
    expect(found.usable).toBeNull();
    expect(found.germination).not.toBeNull();
  });

  it('keeps batches without a crop under -1', () => {
    const columns = sampleColumns(evenly({ crop_type: null }));
    expect(usual(columns, allRows(columns)).get(-1)!.crop).toBeNull();
  });
});

describe('standOuts', () => {
  const found = (changes: Partial<Batch>[], max = 10) => {
    const columns = sampleColumns(changes);
    return standOuts(columns, allRows(columns), max);
  };

  it('finds nothing among batches that are evenly spread', () => {
    expect(found(evenly())).toEqual({ found: [], of: 0 });
  });

  it('finds germination far under the median, but not far over it', () => {
    const { found: rows } = found([...evenly(), { avg_germination_rate: '40.00' }, { avg_germination_rate: '140.00' }]);
    expect(rows.map(({ row }) => row)).toEqual([21]);
    expect(rows[0]!.reasons).toEqual([
      { kind: 'low-germination', value: 40, usual: expect.objectContaining({ median: 90 }) as object },
    ]);
    expect(rows[0]!.weight).toBeGreaterThan(STAND_OUT_IQRS);
  });

  it('finds variation far over the median, but not far under it', () => {
    const { found: rows } = found([
      ...evenly(),
      { avg_coefficient_of_variation: '40.00' },
      { avg_coefficient_of_variation: '1.00' },
    ]);
    expect(rows.map(({ row, reasons }) => [row, reasons[0]!.kind])).toEqual([[21, 'high-variation']]);
  });

  it('makes no mountain of one cell where all batches are alike', () => {
    const alike = Array.from({ length: 30 }, () => ({ avg_germination_rate: '99.50' }));
    expect(found([...alike, { avg_germination_rate: '99.00' }]).of).toBe(0);
    expect(found([...alike, { avg_germination_rate: '98.00' }]).of).toBe(1);
  });

  it('finds warnings in any crop, weaker than any value that stands out', () => {
    const changes = [...evenly(), { avg_germination_rate: '40.00' }, { crop_type: 'Rare', warnings: true }];
    const { found: rows } = found(changes);
    expect(rows.map(({ row }) => row)).toEqual([21, 22]);
    expect(rows[1]).toEqual({ row: 22, reasons: [{ kind: 'warning' }], weight: WARNING_WEIGHT });
    expect(WARNING_WEIGHT).toBeLessThan(STAND_OUT_IQRS);
  });

  it('finds what did not germinate at all first, whether or not its crop has a usual range', () => {
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
      reasons: [{ kind: 'low-germination', value: 0, usual: null }],
      weight: NOTHING_WEIGHT,
    });
  });

  it('puts the stronger first, then the newer, and says how many there are', () => {
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
    const { found: rows, of } = found(changes, 3);
    expect(rows.map(({ row }) => row)).toEqual([24, 23, 22]);
    expect(of).toBe(4);
  });

  it('does not take a missing value for a low one', () => {
    expect(found([...evenly(), { avg_germination_rate: null, avg_coefficient_of_variation: null }]).of).toBe(0);
  });
});
