// The view in the URL, so that a link shows a colleague the same. Unknown or invalid parts fall back to their defaults;
// nothing throws, because anyone can type a URL.
//
// parseUrl(toUrl(view)) is the same view, if it is valid: `isPeriod`, at least one field and none twice, lists within
// LIST_MAX, a text within TEXT_CHARS_MAX, well-formed Unicode.

import { isFieldName, type Batch } from './batch';
import type { Filter } from './filter';
import { DEFAULT_PRESET, isPeriod, presetPeriod, samePeriod, type Period } from './period';
import type { SortKey } from './sort';

export type Screen = { name: 'overview' } | { name: 'table' } | { name: 'batch'; id: string };

export interface View {
  screen: Screen;
  period: Period;
  filter: Filter;
  sort: SortKey;
  fields: (keyof Batch)[];
}

export interface Credentials {
  clientId: string;
  clientSecret: string;
}

const DEFAULT_SORT: SortKey = Object.freeze({ field: 'batch_creation_date', descending: true });

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

// Many servers reject URLs of some kilobytes.
export const LIST_MAX = 200;
export const TEXT_CHARS_MAX = 200;

export function parseUrl(url: URL, today: string): View {
  const query = url.searchParams;
  return {
    screen: parseScreen(url),
    period: parsePeriod(query, today),
    filter: {
      crops: parseList(query, 'crop'),
      warnings: parseWarnings(query.get('warnings')),
      operators: parseList(query, 'by'),
      text: truncate(query.get('q') ?? ''),
    },
    sort: parseSort(query.get('sort')),
    fields: parseFields(query.get('fields')),
  };
}

/** Whether the URL has dates that are not a valid period, so that `parseUrl` returns the default. */
export function hasInvalidDates(url: URL): boolean {
  const query = url.searchParams;
  return (query.has('from') || query.has('to')) && !isPeriod({ from: query.get('from'), to: query.get('to') });
}

/** Path and query, without what is at its default. */
export function toUrl(view: View, today: string): string {
  const query = new URLSearchParams();
  const { screen, period, filter, sort, fields } = view;
  if (screen.name === 'batch' && isDots(screen.id)) query.set('id', screen.id);
  if (!samePeriod(period, presetPeriod(DEFAULT_PRESET, today))) {
    query.set('from', period.from);
    query.set('to', period.to);
  }
  for (const crop of filter.crops) query.append('crop', crop);
  if (filter.warnings !== 'all') query.set('warnings', filter.warnings);
  for (const operator of filter.operators) query.append('by', operator);
  if (filter.text !== '') query.set('q', filter.text);
  if (sort.field !== DEFAULT_SORT.field || sort.descending !== DEFAULT_SORT.descending) {
    query.set('sort', (sort.descending ? '-' : '') + sort.field);
  }
  if (fields.join() !== DEFAULT_FIELDS.join()) query.set('fields', fields.join());
  const text = query.toString();
  return toPath(screen) + (text === '' ? '' : `?${text}`);
}

/** The credentials in '#sign-in=ID:SECRET', percent-encoded, as `batchscan demo` prints. */
export function parseSignIn(url: URL): Credentials | null {
  const match = /^#sign-in=([^:]+):(.+)$/s.exec(url.hash);
  if (match === null) return null;
  const clientId = decode(match[1]!);
  const clientSecret = decode(match[2]!);
  return clientId === null || clientSecret === null ? null : { clientId, clientSecret };
}

const BATCHES = '/batches';

function parseScreen(url: URL): Screen {
  const path = url.pathname;
  if (path !== BATCHES && !path.startsWith(`${BATCHES}/`)) return { name: 'overview' };
  const id = decode(path.slice(BATCHES.length + 1)) ?? '';
  const dots = url.searchParams.get('id') ?? '';
  if (id !== '') return { name: 'batch', id };
  return isDots(dots) ? { name: 'batch', id: dots } : { name: 'table' };
}

function toPath(screen: Screen): string {
  if (screen.name === 'overview') return '/';
  if (screen.name === 'table' || screen.id === '' || isDots(screen.id)) return BATCHES;
  // encodeURIComponent throws for a lone surrogate, which is all that \p{Surrogate} matches.
  return `${BATCHES}/${encodeURIComponent(screen.id.replace(/\p{Surrogate}/gu, '\uFFFD'))}`;
}

// URL parsers remove path segments of one or two dots, percent-encoded or not. Such an id goes into the query.
function isDots(id: string): boolean {
  return id === '.' || id === '..';
}

function parsePeriod(query: URLSearchParams, today: string): Period {
  const period = { from: query.get('from'), to: query.get('to') };
  return isPeriod(period) ? period : presetPeriod(DEFAULT_PRESET, today);
}

function parseList(query: URLSearchParams, name: string): string[] {
  return [...new Set(query.getAll(name))].slice(0, LIST_MAX);
}

function parseWarnings(text: string | null): Filter['warnings'] {
  return text === 'with' || text === 'without' ? text : 'all';
}

function parseSort(text: string | null): SortKey {
  const descending = text?.startsWith('-') ?? false;
  const field = descending ? text?.slice(1) : text;
  return field != null && isFieldName(field) ? { field, descending } : { ...DEFAULT_SORT };
}

function parseFields(text: string | null): (keyof Batch)[] {
  const known = (text ?? '').split(',').filter(isFieldName);
  return known.length === 0 ? [...DEFAULT_FIELDS] : [...new Set(known)];
}

/** At most TEXT_CHARS_MAX UTF-16 units, without half a character at the end. */
function truncate(text: string): string {
  return text.length <= TEXT_CHARS_MAX ? text : text.slice(0, TEXT_CHARS_MAX).replace(/\p{Surrogate}$/u, '');
}

function decode(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}
