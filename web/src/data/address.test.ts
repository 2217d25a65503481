import { describe, expect, it } from 'vitest';
import { defaultView, hasBrokenWindow, LIST_MAX, read, takeSignIn, TEXT_CHARS_MAX, write, type View } from './address';
import { FIELDS } from './batch';
import { dayNumber, dayText } from './day';
import { chance } from './sample';

const TODAY = '2026-03-02';
const at = (path: string): URL => new URL(path, 'https://scan.example.org');

it('tells dates that make no window from none at all', () => {
  const broken = ['from=2026-03-09&to=2026-03-02', 'from=x&to=y', 'from=1900-01-01&to=2026-01-01', 'from=2026-03-02'];
  for (const dates of broken) expect(hasBrokenWindow(at(`/?${dates}`))).toBe(true);
  for (const fine of ['', 'q=a', 'from=2026-03-02&to=2026-03-02'])
    expect(hasBrokenWindow(at(`/?${fine}`))).toBe(false);
});

const ODD = [
  'a/b',
  'ü',
  '日本',
  '🌱',
  '?',
  '#',
  '%',
  '%2F',
  '%zz',
  '&',
  '=',
  '+',
  ' ',
  '.',
  '..',
  '...',
  '\\',
  ':',
  ';',
  ',',
  '"',
  '<',
  "'",
  '__proto__',
  '\u0000',
  '~',
  '-x',
];

/** A view made by chance out of all that a view can hold. */
function anyView(random: () => number): View {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
  const some = <T>(from: readonly T[], max: number): T[] => [
    ...new Set(Array.from({ length: Math.floor(random() * max) }, () => pick(from))),
  ];
  const text = (): string => Array.from({ length: 1 + Math.floor(random() * 3) }, () => pick(ODD)).join('');
  const first = dayNumber('2020-01-01') + Math.floor(random() * 2000);
  const fields = some(
    FIELDS.map((field) => field.name),
    10,
  );
  return {
    screen: pick<View['screen']>([
      { name: 'overview' },
      { name: 'table' },
      { name: 'batch', id: text() },
      { name: 'batch', id: pick(ODD) },
    ]),
    window: { from: dayText(first), to: dayText(first + Math.floor(random() * 900)) },
    filter: {
      crops: some(['', ...ODD], 4),
      warnings: pick(['all', 'with', 'without']),
      scanners: some(['', ...ODD], 4),
      text: pick(['', text()]),
    },
    sort: { field: pick(FIELDS).name, descending: random() < 0.5 },
    fields: fields.length === 0 ? defaultView(TODAY).fields : fields,
  };
}

describe('read and write', () => {
  it('give every view back', () => {
    const random = chance(3);
    for (let round = 0; round < 3_000; round++) {
      const view = anyView(random);
      expect(read(at(write(view, TODAY)), TODAY)).toEqual(view);
    }
  });

  it('leave defaults out', () => {
    expect(write(defaultView(TODAY), TODAY)).toBe('/');
    expect(write({ ...defaultView(TODAY), screen: { name: 'table' } }, TODAY)).toBe('/batches');
    expect(read(at('/'), TODAY)).toEqual(defaultView(TODAY));
    expect(read(at('/'), TODAY).window).toEqual({ from: '2025-12-03', to: TODAY });
  });

  it('read like a sentence', () => {
    const view: View = {
      ...defaultView(TODAY),
      screen: { name: 'batch', id: 'a/b c' },
      window: { from: '2026-01-01', to: '2026-01-31' },
      filter: { crops: ['Tomato', ''], warnings: 'with', scanners: ['a@x.org'], text: 'dry' },
      sort: { field: 'batch_name', descending: false },
      fields: ['batch_id', 'warnings'],
    };
    expect(write(view, TODAY)).toBe(
      '/batches/a%2Fb%20c?from=2026-01-01&to=2026-01-31&crop=Tomato&crop=&warnings=with&by=a%40x.org&q=dry&sort=batch_name&fields=batch_id%2Cwarnings',
    );
  });

  it('share nothing that a caller could change for others', () => {
    read(at('/'), TODAY).filter.crops.push('Tomato');
    read(at('/'), TODAY).fields.pop();
    expect(read(at('/'), TODAY)).toEqual(defaultView(TODAY));
  });
});

