// The loaded batches: those of the period, of the previous period, and others for comparison. Decides when to fetch, and
// keeps what is shown up to date.
import { BATCHES_MAX, isCurrent, offlineWaitMs, ServiceError, type Failure, type Waiting } from './data/api';
import type { Batch } from './data/batch';
import { Columns } from './data/columns';
import { samePeriod, type Period } from './data/period';
import { Loader, type LoadState } from './loading.svelte';
import { session } from './session.svelte';

// Pages can arrive every few milliseconds. Drawing twice a second shows progress and leaves time for input.
const REDRAW_MS = 500;
// How often the service is asked for changes. Without changes, that costs it next to nothing.
const REFRESH_MS = 60_000;

/** The batches of one period, growing as pages arrive. */
export class PeriodLoader extends Loader {
  readonly columns = new Columns();
  #drawnAt = -Infinity;

  constructor(
    period: Period,
    private readonly onended: (state: LoadState) => void = () => undefined,
  ) {
    super(period, BATCHES_MAX);
  }

  /** Whether all batches of the period are loaded. */
  covers(period: Period): boolean {
    if (period.from < this.period.from || period.to > this.period.to) return false;
    return this.state === 'complete' || (this.reached !== null && this.reached > period.to);
  }

  protected override onPage(page: Batch[]): void {
    this.columns.append(page);
    const now = performance.now();
    if (now - this.#drawnAt < REDRAW_MS) return;
    this.#drawnAt = now;
    batches.version++;
  }

  protected override onEnd(state: LoadState, failure: Failure | null): void {
    super.onEnd(state, failure);
    this.batches = this.columns.length;
    batches.version++;
    this.onended(state);
  }
}

/** What another period is for: the typical ranges of crops, or the same period of last year. */
type Purpose = 'typical' | 'last-year';

class Batches {
  main = $state.raw<PeriodLoader | null>(null);
  previous = $state.raw<PeriodLoader | null>(null);
  /** Periods that a view asked for. */
  others = $state.raw<Partial<Record<Purpose, PeriodLoader>>>({});
  /** Incremented when the columns of a loader change; columns themselves are not reactive. */
  version = $state(0);
  /** When `main` was last known to be up to date. */
  checkedAt = $state(0);
  /** The service does not say whether there are changes: when it is asked again. */
  waiting = $state.raw<Waiting | null>(null);
  /** Changed batches of the same period, shown when they are complete. */
  #next: PeriodLoader | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Starts loading the period unless it is loaded or loading, and after it the previous period. */
  ensureLoaded(period: Period, previous: Period): void {
    if (this.main === null || !(samePeriod(this.main.period, period) || this.main.covers(period))) {
      this.#loadMain(period);
    }
    if (this.main?.state === 'complete') this.#ensurePrevious(previous);
  }

  /** Starts loading a period for comparison, unless it is loaded or loading. */
  ensureOther(purpose: Purpose, period: Period): void {
    if (this.loaderFor(period) !== null) return;
    if (this.loaders.some((loader) => samePeriod(loader.period, period))) return;
    this.others[purpose]?.discard();
    const loader = new PeriodLoader(period);
    this.others = { ...this.others, [purpose]: loader };
    loader.start();
  }

  reload(period: Period): void {
    this.#discardOthers();
    this.#loadMain(period);
  }

  clear(): void {
    this.main?.discard();
    this.main = null;
    this.#discardOthers();
    this.#stopRefreshing();
  }

  /** The loader that has all batches of a period, if any. */
  loaderFor(period: Period): PeriodLoader | null {
    return this.loaders.find((loader) => loader.covers(period)) ?? null;
  }

  get loaders(): PeriodLoader[] {
    return [this.main, this.previous, ...Object.values(this.others)].filter((loader) => loader !== null);
  }

  /** Asks the service for changes now, and then regularly. */
  async refresh(): Promise<void> {
    const { main } = this;
    if (main === null || this.#next !== null || main.state === 'loading' || main.state === 'partial') return;
    clearTimeout(this.#timer);
    if (main.state === 'failed') return main.start();
    try {
      const token = await session.currentToken();
      const unchanged = main.etag !== null && (await isCurrent(main.period, token, main.etag));
      if (this.main !== main) return;
      if (unchanged) this.#setRefreshed();
      else this.#loadNext(main.period);
    } catch (error) {
      if (this.main === main) this.#refreshLater(error);
    }
  }

  #loadMain(period: Period): void {
    this.#stopRefreshing();
    this.main?.discard();
    this.main = new PeriodLoader(period, (state) => {
      if (state !== 'failed') this.#setRefreshed();
      else this.#refreshIn(REFRESH_MS);
    });
    this.main.start();
  }

  /** Loads the period again while the old batches stay on the screen. */
  #loadNext(period: Period): void {
    const next = new PeriodLoader(period, (state) => {
      this.#next = null;
      if (state === 'failed') return this.#refreshIn(REFRESH_MS);
      this.main?.discard();
      this.main = next;
      this.#reloadPrevious();
      this.#setRefreshed();
    });
    this.#next = next;
    next.start();
  }

  #reloadPrevious(): void {
    const { previous } = this;
    if (previous === null) return;
    const next = new PeriodLoader(previous.period, (state) => {
      if (state === 'complete' && this.previous === previous) this.previous = next;
    });
    next.start();
  }

  #setRefreshed(): void {
    this.checkedAt = Date.now();
    this.waiting = null;
    this.#refreshIn(REFRESH_MS);
  }

  #refreshLater(error: unknown): void {
    const failure = error instanceof ServiceError ? error.failure : null;
    if (failure?.kind === 'signed-out') {
      void session.renewRejected().then(
        (isRenewed) => (isRenewed ? this.refresh() : session.expire()),
        (error: unknown) => this.#refreshLater(error),
      );
      return;
    }
    const attempt = (this.waiting?.attempt ?? 0) + 1;
    const waitMs = failure?.kind === 'unavailable' ? failure.retryAfterSecs * 1000 : offlineWaitMs(attempt);
    this.waiting = {
      reason: failure?.kind === 'offline' ? 'offline' : 'unavailable',
      untilMs: Date.now() + waitMs,
      attempt,
    };
    this.#refreshIn(waitMs);
  }

  #refreshIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.refresh(), ms);
  }

  #stopRefreshing(): void {
    clearTimeout(this.#timer);
    this.waiting = null;
    this.#next?.discard();
    this.#next = null;
  }

  #ensurePrevious(period: Period): void {
    if (this.loaderFor(period) !== null) return;
    if (this.previous !== null && samePeriod(this.previous.period, period)) return;
    this.previous?.discard();
    this.previous = new PeriodLoader(period);
    this.previous.start();
  }

  #discardOthers(): void {
    this.previous?.discard();
    this.previous = null;
    for (const loader of Object.values(this.others)) loader.discard();
    this.others = {};
  }
}

export const batches = new Batches();

// A device that wakes up or is online again need not wait.
addEventListener('online', () => void batches.refresh());
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') void batches.refresh();
});
