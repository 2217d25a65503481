// The loaded batches: those of the period, of the last 365 days, and of another period to compare with. Decides when to
// fetch, and keeps what is shown up to date.
import { isCurrent, waitingAfter, type Waiting } from './data/api';
import { ServiceError } from './data/errors';
import { samePeriod, usualRangePeriod, type Period } from './data/period';
import { PeriodLoader } from './loading.svelte';
import { seen } from './seen.svelte';
import { session } from './session.svelte';

// How often to check for changes. Without changes, that costs the service next to nothing.
const REFRESH_MS = 20_000;
// A few new batches hardly change the usual ranges, and a year can be many pages.
const YEAR_REFRESH_MS = 3_600_000;

class Batches {
  main = $state.raw<PeriodLoader | null>(null);
  /** The last 365 days, for the usual ranges. */
  year = $state.raw<PeriodLoader | null>(null);
  /** Another period, if a view compares with it. */
  other = $state.raw<PeriodLoader | null>(null);
  /** Changes with the columns of a loader; columns themselves are not reactive. */
  version = $derived(this.loaders.reduce((sum, { version }) => sum + version, 0));
  /** When `main` was last known to be up to date. */
  checkedAt = $state(0);
  /** The last check for changes failed: when to retry. */
  waiting = $state.raw<Waiting | null>(null);
  /** The batches of a period, or those that have changed: shown when they are complete. */
  next = $state.raw<PeriodLoader | null>(null);
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Starts loading the period unless it is loaded or loading. Meanwhile, its batches of the last 365 days are shown. */
  ensureLoaded(period: Period): void {
    if (this.main !== null && (samePeriod(this.main.period, period) || this.main.covers(period))) return;
    if (this.next !== null && samePeriod(this.next.period, period)) return;
    const known = this.loaderFor(period);
    this.#stopRefreshing();
    // The last 365 days are checked for changes less often.
    if (this.main !== null) known?.addFrom(this.main);
    this.#discardMain();
    this.main = known;
    if (known === null) this.#loadMain(period);
    else if (samePeriod(known.period, period)) void this.refresh();
    else this.#loadNext(period);
  }

  /** Starts loading the last 365 days after the period, unless they are loaded or loading. */
  ensureYear(today: string): void {
    const { main } = this;
    if (main?.state !== 'complete' && main?.state !== 'too-many') return;
    this.year = this.#ensure(this.year, usualRangePeriod(today));
  }

  ensureOther(period: Period): void {
    this.other = this.#ensure(this.other, period);
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

  /** The loader that has the last 365 days, or as many of them as fit into memory. */
  yearLoader(today: string): PeriodLoader | null {
    const { year } = this;
    const period = usualRangePeriod(today);
    const isLoaded = year !== null && samePeriod(year.period, period) && (year.state === 'complete' || year.state === 'too-many');
    return isLoaded ? year : this.loaderFor(period);
  }

  get loaders(): PeriodLoader[] {
    return [this.main, this.year, this.other].filter((loader) => loader !== null);
  }

  /** Checks for changes now, and then regularly. */
  async refresh(): Promise<void> {
    const { main } = this;
    if (main === null) return;
    if (this.next !== null) return this.next.retryNow();
    if (main.state === 'loading') return main.retryNow();
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
    this.main = new PeriodLoader(period, (state) => {
      if (state !== 'failed') this.#setRefreshed();
      else this.#refreshIn(REFRESH_MS);
    });
    this.main.start();
  }

  /** Loads the period again while the old batches stay on the screen. */
  #loadNext(period: Period): void {
    const next = new PeriodLoader(period, (state) => {
      this.next = null;
      if (state === 'failed') return this.#refreshIn(REFRESH_MS);
      this.#discardMain();
      this.main = next;
      if (this.year !== null && Date.now() - this.year.createdAt > YEAR_REFRESH_MS) this.#reloadYear(this.year);
      this.#setRefreshed();
    });
    this.next = next;
    next.start();
  }

  /** Another may be shown as `main`. */
  #discardMain(): void {
    if (this.main !== this.year && this.main !== this.other) this.main?.discard();
  }

  #reloadYear(old: PeriodLoader): void {
    const next = new PeriodLoader(old.period, (state) => {
      if (state !== 'failed' && this.year === old) this.year = next;
    });
    next.start();
  }

  #setRefreshed(): void {
    void seen.refresh();
    this.checkedAt = Date.now();
    this.waiting = null;
    this.#refreshIn(REFRESH_MS);
  }

  #refreshLater(error: unknown): void {
    if (error instanceof ServiceError && error.failure.kind === 'signed-out') {
      void session.renewRejected().then(
        (isRenewed) => (isRenewed ? this.refresh() : ((this.waiting = null), session.expire())),
        (error: unknown) => this.#refreshLater(error),
      );
      return;
    }
    const attempt = (this.waiting?.attempt ?? 0) + 1;
    // Also after a response that cannot be read: the next may be better.
    this.waiting = waitingAfter(error, attempt) ?? { reason: 'unavailable', untilMs: Date.now() + REFRESH_MS, attempt };
    this.#refreshIn(this.waiting.untilMs - Date.now());
  }

  #refreshIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.refresh(), ms);
  }

  #stopRefreshing(): void {
    clearTimeout(this.#timer);
    this.waiting = null;
    this.next?.discard();
    this.next = null;
  }

  /** The loader of a period for comparison, or the current one if the period is loaded or loading. */
  #ensure(current: PeriodLoader | null, period: Period): PeriodLoader | null {
    if (this.loaderFor(period) !== null) return current;
    if (current !== null && samePeriod(current.period, period)) return current;
    if (current !== this.main) current?.discard();
    const loader = new PeriodLoader(period);
    loader.start();
    return loader;
  }

  #discardOthers(): void {
    for (const loader of this.loaders) if (loader !== this.main) loader.discard();
    this.year = this.other = null;
  }
}

export const batches = new Batches();

// A device that wakes up or is online again need not wait; one that is not says so.
for (const change of ['online', 'offline']) addEventListener(change, () => void batches.refresh());
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') void batches.refresh();
});
