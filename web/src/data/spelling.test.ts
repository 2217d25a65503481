import { expect, it } from 'vitest';
import { corrected } from './spelling';

const texts = [' viola house 2 \u0000 viola johnny jump up ', ' genovese wk 39 bench 4 \u0000 basil genovese '];

it.each([
  ['voila house 2', 'viola house 2'],
  ['Genvese', 'genovese'],
  ['genoveese 39', 'genovese 39'],
  ['basik', 'basil'],
  ['genofeese', 'genovese'],
])('corrects %j', (search, found) => {
  expect(corrected(search, texts)).toBe(found);
});

it('leaves what is found, short, or too different', () => {
  for (const search of ['geno', 'bas', 'vla', 'tomato', '', 'vlioa hoose2x']) expect(corrected(search, texts)).toBeNull();
});
