import { describe, expect, it } from 'vitest';
import { FIELDS, isFieldName, InvalidBatch, parseBatch, personName } from './batch';
import { sampleBatch } from './test-data';

describe('FIELDS', () => {
  it('has all eighteen fields, the name first and the id last', () => {
    const names = FIELDS.map((field) => field.name);
    expect([names[0], names.at(-1)]).toEqual(['batch_name', 'batch_id']);
    expect([...names].sort()).toEqual(Object.keys(sampleBatch()).sort());
    expect(FIELDS).toHaveLength(18);
  });

  it('does not accept inherited property names', () => {
    expect(['__proto__', 'constructor', 'toString', ''].some(isFieldName)).toBe(false);
  });
});

describe('parseBatch', () => {
  it('returns what was sent, with exact decimals', () => {
    const batch = sampleBatch({ avg_germination_rate: '999999999999.10', avg_usable_seedlings: '-0.50' });
    expect(parseBatch(JSON.parse(JSON.stringify(batch)))).toEqual(batch);
  });

  it('drops unknown fields', () => {
    const sent = JSON.parse(JSON.stringify({ ...sampleBatch(), tray_colour: 'black' })) as unknown;
    expect(parseBatch(sent)).toEqual(sampleBatch());
  });

  it('keeps unusual texts unchanged', () => {
    const odd = sampleBatch({ batch_id: '\ud800/?#%', crop_type: '__proto__', comment: 'x'.repeat(100_000) });
    expect(parseBatch(odd)).toEqual(odd);
  });

  it('keeps counts of 10^12', () => {
    expect(parseBatch(sampleBatch({ number_of_images: 1e12 })).number_of_images).toBe(1e12);
  });

  it('rejects a batch with a missing field and names it', () => {
    for (const { name } of FIELDS) {
      const { [name]: _, ...rest } = sampleBatch();
      expect(() => parseBatch(rest)).toThrow(new InvalidBatch(name));
    }
  });

  it.each([
    ['batch_id', ''],
    ['batch_id', 7],
    ['batch_name', null],
    ['batch_creation_date', '2026-02-30T00:00:00Z'],
    ['batch_creation_date', '2026-02-03T00:00:00'],
    ['number_of_images', '4'],
    ['number_of_images', 1.5],
    ['avg_germination_rate', 92.5],
    ['avg_germination_rate', 'NaN'],
    ['avg_germination_rate', '1e5'],
    ['avg_germination_rate', '9'.repeat(400)],
    ['comment', {}],
    ['warnings', null],
  ])('rejects %s: %j', (field, value) => {
    expect(() => parseBatch({ ...sampleBatch(), [field]: value })).toThrow(InvalidBatch);
  });

  it.each([null, undefined, 7, 'batch', [], true])('rejects %j', (value) => {
    expect(() => parseBatch(value)).toThrow(InvalidBatch);
  });
});

it.each([
  ['ada.okafor@example.org', 'Ada Okafor'],
  ['m.okafor@example.org', 'M. Okafor'],
  ['anna-lena_meier@example.org', 'Anna-Lena Meier'],
  ['scanner-2@example.org', 'Scanner-2'],
  ['Øyvind@example.org', 'Øyvind'],
  ['night shift', 'night shift'],
  ['@example.org', '@example.org'],
  ['', 'Person not recorded'],
  [null, 'Person not recorded'],
])('the name of %j is %s', (email, name) => expect(personName(email)).toBe(name));