describe('read', () => {
  it('falls back, part by part', () => {
    const view = read(
      at('/batches?from=2026-01-01&to=nonsense&warnings=maybe&sort=-constructor&fields=__proto__,,x&crop=Basil'),
      TODAY,
    );
    expect(view).toEqual({
      ...defaultView(TODAY),
      screen: { name: 'table' },
      filter: { ...defaultView(TODAY).filter, crops: ['Basil'] },
    });
  });

  it.each([
    ['/batches/', { name: 'table' }],
    ['/batches/%E0%A4%A', { name: 'table' }],
    ['/batches/a/b', { name: 'batch', id: 'a/b' }],
    ['/batches?id=x', { name: 'table' }],
    ['/batchesque', { name: 'overview' }],
    ['/anything/else', { name: 'overview' }],
  ])('takes %s for %j', (path, screen) => expect(read(at(path), TODAY).screen).toEqual(screen));

  it('keeps known fields among unknown ones, each once', () => {
    expect(read(at('/batches?fields=warnings,nope,batch_id,warnings'), TODAY).fields).toEqual(['warnings', 'batch_id']);
  });

  it('holds its limits', () => {
    const many = Array.from({ length: LIST_MAX + 50 }, (_, index) => `crop=${index}`).join('&');
    const view = read(at(`/?${many}&q=${'x'.repeat(TEXT_CHARS_MAX - 1)}${encodeURIComponent('🌱')}`), TODAY);
    expect(view.filter.crops).toHaveLength(LIST_MAX);
    expect(view.filter.text).toBe('x'.repeat(TEXT_CHARS_MAX - 1));
  });

  it('never throws, and what it makes of garbage is stable', () => {
    const random = chance(5);
    const crumbs = [
      '/batches',
      '/',
      '%',
      '%zz',
      '%E0',
      '?',
      '&',
      '=',
      'from',
      'to',
      '2026-02-30',
      '9999-99-99',
      'sort',
      'fields',
      'crop',
      'q',
      '-',
      ',',
      '#',
      '\ud800',
      '\u0000',
      '🌱',
      '..',
      'id=..',
    ];
    for (let round = 0; round < 3_000; round++) {
      const path =
        '/' +
        Array.from({ length: Math.floor(random() * 12) }, () => crumbs[Math.floor(random() * crumbs.length)]!).join('');
      let url: URL;
      try {
        url = at(path);
      } catch {
        continue; // No browser could be at such an address.
      }
      const view = read(url, TODAY);
      expect(read(at(write(view, TODAY)), TODAY)).toEqual(view);
      takeSignIn(url);
    }
  });
});

it('writes an id with half a surrogate pair without throwing', () => {
  expect(write({ ...defaultView(TODAY), screen: { name: 'batch', id: 'a\ud800b' } }, TODAY)).toBe(
    '/batches/a%EF%BF%BDb',
  );
});

describe('takeSignIn', () => {
  it('takes id and secret out of the fragment', () => {
    expect(takeSignIn(at('/#sign-in=demo-1:s3cret_x'))).toEqual({ clientId: 'demo-1', clientSecret: 's3cret_x' });
    expect(takeSignIn(at('/batches?q=1#sign-in=a%3Ab:c%2Fd:e'))).toEqual({ clientId: 'a:b', clientSecret: 'c/d:e' });
  });

  it.each([
    '/',
    '/#',
    '/#sign-in=',
    '/#sign-in=a',
    '/#sign-in=a:',
    '/#sign-in=:b',
    '/#sign-in=%zz:b',
    '/#other=a:b',
    '/?sign-in=a:b',
  ])('takes nothing from %s', (path) => expect(takeSignIn(at(path))).toBeNull());
});
