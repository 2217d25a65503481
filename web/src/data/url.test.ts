import { describe, expect, it } from 'vitest';
import {
  DEFAULT_FIELDS,
  LIST_MAX,
  parseSignIn,
  parseUrl,
  TEXT_CHARS_MAX,
  toUrl,
  type View,
} from './url';
import { FIELDS } from './batch';
import { SHOWN } from './filter';
import { dayNumber, dayText } from '../time/day';
import { PRESETS, presetPeriod } from './period';
import { seededRandom } from './test-data';

const TODAY = '2026-03-02';
const at = (path: string): URL => new URL(path, 'https://scan.example.org');
const defaultView = (): View => parseUrl(at('/analysis'), TODAY);

const UNUSUAL = [
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

/** A random valid view. */
function randomView(random: () => number): View {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
  const some = <T>(from: readonly T[], max: number): T[] => [
    ...new Set(Array.from({ length: Math.floor(random() * max) }, () => pick(from))),
  ];
  const text = (): string => Array.from({ length: 1 + Math.floor(random() * 3) }, () => pick(UNUSUAL)).join('');
  const first = dayNumber('2020-01-01') + Math.floor(random() * 2000);
  const fields = some(
    FIELDS.map((field) => field.name),
    10,
  );
  const preset = pick([null, null, ...PRESETS]);
  return {
    preset,
    screen: pick<View['screen']>([{ name: 'analysis' }, { name: 'table' }]),
    period:
      preset === null
        ? { from: dayText(first), to: dayText(first + Math.floor(random() * 900)) }
        : presetPeriod(preset, TODAY),
    filter: {
      crops: some(['', ...UNUSUAL], 4),
      warnings: pick([...SHOWN]),
      people: some(['', ...UNUSUAL], 4),
      text: pick(['', text()]),
    },
    sort: { field: pick(FIELDS).name, descending: random() < 0.5 },
    fields: fields.length === 0 ? defaultView().fields : fields,
    compare: pick<View['compare']>([
      null,
      { crop: text(), with: { period: 'year' } },
      { crop: '', with: { period: 'before' } },
      { crop: '', with: { crop: text() } },
    ]),
  };
}

describe('parseUrl and toUrl', () => {
  it('round-trip every view of a list', () => {
    const random = seededRandom(3);
    for (let round = 0; round < 3_000; round++) {
      const view = randomView(random);
      expect(parseUrl(at(toUrl(view)), TODAY)).toEqual(view);
    }
  });

  it('round-trip every id of a batch', () => {
    for (const id of [...UNUSUAL, ...UNUSUAL.map((text) => `a${text}b`)]) {
      const screen = { name: 'batch' as const, id };
      expect(parseUrl(at(toUrl({ ...defaultView(), screen })), TODAY).screen).toEqual(screen);
    }
  });

  it('omit defaults, but not the period', () => {
    expect(toUrl(defaultView())).toBe('/analysis?window=90d');
    expect(toUrl({ ...defaultView(), screen: { name: 'table' } })).toBe('/batches?window=90d');
    expect(toUrl({ ...defaultView(), screen: { name: 'today' } })).toBe('/');
    expect(parseUrl(at('/batches'), TODAY, '7d').preset).toBe('7d');
    expect(parseUrl(at('/batches?window=30d'), TODAY, '7d').preset).toBe('30d');
    expect(defaultView().period).toEqual({ from: '2025-12-03', to: TODAY });
  });

  it('use readable parameters', () => {
    const view: View = {
      ...defaultView(),
      screen: { name: 'table' },
      period: { from: '2026-01-01', to: '2026-01-31' },
      preset: null,
      filter: { crops: ['Tomato', ''], warnings: 'with', people: ['a@x.org'], text: 'dry' },
      sort: { field: 'batch_name', descending: false },
      fields: ['batch_id', 'warnings'],
    };
    expect(toUrl(view)).toBe(
      '/batches?from=2026-01-01&to=2026-01-31&crop=Tomato&crop=&warnings=with&by=a%40x.org&q=dry&sort=batch_name&fields=batch_id%2Cwarnings',
    );
  });

  it('keep a preset, which follows the day', () => {
    const view = parseUrl(at('/analysis?window=30d'), TODAY);
    expect(view.period).toEqual({ from: '2026-02-01', to: TODAY });
    expect(toUrl(view)).toBe('/analysis?window=30d');
    expect(parseUrl(at('/analysis?window=30d'), '2026-03-03').period.to).toBe('2026-03-03');
    expect(parseUrl(at('/analysis?window=soon'), TODAY)).toEqual(defaultView());
  });

  it('have no parameters on the start page', () => {
    expect(toUrl(parseUrl(at('/?utm=1&crop=Leek'), TODAY))).toBe('/');
  });

  it('return independent objects', () => {
    const { filter, fields } = defaultView();
    filter.crops.push('Tomato');
    fields.pop();
    expect(defaultView().filter.crops).toEqual([]);
    expect(defaultView().fields).toEqual(DEFAULT_FIELDS);
  });
});

describe('parseUrl', () => {
  it('falls back to the default of each invalid part', () => {
    const view = parseUrl(
      at('/batches?from=2026-01-01&to=nonsense&warnings=maybe&sort=-constructor&fields=__proto__,,x&crop=Basil'),
      TODAY,
    );
    expect(view).toEqual({
      ...defaultView(),
      screen: { name: 'table' },
      filter: { ...defaultView().filter, crops: ['Basil'] },
    });
  });

  it.each([
    ['/batches/', { name: 'table' }],
    ['/batches/%E0%A4%A', { name: 'table' }],
    ['/batches/a/b', { name: 'batch', id: 'a/b' }],
    ['/batches?id=x', { name: 'table' }],
    ['/batchesque', { name: 'not-found' }],
    ['/anything/else', { name: 'not-found' }],
  ])('parses %s as %j', (path, screen) => expect(parseUrl(at(path), TODAY).screen).toEqual(screen));

  it('keeps known fields among unknown ones, each once', () => {
    expect(parseUrl(at('/batches?fields=warnings,nope,batch_id,warnings'), TODAY).fields).toEqual([
      'warnings',
      'batch_id',
    ]);
  });

  it('limits lists and text', () => {
    const many = Array.from({ length: LIST_MAX + 50 }, (_, index) => `crop=${index}`).join('&');
    const view = parseUrl(at(`/batches?${many}&q=${'x'.repeat(TEXT_CHARS_MAX - 1)}${encodeURIComponent('🌱')}`), TODAY);
    expect(view.filter.crops).toHaveLength(LIST_MAX);
    expect(view.filter.text).toBe('x'.repeat(TEXT_CHARS_MAX - 1));
  });

  it('never throws, and round-trips what it parsed from garbage', () => {
    const random = seededRandom(5);
    const fragments = [
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
        Array.from(
          { length: Math.floor(random() * 12) },
          () => fragments[Math.floor(random() * fragments.length)]!,
        ).join('');
      let url: URL;
      try {
        url = at(path);
      } catch {
        continue; // Not a valid URL.
      }
      const view = parseUrl(url, TODAY);
      const screen = view.screen.name === 'not-found' ? { name: 'today' } : view.screen;
      const again = parseUrl(at(toUrl(view)), TODAY);
      expect(again.screen).toEqual(screen);
      if (screen.name === 'table' || screen.name === 'analysis') expect(again).toEqual(view);
      parseSignIn(url);
    }
  });
});

it('replaces a lone surrogate in an id', () => {
  expect(toUrl({ ...defaultView(), screen: { name: 'batch', id: 'a\ud800b' } })).toBe('/batches/a%EF%BF%BDb');
});

describe('parseSignIn', () => {
  it('parses id and secret from the fragment', () => {
    expect(parseSignIn(at('/#sign-in=demo-1:s3cret_x'))).toEqual({ clientId: 'demo-1', clientSecret: 's3cret_x' });
    expect(parseSignIn(at('/batches?q=1#sign-in=a%3Ab:c%2Fd:e'))).toEqual({ clientId: 'a:b', clientSecret: 'c/d:e' });
  });

  it('parses a link', () => {
    expect(parseSignIn(at('/#sign-in-link=a-1.B_2'))).toEqual({ link: 'a-1.B_2' });
  });

  it.each([
    '/',
    '/#',
    '/#sign-in-link=',
    '/#sign-in-link=<a>',
    '/#sign-in=',
    '/#sign-in=a',
    '/#sign-in=a:',
    '/#sign-in=:b',
    '/#sign-in=%zz:b',
    '/#other=a:b',
    '/?sign-in=a:b',
  ])('ignores %s', (path) => expect(parseSignIn(at(path))).toBeNull());
});
