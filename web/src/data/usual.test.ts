import { describe, expect, it } from 'vitest';
import type { Batch } from './batch';
import type { Columns } from './columns';
import { dayNumber } from '../time/day';
import { averages, BATCHES_FOR_RANGE_MIN, countBelow, findUnusual, isSevere, isUnusual, pointsOutside, usualRanges } from './usual';
import { allRows, sampleColumns } from './test-data';

/** Germination rates 80.00, 81.00 … 100.00. By hand: 10 % of 21 values are 82, 90 % are 98. */
const evenly = (change: Partial<Batch> = {}): Partial<Batch>[] =>
  Array.from({ length: 21 }, (_, at) => ({ avg_germination_rate: `${80 + at}.00`, ...change }));

const rangesOf = (columns: Columns) => usualRanges(columns, allRows(columns));

describe('usualRanges', () => {
  const ranges = (changes: Partial<Batch>[]) => rangesOf(sampleColumns(changes));

  it('are the middle 80 % in whole numbers, and the plain average', () => {
    expect(ranges(evenly()).get('Tomato')).toMatchObject({
      batches: 21,
      germination: { low: 82, high: 98, mean: 90 },
      variation: { low: 18, high: 18 },
    });
    const failed = ranges([...evenly(), { avg_germination_rate: '0.00' }]).get('Tomato')!.germination!;
    expect(failed.mean).toBeCloseTo((90 * 21) / 22);
  });

  it('need ten batches with the value', () => {
    expect(ranges(evenly().slice(0, BATCHES_FOR_RANGE_MIN - 1)).size).toBe(0);
    const sparse = evenly().map((change, at) => (at < 12 ? { ...change, avg_usable_seedling_rate: null } : change));
    expect(ranges(sparse).get('Tomato')).toMatchObject({ usable: null, germination: { low: 82 } });
  });

  it('do not exist for batches without a crop', () => {
    expect([...ranges(evenly({ crop_type: null })).keys()]).toEqual([]);
  });
});

describe('findUnusual', () => {
  const found = (changes: Partial<Batch>[], year = evenly()) => {
    const columns = sampleColumns(changes);
    return findUnusual(columns, allRows(columns), rangesOf(sampleColumns(year)));
  };
  const germination = (...rates: string[]) => rates.map((avg_germination_rate) => ({ avg_germination_rate }));

  it('finds a rate five points below the range or more, as rounded, and none above', () => {
    const rows = found(germination('80.00', '77.50', '77.49', '41.00', '140.00'));
    expect(rows.map(({ row }) => row)).toEqual([2, 3]);
    expect(rows[1]!.reasons).toEqual([{ kind: 'low-germination', field: 'avg_germination_rate', value: 41, range: { low: 82, high: 98, mean: 90 } }]);
  });

  it('finds a low usable rate, first if it is far worse than the germination, and a high variation, not a low one', () => {
    const rows = found([
      { avg_usable_seedling_rate: '50.00' },
      { avg_coefficient_of_variation: '40.00' },
      { avg_coefficient_of_variation: '1.00' },
      { avg_germination_rate: '40.00', avg_usable_seedling_rate: '40.00' },
      { avg_germination_rate: '75.00', avg_usable_seedling_rate: '30.00' },
      { avg_germination_rate: '75.00', avg_usable_seedling_rate: '69.00' },
      { avg_germination_rate: '75.00', avg_usable_seedling_rate: '71.00' },
    ]);
    expect(rows.map(({ row, reasons }) => [row, reasons.map(({ kind }) => kind)])).toEqual([
      [0, ['low-usable']],
      [1, ['high-variation']],
      [3, ['low-germination', 'low-usable']],
      [4, ['low-usable', 'low-germination']],
      [5, ['low-usable', 'low-germination']],
      [6, ['low-germination', 'low-usable']],
    ]);
    expect(rows.map(({ reasons }) => [isSevere(reasons), isSevere(reasons.slice(0, 1))]), 'the number that is shown is as red as its batch').toEqual(
      [true, false, true, true, true, false].map((severe) => [severe, severe]),
    );
  });

  it('finds warnings, and less than half in a crop without a range', () => {
    const rare = { crop_type: 'Rare' };
    const rows = found([
      { ...rare, avg_germination_rate: '41.00' },
      { ...rare, avg_germination_rate: '49.60' },
      { ...rare, warnings: true, avg_germination_rate: null },
    ]);
    expect(rows).toEqual([
      { row: 0, reasons: [{ kind: 'low-germination', field: 'avg_germination_rate', value: 41, range: null }] },
      { row: 2, reasons: [{ kind: 'warning', isMeasured: false }] },
    ]);
  });

  it('does not treat a missing value as low', () => {
    const missing = { avg_germination_rate: null, avg_usable_seedling_rate: null, avg_coefficient_of_variation: null };
    expect(found([missing, { ...missing, crop_type: null }])).toEqual([]);
  });
});

