import { expect, it } from 'vitest';
import type { Batch } from './batch';
import { morningOf, placesText } from './morning';
import { plusDays } from './period';
import { allRows, sampleColumns } from './test-data';
import { usualRanges } from './usual';

// A Wednesday.
const TODAY = '2026-03-11';
const on = (daysAgo: number, change: Partial<Batch> = {}): Partial<Batch> => ({
  batch_creation_date: `${plusDays(TODAY, -daysAgo)}T08:00:00Z`,
  ...change,
});
const usual = Array.from({ length: 20 }, () => on(20));

function morning(changes: Partial<Batch>[], seen: string[] = []) {
  const columns = sampleColumns([...usual, ...changes]);
  const rows = allRows(columns);
  return morningOf(columns, rows, usualRanges(columns, rows), TODAY, (id) => seen.includes(id));
}

it('counts the batches since yesterday, newest first', () => {
  const { recent, compared, open, seen } = morning([on(2), on(1), on(0, { crop_type: 'Rare' })]);
  expect([...recent]).toEqual([22, 21]);
  expect([compared, open.length, seen.length]).toEqual([1, 0, 0]);
});

it('lists new ones before earlier ones, and the worst first', () => {
  const changes = [
    on(3, { avg_germination_rate: '1.00' }),
    on(1, { warnings: true }),
    on(1, { avg_germination_rate: '70.00' }),
    on(0, { avg_germination_rate: '41.00' }),
    on(0, { avg_coefficient_of_variation: '60.00' }),
  ];
  const { open, newlyOpen } = morning(changes);
  expect(open.map(({ row }) => row)).toEqual([23, 22, 24, 21, 20]);
  expect(newlyOpen).toBe(4);
});

it('drops those that are seen or older than seven days', () => {
  const failed = { avg_germination_rate: '41.00' };
  const { open, seen } = morning([on(7, failed), on(6, failed), on(1, { ...failed, crop_type: 'Leek' }), on(0, failed)], ['b-22', 'b-23']);
  expect(open.map(({ row }) => row)).toEqual([21]);
  expect(seen.flatMap(({ batches }) => batches).map(({ row }) => row)).toEqual([23, 22]);
});

it('has a row for each crop by name, and always for one that needs a look', () => {
  const crops = Array.from({ length: 12 }, (_, at) => on(1, { crop_type: `Crop ${at}` }));
  const { crops: rows, omitted } = morning([
    ...crops,
    ...crops,
    on(0, { crop_type: 'Zinnia', warnings: true }),
    on(0, { crop_type: null }),
    on(0, { crop_type: 'Never measured', avg_germination_rate: null }),
  ]);
  expect(rows.map(({ name }) => name)).toContain('Zinnia');
  expect(rows.map(({ name }) => name)).toEqual(rows.map(({ name }) => name).sort());
  expect([rows.length, omitted]).toEqual([10, 5]);
});

it('names the places of batches, or else their crops', () => {
  const textOf = (...names: string[]) => {
    const columns = sampleColumns(names.map((batch_name) => ({ batch_name })));
    return placesText(columns, names.map((_, row) => ({ row, reasons: [], isNew: true })));
  };
  expect(textOf('house 7', 'H5, bench 7', 'House 6', 'House 5')).toBe('House 5–7');
  expect(textOf('bench 10', 'bench 9', 'House 3a', 'tray')).toBe('Bench 9, 10, House 3a, Tomato');
  expect(textOf(...[1, 3, 5, 7, 9, 11, 13].map((at) => `Bench ${at}`))).toBe('Bench 1, 3, 5, 7, 9, 11 …');
});

it('puts together what several have in common: a place or a crop', () => {
  const failed = (change: Partial<Batch>) => on(1, { avg_germination_rate: '41.00', ...change });
  const groupsOf = (changes: Partial<Batch>[]) =>
    morning(changes).groups.map(({ cause, batches }) => [cause?.kind ?? null, cause?.name ?? null, batches.length]);
  const places = ['House 3, bench 4', 'greenhouse 3', 'Leek', 'house 3', 'Basil H3', 'Haus 3', 'H7996, 12h3'].map((batch_name, at) =>
    failed({ batch_name, crop_type: `Crop ${at}`, comment: at === 2 ? 'Fell over in HOUSE  3.' : null }),
  );
  expect(groupsOf(places)).toEqual([[null, null, 1], ['place', 'House 3', 5], [null, null, 1]]);
  expect(groupsOf([failed({}), failed({}), failed({}), failed({ crop_type: 'Leek' })])).toEqual([[null, null, 1], ['crop', 'Tomato', 3]]);
  const crops = (count: number) => Array.from({ length: count }, (_, at) => failed({ crop_type: at === 0 ? null : `Crop ${at}` }));
  expect(groupsOf(crops(4)).length, 'only the day').toBe(4);
});
