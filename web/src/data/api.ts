// The pages of GET /v2/batches over fetch, same origin.

import { InvalidBatch, parseBatch, type Batch } from './batch';
import { detailOf, isUnavailable, memberOf, parseJson, rejected, retryAfterSecs, ServiceError } from './errors';
import { requestDates, type Period } from './period';
import { request, type ApiResponse, type Fetch } from './request';

export interface Progress {
  batches: number;
  pages: number;
  /** `batch_creation_date` of the last batch loaded. */
  reached: string | null;
}

export interface Waiting {
  reason: 'unavailable' | 'offline';
  untilMs: number;
  /** How many times in a row the same page has failed, from 1. */
  attempt: number;
}

/** `too-many` when a limit was reached and there is more. */
type Outcome = 'complete' | 'cancelled' | 'too-many';

export interface PageLoadOptions {
  period: Period;
  /** Called before every request, so that a renewed token is used at once. */
  token: () => Promise<string>;
  onPage(batches: Batch[]): void;
  onProgress(progress: Progress): void;
  /** Called with null when the wait is over. */
  onWaiting(waiting: Waiting | null): void;
  batchesMax?: number;
  /** The cursor and progress of an earlier load of the same period, to continue it. */
  after?: string;
  already?: Progress;
  fetch?: Fetch;
  now?: () => number;
  /** Resolves after that time, or as soon as the signal aborts; never rejects. */
  sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Between 0 and 1, for the jitter of waits. */
  random?: () => number;
}

/** What a browser stores and draws easily. Longer periods are cut. */
export const BATCHES_MAX = 200_000;

// Every loop ends. Enough for BATCHES_MAX with ten batches per page.
const PAGES_MAX = 20_000;

// The backoff after a lost connection. Short at most: someone may be watching.
const OFFLINE_WAIT_MS_MIN = 1_000;
const OFFLINE_WAIT_MS_MAX = 30_000;

// Used without a Retry-After header. Random, so that a hundred open pages do not retry together.
const UNAVAILABLE_WAIT_SECS_MIN = 3;
const UNAVAILABLE_WAIT_SECS_SPREAD = 2;

/** How long to wait after a number of failed attempts in a row; null when a retry is pointless. */
export function waitingAfter(error: unknown, attempt: number, now = Date.now(), random: () => number = Math.random): Waiting | null {
  const failure = error instanceof ServiceError ? error.failure : null;
  if (failure?.kind === 'unavailable') return { reason: 'unavailable', untilMs: now + failure.retryAfterSecs * 1000, attempt };
  if (failure?.kind !== 'offline') return null;
  const longest = Math.min(OFFLINE_WAIT_MS_MAX, OFFLINE_WAIT_MS_MIN * 2 ** (attempt - 1));
  return { reason: 'offline', untilMs: now + longest * (0.75 + 0.25 * random()), attempt };
}

/** Loads /v2/batches of a period, page by page, oldest first. Starts at once. */
export class PageLoad {
  /** Rejects with `ServiceError`, or with what `onPage` threw. */
  readonly done: Promise<Outcome>;
  /** The cursor of the next page; null before the first page. Pass it as `after` to continue. */
  cursor: string | null;
  /** Pass it as `already` to continue. */
  progress: Progress;
  /** The version of the batches, for `isCurrent`; null before the first page. */
  etag: string | null = null;
  readonly #options: PageLoadOptions;
  readonly #now: () => number;
  readonly #random: () => number;
  readonly #cancelled = new AbortController();
  #wait: AbortController | null = null;

