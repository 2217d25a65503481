// Virtual scrolling: which rows of a long list are drawn. The list scrolls with the page. For print, all are drawn.
import { printing } from '../printing.svelte';

// Extra rows beyond either edge, so that fast scrolling shows no gaps.
const OVERSCAN = 8;

/** About forty sheets of paper. */
export const PRINTED_MAX = 2_000;

export function topsOf(rows: Int32Array, heightOf: (row: number) => number): Float64Array {
  const tops = new Float64Array(rows.length + 1);
  rows.forEach((row, at) => (tops[at + 1] = tops[at]! + heightOf(row)));
  return tops;
}

export class VirtualRows {
  scrollTop = $state(0);
  height = $state(0);
  readonly #tops: () => Float64Array;

  first = $derived.by(() => (printing.isActive ? 0 : Math.max(0, this.#rowAt(this.scrollTop) - OVERSCAN)));
  end = $derived.by(() => {
    const count = this.#tops().length - 1;
    return Math.min(count, printing.isActive ? PRINTED_MAX : this.#rowAt(this.scrollTop + this.height) + 1 + OVERSCAN);
  });
  above = $derived.by(() => this.#tops()[this.first]!);
  below = $derived.by(() => (printing.isActive ? 0 : this.#tops().at(-1)! - this.#tops()[this.end]!));

  /** The top of each row in pixels, and the bottom of the last. */
  constructor(tops: () => Float64Array) {
    this.#tops = tops;
  }

  /** The row at a pixel of the list: the last that starts above it. */
  #rowAt(px: number): number {
    const tops = this.#tops();
    let [low, high] = [0, Math.max(0, tops.length - 2)];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (tops[middle]! <= px) low = middle;
      else high = middle - 1;
    }
    return low;
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
    const { top: listTop } = list.getBoundingClientRect();
    const [top, bottom] = [listTop + this.#tops()[row]!, listTop + headPx + this.#tops()[row + 1]!];
    if (top < 0) scrollBy(0, top);
    else if (bottom > innerHeight) scrollBy(0, bottom - innerHeight);
    // The event comes later.
    this.#update(list);
  }
}
