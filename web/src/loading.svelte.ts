// Loads the batches of a period and exposes the state to the UI: progress, waiting, result, and start and retry.
import { BATCHES_MAX, PageLoad, type Progress, type Waiting } from './data/api';
import { Columns } from './data/columns';
import { ServiceError, type Failure } from './data/errors';
import type { Period } from './data/period';
import { dayOf } from './time/zone';
import { session } from './session.svelte';
import { text } from './text';

export type LoadState = 'loading' | 'complete' | 'too-many' | 'failed';

// Pages can arrive every few milliseconds. Drawing twice a second shows progress and leaves time for input.
const REDRAW_MS = 500;

/** Loaders stopped by an expired sign-in, to resume after the next one. */
const interrupted = new Set<PeriodLoader>();

export function resumeInterrupted(): void {
  for (const loader of [...interrupted]) loader.start();
}

/** For a sign-in with other credentials: nothing of the first organisation is resumed. */
export function discardInterrupted(): void {
  for (const loader of [...interrupted]) loader.discard();
}

/** The batches of one period, growing as pages arrive. */
export class PeriodLoader {
  readonly columns = new Columns();
  readonly createdAt = Date.now();
  state = $state<LoadState>('loading');
  batches = $state(0);
  /** The day of the last batch loaded; pages come oldest first. */
  reached = $state<string | null>(null);
  waiting = $state.raw<Waiting | null>(null);
  failure = $state.raw<Failure | null>(null);
  /** Incremented when the columns change, which are not reactive: at most twice a second, and at the end. */
  version = $state(0);
  #drawnAt = -Infinity;
  #load: PageLoad | null = null;

  constructor(readonly period: Period, private readonly onended: (state: LoadState) => void = () => undefined) {}

  /** Whether all batches of the period are loaded. */
  covers(period: Period): boolean {
    if (period.from < this.period.from || period.to > this.period.to) return false;
    return this.state === 'complete' || (this.reached !== null && this.reached > period.to);
  }

  /** Adds the batches of another loader, which may be newer. */
  addFrom({ columns }: PeriodLoader): void {
    this.columns.append(Array.from({ length: columns.length }, (_, row) => columns.batch(row)));
    this.version++;
  }

  /** Starts, or continues after the last page loaded. */
  start(): void {
    const last = this.#load;
    last?.cancel();
    interrupted.delete(this);
    this.state = 'loading';
    this.failure = null;
    this.waiting = null;
    const started: PageLoad = new PageLoad({
      period: this.period,
      token: () => session.currentToken(),
      onPage: (page) => void (this.#load === started && this.columns.append(page)),
      onProgress: (progress) => void (this.#load === started && this.#showProgress(progress)),
      onWaiting: (waiting) => void (this.#load === started && (this.waiting = waiting)),
      batchesMax: BATCHES_MAX,
      ...(last?.cursor == null ? {} : { after: last.cursor, already: last.progress }),
    });
    this.#load = started;
    void this.#waitForEnd(started);
  }

  /** The version of the batches; null when it is not known. */
  get etag(): string | null {
    return this.#load?.etag ?? null;
  }

  /** Stops for good and reports nothing: the batches are no longer needed. */
  discard(): void {
    const load = this.#load;
    this.#load = null;
    load?.cancel();
    interrupted.delete(this);
  }

  /** Ends a wait early; after a failure, starts again where it stopped. */
  retryNow(): void {
    if (this.state === 'failed') this.start();
    else this.#load?.retryNow();
  }

  #showProgress(progress: Progress): void {
    this.batches = progress.batches;
    if (progress.reached !== null) this.reached = dayOf(progress.reached);
    const now = performance.now();
    if (now - this.#drawnAt < REDRAW_MS) return;
    this.#drawnAt = now;
    this.version++;
  }

  async #waitForEnd(load: PageLoad): Promise<void> {
    try {
      const outcome = await load.done;
      if (this.#load === load) this.#end(outcome as LoadState, null);
    } catch (error) {
      if (this.#load !== load) return;
      // Anything but a ServiceError is a bug: end the load for the user, and rethrow for the console.
      const failure: Failure = error instanceof ServiceError ? error.failure : { kind: 'rejected', status: 0, detail: text.loading.unreadable };
      if (failure.kind === 'signed-out' && (await session.renewRejected().catch(() => false))) {
        if (this.#load === load) this.start();
        return;
      }
      if (this.#load !== load) return;
      this.#end('failed', failure);
      if (!(error instanceof ServiceError)) throw error;
      if (failure.kind !== 'signed-out') return;
      interrupted.add(this);
      session.expire();
    }
  }

  #end(state: LoadState, failure: Failure | null): void {
    this.waiting = null;
    this.failure = failure;
    this.state = state;
    this.batches = this.columns.length;
    this.version++;
    this.onended(state);
  }
}
