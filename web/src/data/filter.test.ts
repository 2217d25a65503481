import { describe, expect, it, vi } from 'vitest';
import { FIELDS, type Batch } from './batch';
import { Columns } from './columns';
import { activeFilters, NO_FILTER, select, type Filter } from './filter';
import { usualRanges } from './usual';
import { sorted } from './sort';
import { allRows, cpuMs, manyBatches, sampleBatch, sampleColumns } from './test-data';

const selected = (columns: Columns, filter: Partial<Filter>): number[] => [
  ...select(columns, { ...NO_FILTER, ...filter }),
];

describe('select', () => {
  it('selects every row without a filter', () => {
    expect(selected(sampleColumns([{}, {}, {}]), {})).toEqual([0, 1, 2]);
    expect(selected(new Columns(), {})).toEqual([]);
  });

  it("selects by crop, and '' for no crop", () => {
    const columns = sampleColumns([{ crop_type: 'Tomato' }, { crop_type: null }, { crop_type: '__proto__' }]);
    expect(selected(columns, { crops: ['Tomato'] })).toEqual([0]);
    expect(selected(columns, { crops: ['', '__proto__'] })).toEqual([1, 2]);
    expect(selected(columns, { crops: ['Unknown'] })).toEqual([]);
  });

  it('selects by person', () => {
    const columns = sampleColumns([{ scanned_by_email: 'a@x.org' }, { scanned_by_email: null }]);
    expect(selected(columns, { people: ['a@x.org'] })).toEqual([0]);
    expect(selected(columns, { people: [''] })).toEqual([1]);
  });

  it('selects batches with or without warnings', () => {
    const columns = sampleColumns([{ warnings: true }, { warnings: false }]);
    expect(selected(columns, { warnings: 'with' })).toEqual([0]);
    expect(selected(columns, { warnings: 'without' })).toEqual([1]);
  });

  it('selects unusual batches, whatever the other filters', () => {
    const rates = Array.from({ length: 21 }, (_, at) => ({ avg_germination_rate: `${80 + at}.00` }));
    const weak = { avg_germination_rate: '40.00' };
    const columns = sampleColumns([...rates, weak, { ...weak, batch_name: 'Bench 7' }, { ...weak, crop_type: 'Rare' }, { avg_usable_seedling_rate: '40.00' }, { warnings: true }]);
    const spreads = usualRanges(columns, allRows(columns));
    const unusual = (text = ''): number[] => [...select(columns, { ...NO_FILTER, warnings: 'unusual', text }, undefined, spreads)];
    expect(unusual()).toEqual([21, 22, 23, 24, 25]);
    expect(unusual('bench 7')).toEqual([22]);
  });

  it('selects batches with a rate below the usual range, also slightly', () => {
    // By hand: the middle 80 % of 80 to 100 are 82 to 98.
    const rates = Array.from({ length: 21 }, (_, at) => ({ avg_germination_rate: `${80 + at}.00` }));
    const ranges = usualRanges(sampleColumns(rates), allRows(sampleColumns(rates)));
    const columns = sampleColumns([...['81.49', '81.50', '40.00', null].map((avg_germination_rate) => ({ avg_germination_rate })), { avg_usable_seedling_rate: '84.00' }, { crop_type: 'Rare', avg_germination_rate: '1.00' }]);
    expect([...select(columns, { ...NO_FILTER, warnings: 'below' }, undefined, ranges)]).toEqual([0, 2, 4]);
  });

  it('finds batches not seen yet, batches with a note, and text in notes', () => {
    const columns = sampleColumns([{ warnings: true }, { warnings: true }, { batch_name: 'Bench 7' }]);
    const marks = { isSeen: (id: string) => id === 'b-0', notes: new Map([['b-2', [{ note: 'Resown', by: 'Ben' }, { note: 'Lid 4', by: 'Ben' }]], ['unknown', [{ note: 'lost', by: '' }]]]) };
    const withMarks = (filter: Partial<Filter>): number[] => [...select(columns, { ...NO_FILTER, ...filter }, undefined, new Map(), marks)];
    expect(withMarks({ warnings: 'unseen' })).toEqual([1]);
    expect(withMarks({ warnings: 'noted' })).toEqual([2]);
    expect(['resown', 'lid 4 bench', 'sown', 'lost'].map((text) => withMarks({ text }))).toEqual([[2], [2], [2], []]);
  });

  it('selects the days of a period, both inclusive', () => {
    const columns = sampleColumns(
      [
        '2026-02-28T23:59:59.999999Z',
        '2026-03-01T00:00:00Z',
        '2026-03-02T23:59:59.999999Z',
        '2026-03-03T00:00:00Z',
      ].map((batch_creation_date) => ({ batch_creation_date })),
    );
    expect([...select(columns, NO_FILTER, { from: '2026-03-01', to: '2026-03-02' })]).toEqual([1, 2]);
  });

  it('searches name, crop, comment and person, without case and accents', () => {
    const columns = sampleColumns([
      { batch_name: 'ÉTÉ 3' },
      { crop_type: 'Wild Été' },
      { comment: 'e\u0301te\u0301 sec' },
      { scanned_by_email: 'été@example.org' },
      { analysis_link: 'https://example.org/été' },
    ]);
    for (const text of ['été', 'ete', 'E\u0301TÉ']) expect(selected(columns, { text })).toEqual([0, 1, 2, 3]);
  });

  it('finds plurals, and umlauts in any spelling', () => {
    const columns = sampleColumns(["Möhre 'Nantaise'", "Tomate 'Roma'", 'Gurke', 'Carrot', 'Tomato', 'Pansy', 'Radish', 'Kürbis', 'Pea', 'Pear', 'Weißkohl'].map((crop_type) => ({ crop_type, batch_name: '' })));
    for (const [text, rows] of [
      ...['Möhren', 'mohre', 'moehre', 'Moehren', 'MÖHRE'].map((text) => [text, [0]] as const),
      ...[['Tomaten', [1]], ['Gurken', [2]], ['carrots', [3]], ['tomatoes', [4]], ['pansies', [5]], ['radishes', [6]], ['Kürbisse', [7]], ['kuerbis', [7]]] as const,
      ...[['peas', [8]], ['weisskohl', [10]], ['Möhren Gurken', []], ['möhren nantaise', [0]]] as const,
    ]) expect(selected(columns, { text }), text).toEqual(rows);
    const day = sampleColumns([{ batch_name: 'Möhre H3', batch_creation_date: '2026-11-13T10:00:00Z' }]);
    for (const text of ['Möhren 13. Nov', 'Möhren Haus 3', 'Möhren Haus 3 November', 'h3 13. Nov', 'house 3 since 1 Nov']) expect(selected(day, { text }), text).toEqual([0]);
    const other = sampleColumns([{ batch_name: 'Möhre H1 T3', batch_creation_date: '2026-11-13T10:00:00Z' }]);
    for (const text of ['house 3 13 Nov', 'h3 13. Nov', 'Haus 3 November']) expect(selected(other, { text }), text).toEqual([]);
    for (const text of ['t3 h1', 'Haus 1 2026-11-13', 'h1 13. Nov']) expect(selected(other, { text }), text).toEqual([0]);
  });

  it('finds the batches of a day or week, also with other words', () => {
    const columns = sampleColumns(
      ['2025-11-13', '2026-03-13', '2026-11-09', '2026-11-13', '2026-11-15', '2026-11-16'].map((day, at) => ({
        batch_name: `Bench ${at}`,
        batch_creation_date: `${day}T10:00:00Z`,
      })),
    );
    for (const text of ['13 Nov', 'november 13', '13.11.', '13.11', '13. Nov', '13. 11.', '13/11', '11/13']) {
      expect(selected(columns, { text }), text).toEqual([0, 3]);
    }
    for (const text of ['13 Nov 2026', 'Nov 13, 2026', '13.11.2026', 'bench 13 Nov 2026', '13.11.26', '13.11. bench 3', '13/11/2026', '2026-11-13']) {
      expect(selected(columns, { text }), text).toEqual([3]);
    }
    for (const text of ['week 46 2026', 'KW46 2026', 'kw 46, 2026', 'W46 2026', 'wk 46 2026']) {
      expect(selected(columns, { text }), text).toEqual([2, 3, 4]);
    }
    expect(selected(columns, { text: 'week 46' })).toEqual([0, 2, 3, 4]);
    const batch = { batch_creation_date: '2026-05-13T10:00:00Z', scanned_by_email: 'jan@example.org' };
    expect(selected(sampleColumns([batch]), { text: 'week 20 jan' }), 'not 20 January').toEqual([0]);
    expect(selected(columns, { text: '13. März' })).toEqual([1]);
    for (const text of ['14 Nov', '31.2.', 'week 60', 'pepper 13 Nov']) {
      expect(selected(columns, { text }), text).toEqual([]);
    }
    expect(selected(columns, { text: 'bench 3' })).toEqual([3]);
  });

  it('finds the batches of a month, of today and of yesterday', () => {
    const days = ['2025-11-13', '2026-03-13', '2026-11-15', '2026-11-16'];
    const columns = sampleColumns([
      ...days.map((day, at) => ({ batch_name: `Bench ${at}`, batch_creation_date: `${day}T10:00:00Z` })),
      { batch_name: 'Marigold', batch_creation_date: '2026-01-31T10:00:00Z' },
    ]);
    vi.useFakeTimers({ now: Date.parse('2026-11-16T12:00:00Z') });
    for (const [text, rows] of [
      ['November', [0, 2, 3]],
      ['nov 2026', [2, 3]],
      ['bench november, 2025', [0]],
      ['März', [1]],
      ['mar', [4]],
      ['today', [3]],
      ['heute', [3]],
      ['bench yesterday', [2]],
      ['gestern', [2]],
      ['tray gestern', []],
      ['monday', [3]],
      ['Montag', [3]],
      ['bench Sunday', [2]],
      ['Samstag', []],
      ['this week', [3]],
      ['bench last week', [2]],
      ['letzte Woche', [2]],
      ['since Monday', [3]],
      ['seit Sonntag', [2, 3]],
      ['since last week', [2, 3]],
      ['bench seit gestern', [2, 3]],
      ['since 13 March', [1, 2, 3]],
      ['seit KW 46', [2, 3]],
      ['since November', [2, 3]],
      ['im Nov', [0, 2, 3]],
      ['Nov', [0, 2, 3]],
      ['in March', [1]],
      ['bench last 2 days', [2, 3]],
      ['letzte 4 Tage', [2, 3]],
      ['bench last Monday', []],
      ['letzten Sonntag', [2]],
      ['am Montag', [3]],
      ['heute morgen', [3]],
      ['last 2 weeks', [2, 3]],
      ['1 day ago', [2]],
      ['vor 1 Tag', [2]],
      ['vor 1 Woche', [2]],
      ['46. Woche', [0, 2]],
      ['vorige Woche', [2]],
      ['from 15 Nov to 16 Nov', [2, 3]],
      ['bench 13.11.-15.11.', [0, 2]],
      ['15.\u201316. November', [2, 3]],
      ['14 to 15 Nov 2026', [2]],
      ['W46 - W47', [0, 2, 3]],
      ['2026-11-15 bis 2026-11-16', [2, 3]],
      ['Sunday-Monday', [2, 3]],
      ['Monday to Friday', [3]],
      ['13.-15.11.', [0, 2]],
      ['Nov 14-15', [2]],
      ['KW 46-47', [0, 2, 3]],
      ['bench 2-3', []],
      ['since 2030-01-01', []],
    ] as const) {
      expect(selected(columns, { text }), text).toEqual(rows);
    }
    vi.useRealTimers();
  });

  it('finds the batches of this month, the last one, and the day before yesterday', () => {
    const days = ['2025-12-31', '2026-01-01', '2026-01-13', '2026-01-15'];
    const columns = sampleColumns(days.map((day) => ({ batch_creation_date: `${day}T10:00:00Z` })));
    vi.useFakeTimers({ now: Date.parse('2026-01-15T12:00:00Z') });
    for (const [texts, rows] of [
      [['this month', 'diesen Monat', 'tray dieser Monat'], [1, 2, 3]],
      [['last month', 'letzten Monat', 'letzter Monat'], [0]],
      [['since last month', 'seit letztem Monat'], [0, 1, 2, 3]],
      [['day before yesterday', 'the day before yesterday', 'tray vorgestern'], [2]],
      [['since day before yesterday', 'seit vorgestern'], [2, 3]],
      [['yesterday', 'gestern'], []],
    ] as const) {
      for (const text of texts) expect(selected(columns, { text }), text).toEqual(rows);
    }
    vi.useRealTimers();
  });

  it('finds a date in a text only as it was typed', () => {
    const columns = sampleColumns(
      ['Genovese bench 10', 'Tray 10 Nov', 'Leek W45', 'Leek W4'].map((batch_name) => ({
        batch_name,
        batch_creation_date: '2026-01-31T10:00:00Z',
      })),
    );
    expect(selected(columns, { text: '10 Nov' })).toEqual([1]);
    expect(selected(columns, { text: 'w45' })).toEqual([2]);
    expect(selected(columns, { text: 'W4' })).toEqual([3]);
  });

  it('requires every word, in any order', () => {
    const columns = sampleColumns([
      { batch_name: 'Tray 12', comment: 'dry' },
      { batch_name: 'Tray 13', comment: 'dry' },
    ]);
    expect(selected(columns, { text: '  DRY 12 ' })).toEqual([0]);
    expect(selected(columns, { text: ' \t ' })).toEqual([0, 1]);
  });

  it('finds a number as a whole, next to the word before it', () => {
    const names = ['bench 3', 'bench 13', 'bench 1, row 3', 'KW3 bench', 'Bench3', 'bench 3.5'];
    const columns = sampleColumns(names.map((batch_name) => ({ batch_name })));
    expect(selected(columns, { text: 'bench 3' })).toEqual([0, 4, 5]);
    const crop_type = "Pepper 'Jalapeño'";
    const peppers = sampleColumns([{ batch_name: 'Jalapeño-47-1', crop_type }, { batch_name: 'W47 Jalapeño 9B', crop_type }, { batch_name: 'W4 Jalapeño', crop_type }]);
    expect(selected(peppers, { text: 'jalapeno 47' }), 'a crop and a week').toEqual([0, 1]);
    const letters = sampleColumns(['Genovese 9A', '9B', 'bench 9, Batavia', '9 a'].map((batch_name) => ({ batch_name })));
    expect(selected(letters, { text: '9a' })).toEqual([0, 3]);
    expect(selected(letters, { text: 'genovese 9a' })).toEqual([0]);
    expect(selected(columns, { text: 'kw3' })).toEqual([3]);
    expect(selected(columns, { text: '13' })).toEqual([1]);
    expect(selected(columns, { text: 'row 13' })).toEqual([]);
    const houses = sampleColumns(['H3', 'Basil house 3', 'Haus 3a', 'H 3', 'H13', 'bench 3', 'House 1, H 30'].map((batch_name) => ({ batch_name })));
    const tables = sampleColumns(['Leek H2 T4', 'Haus 2, Tisch 4', 'T14', 'H4 T2', 'bench 4'].map((batch_name) => ({ batch_name })));
    expect(['Tisch 4', 'table 4', 't4', 'Haus 2 Tisch 4', 'h2t4', 'Tisch 14'].map((text) => selected(tables, { text }))).toEqual([[0, 1, 4], [0, 1, 4], [0, 1, 4], [0, 1], [0, 1], [2]]);
    expect(['house 3', 'Haus 3', 'h3', 'haus', 'house 3a'].map((text) => selected(houses, { text }))).toEqual([[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3], [2], [2]]);
  });

  it('finds an id by its start, or a short one as a whole', () => {
    const columns = sampleColumns([{ batch_id: 'F3A9-77' }, { batch_id: 'f3' }, { batch_id: '0f3a9' }]);
    expect(selected(columns, { text: 'f3a9' })).toEqual([0]);
    expect(selected(columns, { text: 'f3' })).toEqual([1]);
    expect(selected(columns, { text: '%' })).toEqual([]);
  });

  it('does not match a word across two fields', () => {
    expect(selected(sampleColumns([{ batch_name: 'ab', crop_type: 'cd' }]), { text: 'bc' })).toEqual([]);
    expect(selected(sampleColumns([{ batch_name: 'bench', crop_type: '3' }, { batch_name: 'bench 3' }]), { text: 'bench 3' })).toEqual([1]);
  });

  it('does not treat the text as a pattern', () => {
    expect(selected(sampleColumns([{ comment: '100% (a+b).*' }, {}]), { text: '(a+b).*' })).toEqual([0]);
  });

  it('returns rows oldest first even if they arrived otherwise', () => {
    const columns = sampleColumns(
      ['2026-03-03', '2026-03-01', '2026-03-02'].map((day) => ({ batch_creation_date: `${day}T00:00:00Z` })),
    );
    expect(selected(columns, {})).toEqual([1, 2, 0]);
  });
});

