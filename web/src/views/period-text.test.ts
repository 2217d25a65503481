import { expect, it } from 'vitest';
import { personName } from './period-text';

it.each([
  ['ada.okafor@example.org', 'Ada Okafor'],
  ['m.okafor@example.org', 'M. Okafor'],
  ['anna-lena_meier@example.org', 'Anna-Lena Meier'],
  ['scanner-2@example.org', 'Scanner-2'],
  ['Øyvind@example.org', 'Øyvind'],
  ['night shift', 'night shift'],
  ['@example.org', '@example.org'],
  ['', 'Unknown operator'],
  [null, 'Unknown operator'],
])('the name of %j is %s', (email, name) => expect(personName(email)).toBe(name));
