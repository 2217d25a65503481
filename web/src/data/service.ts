// The public interface over fetch, same origin: a token by POST /v2/auth, batches by walking the pages
// of GET /v2/batches. Knows nothing of the dashboard's screens; keeps neither secret nor token.

import { MalformedBatch, parseBatch, type Batch } from './batch';
import { request, type Answer, type Fetch } from './request';
import { detailOf, isUnavailable, memberOf, parsed, refused, retryAfterSecs, ServiceTrouble } from './trouble';
import { requestDates, type Window } from './window';

export { ServiceTrouble, type Trouble } from './trouble';

export interface Token {
  value: string;
  /** By our clock, in ms: when the token dies. */
  expiresAt: number;
}

export interface Progress {
  batches: number;
  pages: number;
  /** `batch_creation_date` of the last batch that came. */
  reached: string | null;
}

export interface Waiting {
  reason: 'unavailable' | 'offline';
  untilMs: number;
  /** How many times in a row the same page has failed, from 1. */
  attempt: number;
}

export interface WalkEnd {
  /** `cancelled` also when `onPage` said 'stop'; `too-many` when a limit was met and more was to come. */
  outcome: 'complete' | 'cancelled' | 'too-many';
}

/** A walk under way. `done` rejects with `ServiceTrouble`, or with what `onPage` threw. */
export interface Walk {
  done: Promise<WalkEnd>;
  /** Cuts a wait short. Does nothing when there is none. */
  retryNow(): void;
  cancel(): void;
  /** The cursor of the page that is due; null before the first page. A new walk goes on from it by `after`. */
  readonly cursor: string | null;
  /** What has come so far; hand it to the walk that goes on as `already`. */
  readonly progress: Progress;
}

export interface WalkOptions {
  window: Window;
  /** Asked before every request, so that a renewed token is used at once. */
  token: () => string;
  onPage(batches: Batch[]): void | 'stop';
  onProgress(progress: Progress): void;
  /** Told when a wait starts, and null when it is over. */
  onWaiting(waiting: Waiting | null): void;
  batchesMax?: number;
  /** Goes on from the cursor of an earlier walk over the same window. */
  after?: string;
  already?: Progress;
  fetch?: Fetch;
  now?: () => number;
  /** Resolves after that time, or as soon as the signal aborts; never rejects. */
  sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Between 0 and 1, for the jitter of waits. */
  random?: () => number;
}

/** What a browser holds and draws with ease; past it the reader is better served by a shorter window. */
export const BATCHES_MAX = 200_000;

// A service whose cursors lead round in a circle would be walked for ever. Pages hold 1000 batches;
// operators may set fewer, and with ten a page this still reaches BATCHES_MAX.
export const PAGES_MAX = 20_000;

// RFC 6749 lets a service keep the lifetime to itself. Ours never does; a short guess only means signing in again.
const TOKEN_TTL_DEFAULT_SECS = 300;

const SIGN_IN_RETRY_SECS = 4;

/** Asks for a token. Throws `ServiceTrouble`; when the signal aborts, throws what it aborted with. */
export async function signIn(
  clientId: string,
  clientSecret: string,
  signal?: AbortSignal,
  outside: { fetch?: Fetch; now?: () => number } = {},
): Promise<Token> {
  const now = outside.now ?? Date.now;
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: clientSecret,
  });
  const headers = { Accept: 'application/json', 'Content-Type': 'application/x-www-form-urlencoded' };
  const sentAt = now();
  const answer = await request('/v2/auth', { method: 'POST', headers, body: form.toString() }, signal, outside.fetch);
  if (answer.status === 401) throw new ServiceTrouble({ kind: 'wrong-credentials' });
  return tokenOf(
    bodyOf(answer, now, () => SIGN_IN_RETRY_SECS),
    sentAt,
    answer.status,
  );
}

/** Walks /v2/batches of a window, page by page, oldest first. */
export function walk(options: WalkOptions): Walk {
  const walker = new Walker(options);
  return {
    done: walker.run(),
    retryNow: () => walker.retryNow(),
    cancel: () => walker.cancel(),
    get cursor() {
      return walker.cursor;
    },
    get progress() {
      return walker.progress;
    },
  };
}

// The first wait after the line broke, and the longest: a reader who plugs the cable in again
// should not look at an idle page for minutes.
const OFFLINE_WAIT_MS_MIN = 1_000;
const OFFLINE_WAIT_MS_MAX = 30_000;

// "3 to 5 seconds suggested": each reader draws one, so that a hundred open pages do not come back together.
const UNAVAILABLE_WAIT_SECS_MIN = 3;
const UNAVAILABLE_WAIT_SECS_SPREAD = 2;

class Walker {
  cursor: string | null;
  progress: Progress;
  readonly #options: WalkOptions;
  readonly #now: () => number;
  readonly #random: () => number;
  readonly #cancelled = new AbortController();
  readonly #cursorsSeen = new Set<string>();
  #wait: AbortController | null = null;
  // Whether the service has ever answered: until then, being offline is the caller's to show, not ours to wait out.
  #met: boolean;

  constructor(options: WalkOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#random = options.random ?? Math.random;
    this.cursor = options.after ?? null;
    this.progress = options.already ?? { batches: 0, pages: 0, reached: null };
    this.#met = options.after !== undefined;
  }

