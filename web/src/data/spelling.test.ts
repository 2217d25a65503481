import { expect, it } from 'vitest';
import { corrected, knownWords } from './spelling';
import { sampleColumns } from './test-data';

const known = knownWords([
  sampleColumns([
    { batch_name: 'Viola House 2', crop_type: 'Viola Johnny Jump Up', comment: 'next to genovese and möhre' },
    { batch_name: 'Genovese wk 39 bench 4', crop_type: 'Basil Genovese', scanned_by_email: 'ines.moreau@example.org' },
    { batch_name: 'M 7', crop_type: "Möhre 'Nantaise'" },
  ]),
]);

it.each([
  ['voila house 2', 'Viola house 2'],
  ['Genvese', 'Genovese'],
  ['genoveese 39', 'Genovese 39'],
  ['basik', 'Basil'],
  ['genofeese', 'Genovese'],
  ['moohre', 'Möhre'],
  ['möhren nantase', 'möhren Nantaise'],
  ['inez moraeu', 'Ines Moreau'],
])('corrects %j to a word as it is written', (search, found) => {
  expect(corrected(search, known)).toBe(found);
});

it('leaves what is found, short, or too different', () => {
  for (const search of ['geno', 'bas', 'vla', 'tomato', '', 'vlioa hoose2x', 'Möhren']) expect(corrected(search, known)).toBeNull();
});
