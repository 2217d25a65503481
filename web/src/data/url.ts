// The view in the URL, so that a link shows a colleague the same. Unknown or invalid parts fall back to their defaults;
// nothing throws, because anyone can type a URL.
//
// parseUrl(toUrl(view)) of a list is the same view, if it is valid: `isPeriod`, at least one field and none twice, lists
// within LIST_MAX, a text within TEXT_CHARS_MAX, well-formed Unicode. The URLs of other screens have no query.

import { isFieldName, type Batch } from './batch';
import { SHOWN, type Filter } from './filter';
import { DEFAULT_PRESET, isPeriod, parsePreset, presetPeriod, type Period, type Preset } from './period';
import type { SortKey } from './sort';

/** The screens with a period and filters. */
export type ListName = 'table' | 'analysis';

export type Screen = { name: 'today' | 'not-found' | ListName } | { name: 'batch'; id: string };

/** A crop with another, or with itself in another period. '' stands for "crop not recorded". */
export interface Comparison {
  crop: string;
  with: { crop: string } | { period: 'before' | 'year' };
}

export interface View {
  screen: Screen;
  period: Period;
  /** The preset that the period follows from day to day; null for fixed dates. */
  preset: Preset | null;
  filter: Filter;
  sort: SortKey;
  fields: (keyof Batch)[];
  /** Null until the user has chosen. */
  compare: Comparison | null;
}

export interface Credentials {
  clientId: string;
  clientSecret: string;
}

export type SignInFragment = Credentials | { link: string };

const DEFAULT_SORT: SortKey = Object.freeze({ field: 'batch_creation_date', descending: true });

export const DEFAULT_FIELDS: readonly (keyof Batch)[] = Object.freeze([
  'batch_name',
  'batch_creation_date',
  'crop_type',
  'scanned_by_email',
  'comment',
  'avg_germination_rate',
  'avg_usable_seedling_rate',
  'avg_coefficient_of_variation',
  'warnings',
] as const);

// Many servers reject URLs of some kilobytes.
export const LIST_MAX = 200;
export const TEXT_CHARS_MAX = 200;

/** `preset` is for a URL without a period. */
export function parseUrl(url: URL, today: string, preset: Preset = DEFAULT_PRESET): View {
  const query = url.searchParams;
  return {
    screen: parseScreen(url),
    ...parsePeriod(query, today, preset),
    filter: {
      crops: parseList(query, 'crop'),
      warnings: SHOWN.find((shown) => shown === query.get('warnings')) ?? 'all',
      people: parseList(query, 'by'),
      text: truncate(query.get('q') ?? ''),
    },
    sort: parseSort(query.get('sort')),
    fields: parseFields(query.get('fields')),
    compare: parseComparison(query),
  };
}

/** Path and query, without what is at its default. A list always has the period: without one, each user sees their own. */
export function toUrl(view: View): string {
  const { screen } = view;
  if (screen.name === 'table' || screen.name === 'analysis') return `${PATHS[screen.name]}?${toQuery(view).toString()}`;
  return screen.name === 'batch' ? toBatchPath(screen.id) : '/';
}

function toQuery({ period, preset, filter, sort, fields, compare }: View): URLSearchParams {
  const query = new URLSearchParams();
  if (preset === null) {
    query.set('from', period.from);
    query.set('to', period.to);
  } else query.set('window', preset);
  for (const crop of filter.crops) query.append('crop', crop);
  if (filter.warnings !== 'all') query.set('warnings', filter.warnings);
  for (const person of filter.people) query.append('by', person);
  if (filter.text !== '') query.set('q', filter.text);
  if (sort.field !== DEFAULT_SORT.field || sort.descending !== DEFAULT_SORT.descending) {
    query.set('sort', (sort.descending ? '-' : '') + sort.field);
  }
  if (fields.join() !== DEFAULT_FIELDS.join()) query.set('fields', fields.join());
  if (compare !== null) {
    query.set('compare', 'period' in compare.with ? compare.with.period : 'crop');
    query.append('with', compare.crop);
    if ('crop' in compare.with) query.append('with', compare.with.crop);
  }
  return query;
}

/**
 * The credentials in '#sign-in=ID:SECRET', percent-encoded, as `batchscan demo` prints, or the link in
 * '#sign-in-link=TEXT', as `batchscan credential link` prints.
 */
export function parseSignIn(url: URL): SignInFragment | null {
  const link = /^#sign-in-link=([\w.-]+)$/.exec(url.hash);
  if (link !== null) return { link: link[1]! };
  const match = /^#sign-in=([^:]+):(.+)$/s.exec(url.hash);
  if (match === null) return null;
  const clientId = decode(match[1]!);
  const clientSecret = decode(match[2]!);
  return clientId === null || clientSecret === null ? null : { clientId, clientSecret };
}

const PATHS: Record<ListName, string> = { table: '/batches', analysis: '/analysis' };

function parseScreen(url: URL): Screen {
  const path = url.pathname;
  if (path === '/') return { name: 'today' };
  if (path === PATHS.analysis) return { name: 'analysis' };
  if (path !== PATHS.table && !path.startsWith(`${PATHS.table}/`)) return { name: 'not-found' };
  const id = decode(path.slice(PATHS.table.length + 1)) ?? '';
  return id === '' ? { name: 'table' } : { name: 'batch', id };
}

function toBatchPath(id: string): string {
  // encodeURIComponent throws for a lone surrogate, which is all that \p{Surrogate} matches.
  return `${PATHS.table}/${encodeURIComponent(id.replace(/\p{Surrogate}/gu, '\uFFFD'))}`;
}

function parsePeriod(query: URLSearchParams, today: string, other: Preset): Pick<View, 'period' | 'preset'> {
  const period = { from: query.get('from'), to: query.get('to') };
  if (isPeriod(period)) return { period, preset: null };
  const preset = parsePreset(query.get('window')) ?? other;
  return { period: presetPeriod(preset, today), preset };
}

const parseList = (query: URLSearchParams, name: string): string[] => [...new Set(query.getAll(name))].slice(0, LIST_MAX);

function parseSort(text: string | null): SortKey {
  const descending = text?.startsWith('-') ?? false;
  const field = descending ? text?.slice(1) : text;
  return field != null && isFieldName(field) ? { field, descending } : { ...DEFAULT_SORT };
}

function parseComparison(query: URLSearchParams): Comparison | null {
  const by = query.get('compare');
  const [crop, other] = query.getAll('with');
  if (crop === undefined) return null;
  if (by === 'before' || by === 'year') return { crop, with: { period: by } };
  return by === 'crop' && other !== undefined ? { crop, with: { crop: other } } : null;
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
