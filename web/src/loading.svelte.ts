// Loads pages and exposes the state to the UI: progress, waiting, result, and start, cancel and retry. Subclasses decide
// what to do with the batches.
import { PageLoad, type Progress, type Waiting } from './data/api';
import type { Batch } from './data/batch';
import { ServiceError, type Failure } from './data/errors';
import type { Period } from './data/period';
import { dayOf } from './time/zone';
import { session } from './session.svelte';
import { text } from './text';

export type LoadState = 'loading' | 'complete' | 'partial' | 'too-many' | 'failed';

/** Loaders stopped by an expired sign-in, to resume after the next one. */
const interrupted = new Set<Loader>();

export function resumeInterrupted(): void {
  for (const loader of [...interrupted]) loader.start();
}

/** For a sign-in with other credentials: nothing of the first organisation is resumed. */
export function discardInterrupted(): void {
  for (const loader of [...interrupted]) loader.discard();
}

export abstract class Loader {
  state = $state<LoadState>('loading');
  batches = $state(0);
  /** The day of the last batch loaded; pages come oldest first. */
  reached = $state<string | null>(null);
  waiting = $state.raw<Waiting | null>(null);
  failure = $state.raw<Failure | null>(null);
  #load: PageLoad | null = null;

  constructor(
    readonly period: Period,
    private readonly batchesMax: number,
  ) {}

  protected abstract onPage(batches: Batch[]): void | 'stop';

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
      onPage: (batches) => (this.#load === started ? this.onPage(batches) : 'stop'),
      onProgress: (progress) => {
        if (this.#load === started) this.#showProgress(progress);
      },
      onWaiting: (waiting) => {
        if (this.#load === started) this.waiting = waiting;
      },
      batchesMax: this.batchesMax,
      ...(last?.cursor == null ? {} : { after: last.cursor, already: last.progress }),
    });
    this.#load = started;
    void this.#waitForEnd(started);
  }

  /** The version of the batches; null when it is not known. */
  get etag(): string | null {
    return this.#load?.etag ?? null;
  }

  /** Stops and keeps the loaded batches. */
  cancel(): void {
    this.#load?.cancel();
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
  }

  async #waitForEnd(load: PageLoad): Promise<void> {
    try {
      const outcome = await load.done;
      if (this.#load === load) this.onEnd(outcome === 'cancelled' ? 'partial' : outcome, null);
    } catch (error) {
      if (this.#load !== load) return;
      // Anything but a ServiceError is a bug: end the load for the user, and rethrow for the console.
      const failure: Failure =
        error instanceof ServiceError
          ? error.failure
          : { kind: 'rejected', status: 0, detail: text.loading.unreadable };
      if (failure.kind === 'signed-out' && (await session.renewRejected().catch(() => false))) {
        if (this.#load === load) this.start();
        return;
      }
      if (this.#load !== load) return;
      this.onEnd('failed', failure);
      if (!(error instanceof ServiceError)) throw error;
      if (failure.kind !== 'signed-out') return;
      interrupted.add(this);
      session.expire();
    }
  }

  protected onEnd(state: LoadState, failure: Failure | null): void {
    this.waiting = null;
    this.failure = failure;
    this.state = state;
  }
}
