// Virtual scrolling: which rows of a long list are drawn. All rows have the same height. For print, all are drawn.
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

  /** Attachment for the scrolling element. Restores its scroll position. */
  observe(node: HTMLElement): () => void {
    node.scrollTop = this.scrollTop;
    const observer = new ResizeObserver(() => (this.height = node.clientHeight));
    observer.observe(node);
    const onScroll = (): void => {
      this.scrollTop = node.scrollTop;
    };
    node.addEventListener('scroll', onScroll, { passive: true });
    return () => {
      observer.disconnect();
      node.removeEventListener('scroll', onScroll);
    };
  }

  /** Attachment for an element that scrolls with the page. */
  observeWindow(node: HTMLElement): () => void {
    const listeners = new AbortController();
    const update = (): void => {
      this.scrollTop = Math.max(0, -node.getBoundingClientRect().top);
      this.height = innerHeight;
    };
    for (const event of ['scroll', 'resize']) addEventListener(event, update, { passive: true, signal: listeners.signal });
    update();
    return () => listeners.abort();
  }

  /** The scroll position that makes a row visible below a header of that height. */
  scrollTopFor(row: number, headPx: number): number {
    const top = row * this.#rowPx;
    const bottom = top + this.#rowPx + headPx;
    if (top < this.scrollTop) return top;
    return bottom > this.scrollTop + this.height ? bottom - this.height : this.scrollTop;
  }
}