  async run(): Promise<WalkEnd> {
    try {
      return await this.#pages();
    } catch (error) {
      if (this.#isCancelled) return { outcome: 'cancelled' };
      throw error;
    }
  }

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

  async #pages(): Promise<WalkEnd> {
    const batchesMax = this.#options.batchesMax ?? BATCHES_MAX;
    while (this.progress.pages < PAGES_MAX) {
      const page = await this.#page();
      if (page === null || this.#isCancelled) return { outcome: 'cancelled' };
      const room = batchesMax - this.progress.batches;
      const stop = this.#deliver(page.batches.length <= room ? page.batches : page.batches.slice(0, room), page.next);
      if (stop || this.#isCancelled) return { outcome: 'cancelled' };
      if (page.batches.length > room) return { outcome: 'too-many' };
      if (page.next === null) return { outcome: 'complete' };
      if (page.batches.length === room) return { outcome: 'too-many' };
    }
    return { outcome: 'too-many' };
  }

  /** Hands a page on. The cursor moves first, so that a caller who stops can go on after this page. */
  #deliver(batches: Batch[], next: string | null): boolean {
    if (next !== null) this.#advance(next);
    this.progress = {
      batches: this.progress.batches + batches.length,
      pages: this.progress.pages + 1,
      reached: batches.at(-1)?.batch_creation_date ?? this.progress.reached,
    };
    const stop = this.#options.onPage(batches) === 'stop';
    this.#options.onProgress(this.progress);
    return stop;
  }

  #advance(next: string): void {
    if (next === this.cursor || this.#cursorsSeen.has(next)) {
      throw refused(200, 'The service sent the same next_token twice; its pages would never end.');
    }
    this.#cursorsSeen.add(next);
    this.cursor = next;
  }

  /** The page that is due; null when the walk was cancelled. Tries without end: a reader watches, and can cancel. */
  async #page(): Promise<Page | null> {
    for (let attempt = 1; !this.#isCancelled; attempt++) {
      try {
        return await this.#ask();
      } catch (error) {
        if (this.#isCancelled) return null;
        const waiting = this.#waitingFor(error, attempt);
        if (waiting === null) throw error;
        await this.#waitOut(waiting);
      }
    }
    return null;
  }

  async #ask(): Promise<Page> {
    const query = new URLSearchParams(requestDates(this.#options.window));
    // Dates may be repeated with the cursor if they are equal: a cursor of another window is then refused, not followed.
    if (this.cursor !== null) query.set('next_token', this.cursor);
    const headers = { Accept: 'application/json', Authorization: `Bearer ${this.#options.token()}` };
    const signal = this.#cancelled.signal;
    const answer = await request(`/v2/batches?${query}`, { headers }, signal, this.#options.fetch);
    this.#met = true;
    if (answer.status === 401) throw new ServiceTrouble({ kind: 'signed-out' });
    return pageOf(
      bodyOf(answer, this.#now, () => this.#unavailableSecs()),
      answer.status,
    );
  }

  #unavailableSecs(): number {
    return UNAVAILABLE_WAIT_SECS_MIN + this.#random() * UNAVAILABLE_WAIT_SECS_SPREAD;
  }

  /** The wait that a failure deserves; null when it deserves none. */
  #waitingFor(error: unknown, attempt: number): Waiting | null {
    if (!(error instanceof ServiceTrouble)) return null;
    const { trouble } = error;
    if (trouble.kind === 'unavailable') {
      return { reason: 'unavailable', untilMs: this.#now() + trouble.retryAfterSecs * 1000, attempt };
    }
    if (trouble.kind !== 'offline' || !this.#met) return null;
    const longest = Math.min(OFFLINE_WAIT_MS_MAX, OFFLINE_WAIT_MS_MIN * 2 ** (attempt - 1));
    // Between three quarters and the whole: pages that lost the same line come back one after another.
    return { reason: 'offline', untilMs: this.#now() + longest * (0.75 + 0.25 * this.#random()), attempt };
  }

  async #waitOut(waiting: Waiting): Promise<void> {
    const wait = new AbortController();
    this.#wait = wait;
    try {
      this.#options.onWaiting(waiting);
      // onWaiting may have cancelled or asked to retry at once.
      if (!wait.signal.aborted) {
        await (this.#options.sleep ?? sleep)(waiting.untilMs - this.#now(), wait.signal);
      }
    } finally {
      this.#wait = null;
      this.#options.onWaiting(null);
    }
  }
}

interface Page {
  batches: Batch[];
  next: string | null;
}

function pageOf(body: unknown, status: number): Page {
  const data = memberOf(body, 'data');
  const next = memberOf(body, 'next_token');
  if (!Array.isArray(data) || !(next === null || (typeof next === 'string' && next !== ''))) {
    throw refused(status, 'The service answered with something that is no page of batches.');
  }
  try {
    return { batches: data.map(parseBatch), next };
  } catch (error) {
    if (error instanceof MalformedBatch) throw refused(status, error.message);
    throw error;
  }
}

// RFC 6750: what a bearer token may be made of. Anything else could not be sent back in a header.
const BEARER = /^[\w.~+/-]+=*$/;

function tokenOf(body: unknown, sentAt: number, status: number): Token {
  const value = memberOf(body, 'access_token');
  if (typeof value !== 'string' || !BEARER.test(value)) {
    throw refused(status, 'The service answered without an access token.');
  }
  const told = memberOf(body, 'expires_in');
  const ttlSecs = typeof told === 'number' && told >= 0 ? told : TOKEN_TTL_DEFAULT_SECS;
  return { value, expiresAt: sentAt + ttlSecs * 1000 };
}

/** The JSON of a good answer; else throws the trouble it stands for. */
function bodyOf(answer: Answer, now: () => number, elseSecs: () => number): unknown {
  const { status } = answer;
  if (isUnavailable(status)) {
    const secs = retryAfterSecs(answer.retryAfter, now()) ?? elseSecs();
    throw new ServiceTrouble({ kind: 'unavailable', retryAfterSecs: secs });
  }
  if (status !== 200) throw refused(status, detailOf(answer.body, status));
  const body = parsed(answer.body);
  if (body === undefined) throw refused(status, 'The service answered with something that is not JSON.');
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