  constructor(options: PageLoadOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#random = options.random ?? Math.random;
    this.cursor = options.after ?? null;
    this.progress = options.already ?? { batches: 0, pages: 0, reached: null };
    this.done = this.#loadAll().catch((error: unknown) => {
      if (this.#isCancelled) return 'cancelled';
      throw error;
    });
  }

  /** Ends a wait early. */
  retryNow(): void {
    this.#wait?.abort();
  }

  cancel(): void {
    this.#cancelled.abort();
    this.#wait?.abort();
  }

  get #isCancelled(): boolean {
    return this.#cancelled.signal.aborted;
  }

  async #loadAll(): Promise<Outcome> {
    const batchesMax = this.#options.batchesMax ?? BATCHES_MAX;
    while (this.progress.pages < PAGES_MAX) {
      const page = await this.#loadPage();
      if (page === null || this.#isCancelled) return 'cancelled';
      const room = batchesMax - this.progress.batches;
      this.#deliver(page.batches.length <= room ? page.batches : page.batches.slice(0, room), page.next);
      if (this.#isCancelled) return 'cancelled';
      if (page.batches.length > room) return 'too-many';
      if (page.next === null) return 'complete';
      if (page.batches.length === room) return 'too-many';
    }
    return 'too-many';
  }

  /** Passes a page on. The cursor moves first, so that a caller who cancels can continue after this page. */
  #deliver(batches: Batch[], next: string | null): void {
    if (next !== null) this.cursor = next;
    this.progress = {
      batches: this.progress.batches + batches.length,
      pages: this.progress.pages + 1,
      reached: batches.at(-1)?.batch_creation_date ?? this.progress.reached,
    };
    this.#options.onPage(batches);
    this.#options.onProgress(this.progress);
  }

  /** The next page; null when cancelled. Retries without limit: the user sees it and can cancel. */
  async #loadPage(): Promise<Page | null> {
    for (let attempt = 1; !this.#isCancelled; attempt++) {
      try {
        return await this.#requestPage();
      } catch (error) {
        if (this.#isCancelled) return null;
        const waiting = waitingAfter(error, attempt, this.#now(), this.#random);
        if (waiting === null) throw error;
        await this.#waitFor(waiting);
      }
    }
    return null;
  }

  async #requestPage(): Promise<Page> {
    const query = new URLSearchParams(requestDates(this.#options.period));
    // With the dates repeated, the service rejects a cursor of another period.
    if (this.cursor !== null) query.set('next_token', this.cursor);
    const headers = { Accept: 'application/json', Authorization: `Bearer ${await this.#options.token()}` };
    const signal = this.#cancelled.signal;
    const response = await request(`/v2/batches?${query}`, { headers }, signal, this.#options.fetch);
    const randomSecs = (): number => UNAVAILABLE_WAIT_SECS_MIN + this.#random() * UNAVAILABLE_WAIT_SECS_SPREAD;
    const page = parsePage(parseBody(response, this.#now, randomSecs), response.status);
    if (this.cursor === null) this.etag = response.etag;
    return page;
  }

  async #waitFor(waiting: Waiting): Promise<void> {
    const wait = new AbortController();
    this.#wait = wait;
    try {
      this.#options.onWaiting(waiting);
      // onWaiting may have cancelled or retried.
      if (!wait.signal.aborted) {
        await (this.#options.sleep ?? sleep)(waiting.untilMs - this.#now(), wait.signal);
      }
    } finally {
      this.#wait = null;
      this.#options.onWaiting(null);
    }
  }
}

/** Whether the batches of a period are still those of an ETag. Throws `ServiceError`. */
export async function isCurrent(period: Period, token: string, etag: string, fetch?: Fetch): Promise<boolean> {
  const query = new URLSearchParams(requestDates(period));
  const headers = { Accept: 'application/json', Authorization: `Bearer ${token}`, 'If-None-Match': etag };
  // Otherwise the browser's cache would respond.
  const init: RequestInit = { method: 'HEAD', headers, cache: 'no-store' };
  const response = await request(`/v2/batches?${query}`, init, undefined, fetch);
  if (response.status === 304) return true;
  expectOk(response);
  return response.etag === etag;
}

/** One batch; null if there is none with this id. Throws `ServiceError`. */
export async function fetchBatch(id: string, token: string, fetch?: Fetch): Promise<Batch | null> {
  const headers = { Accept: 'application/json', Authorization: `Bearer ${token}` };
  const response = await request(`/v2/batches/${encodeURIComponent(id)}`, { headers }, undefined, fetch);
  if (response.status === 404 || response.status === 422) return null;
  return parsePage({ data: [parseBody(response, Date.now)], next_token: null }, response.status).batches[0]!;
}

export interface SeenMark {
  subject: string;
  is_seen: boolean;
  /** When it was last changed, as an instant, and the label of whose access. */
  at: string;
  by: string;
  note: string;
}

export type SeenChange = Partial<Pick<SeenMark, 'is_seen' | 'note'>>;

/** Sends changed marks by their subjects, and returns those of the organisation. Throws `ServiceError`. */
export async function fetchSeen(changes: Readonly<Record<string, SeenChange>>, token: string, fetch?: Fetch): Promise<SeenMark[]> {
  const headers = { Accept: 'application/json', Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const post = { method: 'POST', headers, body: JSON.stringify({ marks: changes }) };
  const response = await request('/session/seen', Object.keys(changes).length === 0 ? { headers } : post, undefined, fetch);
  const marks = memberOf(parseBody(response, Date.now), 'marks');
  if (!Array.isArray(marks)) throw rejected(response.status, 'The response of the service has no marks.');
  const text = (mark: unknown, name: string): string => String(memberOf(mark, name) ?? '');
  return marks.map((mark) => ({ subject: text(mark, 'subject'), is_seen: memberOf(mark, 'is_seen') === true, at: text(mark, 'at'), by: text(mark, 'by'), note: text(mark, 'note') }));
}

interface Page {
  batches: Batch[];
  next: string | null;
}

function parsePage(body: unknown, status: number): Page {
  const data = memberOf(body, 'data');
  const next = memberOf(body, 'next_token');
  if (!Array.isArray(data) || !(next === null || (typeof next === 'string' && next !== ''))) {
    throw rejected(status, 'The response of the service is not a page of batches.');
  }
  try {
    return { batches: data.map(parseBatch), next };
  } catch (error) {
    if (error instanceof InvalidBatch) throw rejected(status, error.message);
    throw error;
  }
}

/** Throws `ServiceError` for any other status than 200. */
function expectOk({ status, retryAfter, body }: ApiResponse, now = Date.now, defaultSecs = () => UNAVAILABLE_WAIT_SECS_MIN): void {
  if (status === 401) throw new ServiceError({ kind: 'signed-out' });
  if (isUnavailable(status)) {
    throw new ServiceError({ kind: 'unavailable', retryAfterSecs: retryAfterSecs(retryAfter, now()) ?? defaultSecs() });
  }
  if (status !== 200) throw rejected(status, detailOf(body, status));
}

/** The JSON of a 200 response; throws for all others. */
export function parseBody(response: ApiResponse, now: () => number, defaultSecs?: () => number): unknown {
  expectOk(response, now, defaultSecs);
  const body = parseJson(response.body);
  if (body === undefined) throw rejected(response.status, 'The response of the service is not JSON.');
  return body;
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
