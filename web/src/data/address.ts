// The whole view in the URL, so that a link shows a colleague what the sender saw. Unknown or broken parts
// fall back to their defaults and nothing throws: anybody can type a URL. Moves no history, fetches nothing.
//
// read(write(view)) is the view, as long as it is one that can be shown: a window that `isWindow`, at
// least one field and none twice, lists within LIST_MAX, a text within TEXT_CHARS_MAX, well-formed Unicode.

import { isFieldName, type Batch } from './batch';
import { NO_FILTER, type Filter, type SortKey } from './filter';
import { DEFAULT_PRESET, isWindow, presetWindow, sameWindow, type Window } from './window';

export type Screen = { name: 'overview' } | { name: 'table' } | { name: 'batch'; id: string };

export interface View {
  screen: Screen;
  window: Window;
  filter: Filter;
  sort: SortKey;
  fields: (keyof Batch)[];
}

export const DEFAULT_SORT: SortKey = Object.freeze({ field: 'batch_creation_date', descending: true });

export const DEFAULT_FIELDS: readonly (keyof Batch)[] = Object.freeze([
  'batch_name',
  'batch_creation_date',
  'crop_type',
  'number_of_images',
  'avg_germination_rate',
  'avg_usable_seedling_rate',
  'avg_coefficient_of_variation',
  'avg_median_seedling_size_mm2',
  'warnings',
] as const);

// A URL of some kilobytes is refused by many a server; a list this long is "all of them" in any case.
export const LIST_MAX = 200;
export const TEXT_CHARS_MAX = 200;

/** The view that a reader sees who has chosen nothing. */
export function defaultView(today: string): View {
  return {
    screen: { name: 'overview' },
    window: presetWindow(DEFAULT_PRESET, today),
    filter: { ...NO_FILTER, crops: [], scanners: [] },
    sort: { ...DEFAULT_SORT },
    fields: [...DEFAULT_FIELDS],
  };
}

export function read(url: URL, today: string): View {
  const query = url.searchParams;
  return {
    screen: readScreen(url),
    window: readWindow(query, today),
    filter: {
      crops: readList(query, 'crop'),
      warnings: readWarnings(query.get('warnings')),
      scanners: readList(query, 'by'),
      text: cut(query.get('q') ?? ''),
    },
    sort: readSort(query.get('sort')),
    fields: readFields(query.get('fields')),
  };
}

/** Whether the address asks for a window and its dates make none, so that `read` falls back to the default. */
export function hasBrokenWindow(url: URL): boolean {
  const query = url.searchParams;
  return (query.has('from') || query.has('to')) && !isWindow({ from: query.get('from'), to: query.get('to') });
}

/** Path and query; what is as by default is left out. */
export function write(view: View, today: string): string {
  const query = new URLSearchParams();
  const { screen, window, filter, sort, fields } = view;
  if (screen.name === 'batch' && isDots(screen.id)) query.set('id', screen.id);
  if (!sameWindow(window, presetWindow(DEFAULT_PRESET, today))) {
    query.set('from', window.from);
    query.set('to', window.to);
  }
  for (const crop of filter.crops) query.append('crop', crop);
  if (filter.warnings !== 'all') query.set('warnings', filter.warnings);
  for (const scanner of filter.scanners) query.append('by', scanner);
  if (filter.text !== '') query.set('q', filter.text);
  if (sort.field !== DEFAULT_SORT.field || sort.descending !== DEFAULT_SORT.descending) {
    query.set('sort', (sort.descending ? '-' : '') + sort.field);
  }
  if (fields.join() !== DEFAULT_FIELDS.join()) query.set('fields', fields.join());
  const text = query.toString();
  return writePath(screen) + (text === '' ? '' : `?${text}`);
}

/** The credentials in '#sign-in=ID:SECRET', parts percent-encoded, as `batchscan demo` prints. The caller clears the fragment at once. */
export function takeSignIn(url: URL): { clientId: string; clientSecret: string } | null {
  const match = /^#sign-in=([^:]+):(.+)$/s.exec(url.hash);
  if (match === null) return null;
  const clientId = decoded(match[1]!);
  const clientSecret = decoded(match[2]!);
  return clientId === null || clientSecret === null ? null : { clientId, clientSecret };
}

const BATCHES = '/batches';

function readScreen(url: URL): Screen {
  const path = url.pathname;
  if (path !== BATCHES && !path.startsWith(`${BATCHES}/`)) return { name: 'overview' };
  const id = decoded(path.slice(BATCHES.length + 1)) ?? '';
  const dots = url.searchParams.get('id') ?? '';
  if (id !== '') return { name: 'batch', id };
  return isDots(dots) ? { name: 'batch', id: dots } : { name: 'table' };
}

function writePath(screen: Screen): string {
  if (screen.name === 'overview') return '/';
  if (screen.name === 'table' || screen.id === '' || isDots(screen.id)) return BATCHES;
  // encodeURIComponent throws at half a surrogate pair; \p{Surrogate} matches only such halves.
  return `${BATCHES}/${encodeURIComponent(screen.id.replace(/\p{Surrogate}/gu, '\uFFFD'))}`;
}

// A path segment of one or two dots is walked away by every URL parser, percent-encoded or not. Such an
// id goes into the query instead.
function isDots(id: string): boolean {
  return id === '.' || id === '..';
}

function readWindow(query: URLSearchParams, today: string): Window {
  const window = { from: query.get('from'), to: query.get('to') };
  return isWindow(window) ? window : presetWindow(DEFAULT_PRESET, today);
}

function readList(query: URLSearchParams, name: string): string[] {
  return [...new Set(query.getAll(name))].slice(0, LIST_MAX);
}

function readWarnings(text: string | null): Filter['warnings'] {
  return text === 'with' || text === 'without' ? text : 'all';
}

function readSort(text: string | null): SortKey {
  const descending = text?.startsWith('-') ?? false;
  const field = descending ? text?.slice(1) : text;
  return field != null && isFieldName(field) ? { field, descending } : { ...DEFAULT_SORT };
}

function readFields(text: string | null): (keyof Batch)[] {
  const known = (text ?? '').split(',').filter(isFieldName);
  return known.length === 0 ? [...DEFAULT_FIELDS] : [...new Set(known)];
}

/** At most TEXT_CHARS_MAX UTF-16 units, and never half a character at the end. */
function cut(text: string): string {
  return text.length <= TEXT_CHARS_MAX ? text : text.slice(0, TEXT_CHARS_MAX).replace(/\p{Surrogate}$/u, '');
}

function decoded(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}
