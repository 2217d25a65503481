import { describe, expect, it } from 'vitest';
import { FIELDS, isFieldName, MalformedBatch, parseBatch, reportLink } from './batch';
import { sampleBatch } from './sample';

describe('FIELDS', () => {
  it('names all eighteen fields of a batch in the order of the interface', () => {
    expect(FIELDS.map((field) => field.name)).toEqual(Object.keys(sampleBatch()));
    expect(FIELDS).toHaveLength(18);
  });

  it('takes nothing that objects inherit for a field', () => {
    expect(['__proto__', 'constructor', 'toString', ''].some(isFieldName)).toBe(false);
  });
});

describe('parseBatch', () => {
  it('gives back what was sent, decimals to the digit', () => {
    const batch = sampleBatch({ avg_germination_rate: '999999999999.10', avg_usable_seedlings: '-0.50' });
    expect(parseBatch(JSON.parse(JSON.stringify(batch)))).toEqual(batch);
  });

  it('leaves fields it does not know behind', () => {
    const sent = JSON.parse(JSON.stringify({ ...sampleBatch(), tray_colour: 'black' })) as unknown;
    expect(parseBatch(sent)).toEqual(sampleBatch());
  });

  it('keeps odd texts as they are', () => {
    const odd = sampleBatch({ batch_id: '\ud800/?#%', crop_type: '__proto__', comment: 'x'.repeat(100_000) });
    expect(parseBatch(odd)).toEqual(odd);
  });

  it('keeps counts of 10^12', () => {
    expect(parseBatch(sampleBatch({ number_of_images: 1e12 })).number_of_images).toBe(1e12);
  });

  it('refuses a batch that lacks any one field, and names it', () => {
    for (const { name } of FIELDS) {
      const { [name]: _, ...rest } = sampleBatch();
      expect(() => parseBatch(rest)).toThrow(new MalformedBatch(name));
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
  ])('refuses %s as %j', (field, value) => {
    expect(() => parseBatch({ ...sampleBatch(), [field]: value })).toThrow(MalformedBatch);
  });

  it.each([null, undefined, 7, 'batch', [], true])('refuses %j as a batch', (value) => {
    expect(() => parseBatch(value)).toThrow(MalformedBatch);
  });
});

describe('reportLink', () => {
  it('follows http and https only', () => {
    const link = (analysis_link: string | null): string | null => reportLink(sampleBatch({ analysis_link }));
    expect(link('https://example.org/a?b=c#d')).toBe('https://example.org/a?b=c#d');
    expect(link('HTTP://example.org')).toBe('HTTP://example.org');
    for (const bad of [
      'javascript:alert(1)',
      'data:text/html,x',
      '//example.org',
      '/r/1',
      'https:///',
      ' https://x',
      null,
    ]) {
      expect(link(bad)).toBeNull();
    }
  });
});
