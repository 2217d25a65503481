// Owns the batches that are loaded: those of the window, and those of the window before for comparison.
// Decides when something must be fetched and when what is there will do.
import type { Batch } from './data/batch';
import { Columns } from './data/columns';
import { BATCHES_MAX, type Trouble } from './data/service';
import { before, sameWindow, type Window } from './data/window';
import { Walking, type WalkState } from './walking.svelte';

// Pages can come every few milliseconds. Drawing them twice a second shows progress and leaves the time in
// between to the network and the reader.
const REDRAW_MS = 500;

/** The batches of one window, growing as pages come. */
export class Load extends Walking {
  readonly columns = new Columns();
  loadedAt = $state<number | null>(null);
  #drawnAt = -Infinity;

  constructor(window: Window) {
    super(window, BATCHES_MAX);
  }

  /** Whether all batches of the window have come. */
  covers(window: Window): boolean {
    if (window.from < this.window.from || window.to > this.window.to) return false;
    return this.state === 'complete' || (this.reached !== null && this.reached > window.to);
  }

  protected override take(page: Batch[]): void {
    this.columns.append(page);
    const now = performance.now();
    if (now - this.#drawnAt < REDRAW_MS) return;
    this.#drawnAt = now;
    batches.version++;
  }

  protected override ended(state: WalkState, trouble: Trouble | null): void {
    super.ended(state, trouble);
    this.loadedAt = Date.now();
    this.batches = this.columns.length;
    batches.version++;
  }
}

class Batches {
  main = $state.raw<Load | null>(null);
  earlier = $state.raw<Load | null>(null);
  /** Changes whenever the columns of either should be read anew; they are not reactive themselves. */
  version = $state(0);

  /** Makes sure that the window is here or on its way, and after it the window before. */
  tend(window: Window): void {
    if (this.main === null || !(sameWindow(this.main.window, window) || this.main.covers(window))) {
      this.#replaceMain(window);
    }
    if (this.main?.state === 'complete') this.#tendEarlier(before(window));
  }

  reload(window: Window): void {
    this.#dropEarlier();
    this.#replaceMain(window);
  }

  clear(): void {
    this.main?.drop();
    this.main = null;
    this.#dropEarlier();
  }

  /** The load that holds all of a window, if one does. */
  holding(window: Window): Load | null {
    return [this.main, this.earlier].find((load) => load?.covers(window)) ?? null;
  }

  #replaceMain(window: Window): void {
    this.main?.drop();
    this.main = new Load(window);
    this.main.go();
  }

  #tendEarlier(window: Window): void {
    if (this.holding(window) !== null) return;
    if (this.earlier !== null && sameWindow(this.earlier.window, window)) return;
    this.#dropEarlier();
    this.earlier = new Load(window);
    this.earlier.go();
  }

  #dropEarlier(): void {
    this.earlier?.drop();
    this.earlier = null;
  }
}

export const batches = new Batches();