it('counts active filters', () => {
  expect(activeFilters({ ...NO_FILTER, text: '  ' })).toBe(0);
  expect(activeFilters({ ...NO_FILTER, crops: [''], text: 'a' })).toBe(2);
});

describe('sorted', () => {
  const order = (changes: Partial<Batch>[], field: keyof Batch, descending = false): number[] => {
    const columns = sampleColumns(changes);
    return [...sorted(columns, allRows(columns), { field, descending })];
  };

  it('sorts decimals as numbers, also those without a column', () => {
    const values = ['9.00', '100.00', '-2.50', '10.00'];
    for (const field of ['avg_germination_rate', 'avg_usable_seedlings'] as const) {
      expect(
        order(
          values.map((value) => ({ [field]: value })),
          field,
        ),
      ).toEqual([2, 0, 3, 1]);
      expect(
        order(
          values.map((value) => ({ [field]: value })),
          field,
          true,
        ),
      ).toEqual([1, 3, 0, 2]);
    }
  });

  it('sorts Tray 9 before Tray 10', () => {
    const names = ['Tray 10', 'Tray 9', 'Tray', 'Öst', 'ost'].map((batch_name) => ({ batch_name }));
    expect(order(names, 'batch_name')).toEqual([4, 3, 2, 1, 0]);
  });

  it('puts nulls last in both directions, in the given order', () => {
    const changes = [null, '5.00', null, '7.00'].map((avg_germination_rate) => ({ avg_germination_rate }));
    expect(order(changes, 'avg_germination_rate')).toEqual([1, 3, 0, 2]);
    expect(order(changes, 'avg_germination_rate', true)).toEqual([3, 1, 0, 2]);
    const comments = [null, 'b', null, 'a'].map((comment) => ({ comment }));
    expect(order(comments, 'comment')).toEqual([3, 1, 0, 2]);
    expect(order(comments, 'comment', true)).toEqual([1, 3, 0, 2]);
    const crops = [null, 'b', 'a'].map((crop_type) => ({ crop_type }));
    expect(order(crops, 'crop_type', true)).toEqual([1, 2, 0]);
  });

  it('is stable in both directions', () => {
    const changes = ['1.00', '2.00', '1.00', '2.00'].map((avg_usable_seedlings) => ({ avg_usable_seedlings }));
    expect(order(changes, 'avg_usable_seedlings', true)).toEqual([1, 3, 0, 2]);
    const columns = sampleColumns(changes);
    expect([...sorted(columns, Int32Array.of(3, 2, 1, 0), { field: 'batch_name', descending: true })]).toEqual([
      3, 2, 1, 0,
    ]);
  });

  it('sorts instants to the microsecond', () => {
    const changes = ['00.000002', '00.000001', '00'].map((secs) => ({
      batch_creation_date: `2026-03-01T00:00:${secs}Z`,
    }));
    expect(order(changes, 'batch_creation_date')).toEqual([2, 1, 0]);
  });

  it('sorts by every field', () => {
    for (const { name } of FIELDS) expect(order([{}, {}, {}], name).sort()).toEqual([0, 1, 2]);
  });

  it('includes rows that were appended or changed after the last sort', () => {
    const columns = sampleColumns([{ batch_name: 'b' }, { batch_name: 'd' }]);
    const names = (): string[] =>
      [...sorted(columns, allRows(columns), { field: 'batch_name', descending: false })].map(
        (row) => columns.batch(row).batch_name,
      );
    expect(names()).toEqual(['b', 'd']);
    columns.append([
      sampleBatch({ batch_id: 'new-1', batch_name: 'c' }),
      sampleBatch({ batch_id: 'b-0', batch_name: 'e' }),
    ]);
    expect(names()).toEqual(['c', 'd', 'e']);
  });

  it('does not change the given rows', () => {
    const columns = sampleColumns([{ batch_name: 'b' }, { batch_name: 'a' }]);
    const rows = allRows(columns);
    sorted(columns, rows, { field: 'batch_name', descending: false });
    expect([...rows]).toEqual([0, 1]);
  });
});

