import { describe, expect, it } from 'vitest';
import {
  dots,
  headline,
  rowsBy,
  runningStep,
  series,
  stepFor,
  type SeriesPoint,
} from './statistics';
import { allRows, sampleColumns } from './test-data';

const on = (day: string, rate: string | null, crop_type: string | null = 'Tomato') => ({
  batch_creation_date: `${day}T12:00:00Z`,
  avg_germination_rate: rate,
  crop_type,
});

describe('headline', () => {
  it('ignores nulls in a mean', () => {
    const columns = sampleColumns([
      { avg_germination_rate: '90.00', avg_usable_seedling_rate: null, warnings: true },
      { avg_germination_rate: null, avg_usable_seedling_rate: null },
      { avg_germination_rate: '80.00', avg_usable_seedling_rate: null },
    ]);
    expect(headline(columns, allRows(columns))).toEqual({
      batches: 3,
      germination: 85,
      usable: null,
      warnings: 1,
    });
  });

  it('uses only the given rows', () => {
    const columns = sampleColumns([{ avg_germination_rate: '90.00' }, { avg_germination_rate: '10.00' }]);
    expect(headline(columns, Int32Array.of(1)).germination).toBe(10);
    expect(headline(columns, new Int32Array())).toEqual({
      batches: 0,
      germination: null,
      usable: null,
      warnings: 0,
    });
  });
});

it('uses days, weeks or months by the length of the period', () => {
  expect(stepFor({ from: '2026-03-01', to: '2026-03-31' })).toBe('day');
  expect(stepFor({ from: '2026-01-01', to: '2026-03-31' })).toBe('week');
  expect(stepFor({ from: '2025-01-01', to: '2026-06-30' })).toBe('week');
  expect(stepFor({ from: '2024-01-01', to: '2026-03-31' })).toBe('month');
});

it('knows the step that is not over yet', () => {
  const points = (...starts: string[]) => starts.map((start) => ({ start }) as SeriesPoint);
  // Mondays; the first today is a Wednesday.
  const weeks = points('2026-03-02', '2026-03-09', '2026-03-16');
  expect(runningStep(weeks, 'week', '2026-03-18')).toBe(2);
  expect(runningStep(weeks, 'week', '2026-03-23')).toBe(-1);
  expect(runningStep(points('2026-01-01', '2026-02-01'), 'month', '2026-02-28')).toBe(1);
  expect(runningStep(points('2026-03-17', '2026-03-18'), 'day', '2026-03-18')).toBe(1);
});

describe('series', () => {
  it('has every day of the period, with gaps for days without batches', () => {
    const columns = sampleColumns([on('2026-03-01', '90.00'), on('2026-03-01', null), on('2026-03-03', '70.00')]);
    const { step, points: all } = series(columns, allRows(columns), { from: '2026-03-01', to: '2026-03-03' }, 'germination');
    expect(step).toBe('day');
    expect(all).toMatchObject([
      { start: '2026-03-01', batches: 2, mean: 90 },
      { start: '2026-03-02', batches: 0, mean: null },
      { start: '2026-03-03', batches: 1, mean: 70 },
    ]);
  });

  it('starts weeks on Monday', () => {
    // 2026-03-02 is a Monday. By hand, of 50 60 70 80 90 100: the position of 0.1 is 0.5, that of 0.9 is 4.5.
    const rates = ['50.00', '60.00', '70.00', '80.00', '90.00', '100.00'];
    const columns = sampleColumns(rates.map((rate, at) => on(`2026-03-0${at + 2}`, rate)));
    const { step, points: all } = series(columns, allRows(columns), { from: '2026-03-01', to: '2026-04-30' }, 'germination');
    expect(step).toBe('week');
    expect(all[0]!.start).toBe('2026-02-23');
    expect(all[1]).toMatchObject({ start: '2026-03-02', batches: 6, mean: 75 });
    expect(all.at(-1)!.start).toBe('2026-04-27');
  });

  it('starts months on the first, also in leap years', () => {
    const columns = sampleColumns([on('2024-02-29', '90.00')]);
    const { step, points: all } = series(columns, allRows(columns), { from: '2023-06-15', to: '2025-01-02' }, 'germination');
    expect(step).toBe('month');
    expect(all).toHaveLength(20);
    expect(all.filter((point) => point.batches > 0).map((point) => point.start)).toEqual(['2024-02-01']);
  });

  it('ignores rows outside the period', () => {
    const columns = sampleColumns([on('2026-02-28', '1.00'), on('2026-03-01', '90.00'), on('2026-03-02', '1.00')]);
    const { points } = series(columns, allRows(columns), { from: '2026-03-01', to: '2026-03-01' }, 'germination');
    expect(points).toMatchObject([{ batches: 1, mean: 90 }]);
  });
});

it('groups by crop, those with most batches first', () => {
  const crops = ['Basil', '__proto__', '__proto__', null, null, null, 'Aster'];
  const columns = sampleColumns(crops.map((crop) => on('2026-03-01', '90.00', crop)));
  expect(rowsBy('crop', columns, allRows(columns)).map(({ name, rows }) => [name, rows.length])).toEqual([
    [null, 3],
    ['__proto__', 2],
    ['Aster', 1],
    ['Basil', 1],
  ]);
});

describe('dots', () => {
  const columns = sampleColumns([
    ...Array.from({ length: 10 }, (_, at) => ({ avg_median_seedling_size_mm2: `${at}.00` })),
    { avg_median_seedling_size_mm2: null },
    { avg_coefficient_of_variation: null },
  ]);

  it('are the batches with both values', () => {
    const all = dots(columns, allRows(columns));
    expect(all.length).toBe(10);
    expect(all[3]).toEqual({ row: 3, size: 3, variation: 18.2 });
  });
});
