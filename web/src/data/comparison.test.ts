import { expect, it } from 'vitest';
import { differentCrops } from './comparison';
import { sampleColumns } from './test-data';

const crops = (...names: string[]) => {
  const columns = sampleColumns(names.map((crop_type) => ({ crop_type })));
  const rows = Int32Array.from(names, (_, at) => at);
  return differentCrops(columns, rows.subarray(0, 4), rows.subarray(4));
};

it('finds two people who scanned different crops, and what they have in common', () => {
  const found = crops('Leek', 'Leek', 'Leek', 'Basil', 'Kale', 'Kale', 'Basil');
  expect(found).toEqual({ a: 'Leek', b: 'Kale', shared: ['Basil'] });
  expect(crops('Leek', 'Leek', 'Leek', 'Leek', 'Kale')).toMatchObject({ shared: [] });
});

it('finds no difference between people who scanned much the same', () => {
  expect(crops('Leek', 'Leek', 'Leek', 'Basil', 'Leek')).toBeNull();
  // The main crop differs, but half is in common.
  expect(crops('Leek', 'Leek', 'Basil', 'Basil', 'Basil', 'Basil', 'Leek', 'Kale')).toBeNull();
  expect(crops('Leek', 'Leek', 'Leek', 'Leek')).toBeNull();
});
