// Owns which rows of a long list are drawn: those in sight and a few around them. Rows are all of one height,
// so that the first one in sight is a division and the list's height a product.

// Drawn beyond either edge, so that a flick of the wheel meets rows and not paper.
const AROUND = 8;

export class RowsInSight {
  scrollTop = $state(0);
  height = $state(0);
  readonly #count: () => number;
  readonly #rowPx: number;

  first = $derived.by(() =>
    Math.max(0, Math.min(Math.floor(this.scrollTop / this.#rowPx), this.#count() - 1) - AROUND),
  );
  end = $derived.by(() => Math.min(this.#count(), Math.ceil((this.scrollTop + this.height) / this.#rowPx) + AROUND));
  above = $derived.by(() => this.first * this.#rowPx);
  below = $derived.by(() => Math.max(0, (this.#count() - this.end) * this.#rowPx));

  constructor(count: () => number, rowPx: number) {
    this.#count = count;
    this.#rowPx = rowPx;
  }

  /** Follows a scrolling element; its position is kept under `scrollTop` for as long as this object lives. */
  follow(node: HTMLElement): () => void {
    node.scrollTop = this.scrollTop;
    const sizes = new ResizeObserver(() => (this.height = node.clientHeight));
    sizes.observe(node);
    const scrolled = (): void => {
      this.scrollTop = node.scrollTop;
    };
    node.addEventListener('scroll', scrolled, { passive: true });
    return () => {
      sizes.disconnect();
      node.removeEventListener('scroll', scrolled);
    };
  }

  /** Where to scroll so that a row is in sight below a header of that height; the same place if it is already. */
  placeFor(row: number, headPx: number): number {
    const top = row * this.#rowPx;
    const bottom = top + this.#rowPx + headPx;
    if (top < this.scrollTop) return top;
    return bottom > this.scrollTop + this.height ? bottom - this.height : this.scrollTop;
  }
}
