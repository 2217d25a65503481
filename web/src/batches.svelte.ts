// The loaded batches: those of the period, and those of the previous period for comparison. Decides when to fetch.
import { BATCHES_MAX, type Failure } from './data/api';
import type { Batch } from './data/batch';
import { Columns } from './data/columns';
import { previousPeriod, samePeriod, type Period } from './data/period';
import { Loader, type LoadState } from './loading.svelte';

// Pages can arrive every few milliseconds. Drawing twice a second shows progress and leaves time for input.
const REDRAW_MS = 500;

/** The batches of one period, growing as pages arrive. */
export class PeriodLoader extends Loader {
  readonly columns = new Columns();
  #drawnAt = -Infinity;

  constructor(period: Period) {
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
  }
}

class Batches {
  main = $state.raw<PeriodLoader | null>(null);
  previous = $state.raw<PeriodLoader | null>(null);
  /** Incremented when the columns of either loader change; columns themselves are not reactive. */
  version = $state(0);

  /** Starts loading the period unless it is loaded or loading, and after it the previous period. */
  ensureLoaded(period: Period): void {
    if (this.main === null || !(samePeriod(this.main.period, period) || this.main.covers(period))) {
      this.#loadMain(period);
    }
    if (this.main?.state === 'complete') this.#ensurePrevious(previousPeriod(period));
  }

  reload(period: Period): void {
    this.#discardPrevious();
    this.#loadMain(period);
  }

  clear(): void {
    this.main?.discard();
    this.main = null;
    this.#discardPrevious();
  }

  /** The loader that has all batches of a period, if any. */
  loaderFor(period: Period): PeriodLoader | null {
    return [this.main, this.previous].find((loader) => loader?.covers(period)) ?? null;
  }

  #loadMain(period: Period): void {
    this.main?.discard();
    this.main = new PeriodLoader(period);
    this.main.start();
  }

  #ensurePrevious(period: Period): void {
    if (this.loaderFor(period) !== null) return;
    if (this.previous !== null && samePeriod(this.previous.period, period)) return;
    this.#discardPrevious();
    this.previous = new PeriodLoader(period);
    this.previous.start();
  }

  #discardPrevious(): void {
    this.previous?.discard();
    this.previous = null;
  }
}

export const batches = new Batches();
