import { describe, expect, it } from 'vitest';
import type { Batch } from './batch';
import type { Columns } from './columns';
import { allRows, sampleColumns } from './test-data';
import {
  BATCHES_FOR_RANGE_MIN,
  belowUsualSince,
  findOutliers,
  isUnusual,
  meanFromUsual,
  usualRanges,
  unusualRows,
  ZERO_WEIGHT,
} from './outliers';

/** Germination rates 80.00, 81.00 … 100.00: median 90, quartiles 85 and 95. */
const evenly = (change: Partial<Batch> = {}): Partial<Batch>[] =>
  Array.from({ length: 21 }, (_, at) => ({ avg_germination_rate: `${80 + at}.00`, ...change }));

const rangesOf = (columns: Columns) => usualRanges(columns, allRows(columns));

describe('usualRanges', () => {
  const ranges = (changes: Partial<Batch>[]) => rangesOf(sampleColumns(changes));

  const rates = (count: number, from: number, step: number): Partial<Batch>[] =>
    Array.from({ length: count }, (_, at) => ({ avg_germination_rate: (from + at * step).toFixed(2) }));

  it('reach three times as far as the quartiles, and a point further', () => {
    // Median 92, quartiles 91 and 93.
    const usual = rates(41, 90, 0.1);
    expect(ranges(usual).get('Tomato')).toMatchObject({ batches: 41, germination: { low: 89, high: 94 } });
    expect(ranges(usual).get('Tomato')?.germination?.mean).toBeCloseTo(92);
    const extremes = [{ avg_germination_rate: '20.00' }, { avg_germination_rate: '99.90' }];
    expect(ranges([...usual, ...extremes]).get('Tomato')?.germination).toMatchObject({ low: 87, high: 97 });
    expect(ranges(usual).get('Tomato')?.variation).toMatchObject({ low: 17, high: 19 });
  });

  it('are not widened by a bad spell', () => {
    const [usual, bad] = [rates(140, 88, 0.05), rates(60, 45, 0.2)];
    const { low, high } = ranges([...usual, ...bad]).get('Tomato')!.germination!;
    expect(low).toBeGreaterThan(75);
    expect(low).toBeLessThan(88);
    expect(high).toBe(95);
    const columns = sampleColumns([...usual, ...bad]);
    const found = findOutliers(columns, allRows(columns), ranges([...usual, ...bad]));
    expect(found.map(({ row }) => row).sort((a, b) => a - b)).toEqual(bad.map((_, at) => usual.length + at));
  });

  it('need twenty batches with the value', () => {
    expect(ranges(evenly().slice(0, BATCHES_FOR_RANGE_MIN - 1)).size).toBe(0);
    const sparse = evenly().map((change, at) => (at < 2 ? { ...change, avg_usable_seedling_rate: null } : change));
    expect(ranges(sparse).get('Tomato')).toMatchObject({ usable: null, germination: { low: 79 } });
  });

  it('do not exist for batches without a crop', () => {
    expect([...ranges(evenly({ crop_type: null })).keys()]).toEqual([]);
  });
});