// Retried, because a busy machine can be 20 times as slow for a moment.
describe('fifty thousand rows', { retry: 4 }, () => {
  const columns = new Columns();
  columns.append(manyBatches(50_000));
  // Takes 1 to 10 ms, the first run more.
  const LIMIT_MS = 100;

  it.each<Partial<Filter>>([{}, { text: 'house 77' }, { crops: ['Tomato', ''], warnings: 'with' }])(
    'are filtered by %j within 100 ms',
    async (filter) => {
      expect(await cpuMs(() => selected(columns, filter))).toBeLessThan(LIMIT_MS);
    },
  );

  it('are ranked by name within a second', async () => {
    const fresh = new Columns();
    fresh.append(manyBatches(50_000));
    const rows = select(fresh, NO_FILTER);
    // Takes 70 to 100 ms.
    expect(await cpuMs(() => sorted(fresh, rows, { field: 'batch_name', descending: false }))).toBeLessThan(1_000);
  });

  it.each([
    'batch_name',
    'avg_germination_rate',
    'avg_non_germinated_seedlings',
    'batch_creation_date',
    'crop_type',
  ] as const)('are sorted by %s within 100 ms', async (field) => {
    const rows = select(columns, NO_FILTER);
    expect(await cpuMs(() => sorted(columns, rows, { field, descending: true }))).toBeLessThan(LIMIT_MS);
  });
});
