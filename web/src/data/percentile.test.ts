import { expect, it } from 'vitest';
import { mean, percentile, presentValues, splitRows } from './percentile';

it('interpolates as PERCENTILE.INC does', () => {
  const values = Float64Array.of(1, 2, 3, 4);
  // By hand: the position of 0.4 is 0.4·3 = 1.2, a fifth of the way from 2 to 3.
  expect(percentile(values, 0.4)).toBeCloseTo(2.2, 12);
  expect(percentile(values, 0.25)).toBe(1.75);
  expect(percentile(values, 0)).toBe(1);
  expect(percentile(values, 1)).toBe(4);
  expect(percentile(Float64Array.of(15, 20, 35, 40, 50), 0.1)).toBe(17);
});

it('handles one value and none', () => {
  expect(percentile(Float64Array.of(7), 0.9)).toBe(7);
  expect(percentile(new Float64Array(), 0.9)).toBeNull();
  expect(mean(new Float64Array())).toBeNull();
});

it('ignores missing values', () => {
  expect([...presentValues(Float64Array.of(10, NaN, 9, 100), Int32Array.of(0, 1, 3, 2))]).toEqual([10, 100, 9]);
});

it('splits rows by group, in their order, and drops rows without a group', () => {
  const groups = splitRows(Int32Array.of(5, 1, 4, 3, 9), 3, (row) => (row === 9 ? -1 : row % 3));
  expect(groups.map((rows) => [...rows])).toEqual([[3], [1, 4], [5]]);
  expect(splitRows(new Int32Array(), 2, () => 0).map((rows) => rows.length)).toEqual([0, 0]);
});