it('compares what people read: a value that rounds to the end of the range is in it', () => {
  const range = { low: 76, high: 95, mean: 88 };
  expect([75.5, 75.49, 95.49, 96].map((value) => pointsOutside(value, range))).toEqual([0, -1, 0, 1]);
  expect(isUnusual('avg_germination_rate', 0, { low: 0, high: 50, mean: 20 })).toBe(true);
  expect(isUnusual('avg_median_seedling_size_mm2', 0, range)).toBe(false);
});

it('counts the last six batches below the usual range', () => {
  const columns = sampleColumns(['10.00', '81.49', '82.00', '81.00', '90.00', '41.00', '70.00'].map((avg_germination_rate) => ({ avg_germination_rate })));
  const range = { low: 82, high: 98, mean: 90 };
  expect(countBelow(columns, allRows(columns), range)).toEqual({ below: 4, last: 6 });
  expect(countBelow(columns, allRows(columns).slice(0, 2), range)).toEqual({ below: 2, last: 2 });
});

it('compares the plain average of four weeks with that of the year', () => {
  const on = (day: string, rate: string) => ({ batch_creation_date: `${day}T08:00:00Z`, avg_germination_rate: rate });
  const before = Array.from({ length: 10 }, () => on('2026-01-05', '95.00'));
  const after = (count: number, rate: string) => Array.from({ length: count }, () => on('2026-03-02', rate));
  const of = (changes: Partial<Batch>[], ...failures: number[]) => {
    const columns = sampleColumns(changes);
    return averages(columns, allRows(columns), dayNumber('2026-02-09'), 'germination', new Set(failures));
  };
  expect(of([...before, ...after(10, '85.00')])).toEqual({ weeks: 85, year: 90, change: -5, declineSince: '2026-03-02', isFalling: false });
  expect(of([...before, ...after(4, '60.00')]).declineSince, 'few batches').toBeNull();
  expect(of([...before, ...after(10, '91.00')]).declineSince, 'few points').toBeNull();
  const oneFailed = [...before, ...after(9, '95.00'), ...after(1, '5.00')];
  expect(of(oneFailed, 19), 'a failure').toMatchObject({ weeks: 86, year: 90.5, declineSince: null });
  expect(of(before)).toEqual({ weeks: null, year: 95, change: null, declineSince: null, isFalling: false });
  // By hand: four weeks are 88.2 and the year 92.4 on average, so weeks below 90.3 count. One good batch does not end it.
  const weekly = ['2026-01-05', '2026-01-13', '2026-01-21', '2026-02-06', '2026-02-10', '2026-02-18', '2026-02-26', '2026-03-02', '2026-03-09'];
  const rates = ['96.00', '84.00', '96.00', '89.00', '88.00', '87.00', '88.00', '87.00', '91.00'];
  const slow = weekly.map((day, at) => on(day, rates[at]!));
  expect(of([...slow.slice(0, 3), ...before, ...slow.slice(3)])).toMatchObject({ weeks: 88.2, declineSince: '2026-02-02', isFalling: false });
  // The later half of the weeks is 3 points below the earlier one.
  const worse = ['88.00', '88.00', '85.00', '82.00'].map((rate, at) => on(weekly[at + 4]!, rate));
  expect(of([...before, ...worse, on(weekly[8]!, '82.00')])).toMatchObject({ declineSince: '2026-02-09', isFalling: true });
  // Two good weeks do: four weeks are 85.4 on average, and the last two are as good as the year.
  const over = ['80.00', '79.00', '80.00', '94.00', '94.00'].map((rate, at) => on(weekly[at + 4]!, rate));
  expect(of([...before, ...over]), 'two good weeks').toMatchObject({ weeks: 85.4, declineSince: null });
});
