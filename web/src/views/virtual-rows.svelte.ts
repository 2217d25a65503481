// Virtual scrolling: which rows of a long list are drawn. The list scrolls with the page, all rows have the same height. For
// print, all are drawn.
import { printing } from '../printing.svelte';

// Extra rows beyond either edge, so that fast scrolling shows no gaps.
const OVERSCAN = 8;

/** About forty sheets of paper. */
export const PRINTED_MAX = 2_000;

export class VirtualRows {
  scrollTop = $state(0);
  height = $state(0);
  readonly #count: () => number;
  readonly #rowPx: number;

  first = $derived.by(() => {
    if (printing.isActive) return 0;
    return Math.max(0, Math.min(Math.floor(this.scrollTop / this.#rowPx), this.#count() - 1) - OVERSCAN);
  });
  end = $derived.by(() => {
    if (printing.isActive) return Math.min(this.#count(), PRINTED_MAX);
    return Math.min(this.#count(), Math.ceil((this.scrollTop + this.height) / this.#rowPx) + OVERSCAN);
  });
  above = $derived.by(() => this.first * this.#rowPx);
  below = $derived.by(() => (printing.isActive ? 0 : Math.max(0, (this.#count() - this.end) * this.#rowPx)));

  constructor(count: () => number, rowPx: number) {
    this.#count = count;
    this.#rowPx = rowPx;
  }

  /** Attachment for the list. */
  observe(node: HTMLElement): () => void {
    const listeners = new AbortController();
    const update = (): void => this.#update(node);
    for (const event of ['scroll', 'resize']) addEventListener(event, update, { passive: true, signal: listeners.signal });
    update();
    return () => listeners.abort();
  }

  #update(list: HTMLElement): void {
    this.scrollTop = Math.max(0, -list.getBoundingClientRect().top);
    this.height = innerHeight;
  }

  /** Scrolls the page until a row of the list is visible, below a fixed heading of that height. */
  scrollTo(list: HTMLElement, row: number, headPx: number): void {
    const top = list.getBoundingClientRect().top + row * this.#rowPx;
    const bottom = top + headPx + this.#rowPx;
    if (top < 0) scrollBy(0, top);
    else if (bottom > innerHeight) scrollBy(0, bottom - innerHeight);
    // The event comes later.
    this.#update(list);
  }
}