describe('findOutliers', () => {
  const found = (changes: Partial<Batch>[]) => {
    const columns = sampleColumns(changes);
    return findOutliers(columns, allRows(columns), rangesOf(columns));
  };

  it('finds nothing among evenly spread batches', () => {
    expect(found(evenly())).toEqual([]);
  });

  it('compares with the given spreads, whatever the other batches', () => {
    const year = sampleColumns(evenly());
    const today = sampleColumns([{ avg_germination_rate: '40.00' }, { avg_germination_rate: '89.00' }]);
    expect(findOutliers(today, allRows(today), new Map())).toEqual([]);
    const rows = findOutliers(today, allRows(today), rangesOf(year));
    expect(rows.map(({ row }) => row)).toEqual([0]);
    expect(rows[0]!.reasons[0]).toMatchObject({ range: { low: 79, mean: 90, high: 100 } });
  });

  it('finds low germination, not high', () => {
    const rows = found([...evenly(), { avg_germination_rate: '40.00' }, { avg_germination_rate: '140.00' }]);
    expect(rows.map(({ row }) => row)).toEqual([21]);
    expect(rows[0]!.reasons).toEqual([
      { kind: 'low-germination', value: 40, range: expect.objectContaining({ mean: 90 }) as object },
    ]);
    expect(rows[0]!.weight).toBeGreaterThan(30);
  });

  it('finds a low usable rate, also with usual germination', () => {
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
    expect(kinds.get(65)).toEqual(['low-germination', 'low-usable']);
    expect(unusualRows(rows)).toMatchObject({
      avg_germination_rate: new Map([64, 65].map((row) => [row, expect.anything()])),
      avg_usable_seedling_rate: new Map([63, 64, 65].map((row) => [row, expect.anything()])),
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

  it('ignores a difference of a few cells', () => {
    const alike = Array.from({ length: 30 }, () => ({ avg_germination_rate: '99.50' }));
    expect(found([...alike, { avg_germination_rate: '97.00' }])).toHaveLength(0);
    expect(found([...alike, { avg_germination_rate: '94.40' }])).toHaveLength(1);
  });

  it('finds warnings in any crop, with the lowest weight', () => {
    const changes = [...evenly(), { avg_germination_rate: '40.00' }, { crop_type: 'Rare', warnings: true }];
    const rows = found(changes);
    expect(rows.map(({ row }) => row)).toEqual([21, 22]);
    expect(rows[1]).toEqual({ row: 22, reasons: [{ kind: 'warning', isMeasured: true }], weight: 0 });
  });

  it('ranks zero germination first, with or without a usual range', () => {
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
      reasons: [{ kind: 'low-germination', value: 0, range: null }],
      weight: ZERO_WEIGHT,
    });
  });

  it('lists the strongest first, and of equal ones the newest', () => {
    const on = (day: number, change: Partial<Batch>) => ({ ...change, batch_creation_date: `2026-03-0${day}T00:00:00Z` });
    const changes = [
      ...evenly(),
      on(3, { avg_germination_rate: '20.00' }),
      on(4, { warnings: true }),
      on(4, { avg_germination_rate: '40.00' }),
      on(4, { warnings: true }),
    ];
    expect(found(changes).map(({ row }) => row)).toEqual([21, 23, 24, 22]);
  });

  it('ignores a value that rounds to the end of the range', () => {
    const year = sampleColumns(evenly());
    const today = sampleColumns([{ avg_germination_rate: '78.50' }, { avg_germination_rate: '78.49' }]);
    expect(findOutliers(today, allRows(today), rangesOf(year)).map(({ row }) => row)).toEqual([1]);
    const range = rangesOf(year).get('Tomato')!.germination!;
    expect([78.5, 78.49].map((value) => isUnusual('avg_germination_rate', value, range))).toEqual([false, true]);
    expect(isUnusual('avg_germination_rate', 130, range)).toBe(false);
    expect(isUnusual('avg_median_seedling_size_mm2', 0, range)).toBe(false);
  });

  it('does not treat a missing value as low', () => {
    expect(found([...evenly(), { avg_germination_rate: null, avg_coefficient_of_variation: null }])).toHaveLength(0);
  });
});

it('measures the distance from what is usual of each crop', () => {
  const columns = sampleColumns([...evenly(), ...evenly({ crop_type: 'Leek', avg_germination_rate: '60.00' })]);
  const ranges = rangesOf(columns);
  const mean = (...rows: number[]) => meanFromUsual(columns, Int32Array.from(rows), ranges, 'germination')!;
  // 80 and 84 of 90, and 60 of 60.
  expect(mean(0, 4, 21, 22).points).toBeCloseTo(-4);
  expect(mean(0, 4).points).toBeCloseTo(-8);
  expect(mean(0, 21).usual).toBeCloseTo(75);
  expect(meanFromUsual(columns, allRows(columns), new Map(), 'germination')).toBeNull();
});

it('counts a failed batch as the end of the usual range', () => {
  const columns = sampleColumns([...evenly(), { avg_germination_rate: '0.00' }]);
  const ranges = rangesOf(columns);
  const { low, mean } = ranges.get('Tomato')!.germination!;
  expect(low).toBeGreaterThan(70);
  expect(meanFromUsual(columns, Int32Array.of(21), ranges, 'germination')!.points).toBeCloseTo(low - mean);
  expect(meanFromUsual(columns, allRows(columns), ranges, 'germination')!.points).toBeCloseTo(0);
});

it('finds since when the steps are below the mean, of at least three', () => {
  const columns = sampleColumns(evenly());
  const ranges = rangesOf(columns);
  // Row 10 has the mean of 90; a step without batches is ignored.
  const since = (...rows: (number | null)[]): unknown => {
    const steps = rows.map((row, at) => ({ start: `step ${at}`, rows: Int32Array.from(row === null ? [] : [row]) }));
    return belowUsualSince(steps, columns, ranges, 'germination');
  };
  expect(since(12, 12, 6, 6, 9, 6)).toEqual({ start: 'step 2', mean: 86.75 });
  expect(since(12, 12, 6, 6, null, 11, 6), 'one good step').toEqual({ start: 'step 2', mean: 87.25 });
  expect(since(12, 12, 12, 10, 4, 4, 4), 'starts with a step that is below').toMatchObject({ start: 'step 4' });
  expect(since(6, 6)).toBeNull();
  expect(since(6, 6, 6, 12, 12)).toBeNull();
  expect(since()).toBeNull();
});
