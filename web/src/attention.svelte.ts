// Owns what is worked out at once and what may wait: parts of the page that are out of sight follow a change
// only when the reader pauses. So a filter costs what is seen of it.

// Longer than the gap between two key strokes or clicks in a row, shorter than reaching for the scroll bar.
const PAUSE_MS = 180;

class Pace {
  /** False from a change until the reader pauses. */
  isCalm = $state(true);
  #timer: ReturnType<typeof setTimeout> | undefined;

  changed(): void {
    this.isCalm = false;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (this.isCalm = true), PAUSE_MS);
  }
}

export const pace = new Pace();

/** Whether a part of the page is worth working for. */
export class Attention {
  #isSeen = $state(false);

  /** For `{@attach}`: the element to be seen. */
  readonly on = (node: HTMLElement): (() => void) => {
    const sight = new IntersectionObserver((entries) => (this.#isSeen = entries.at(-1)?.isIntersecting ?? false), {
      rootMargin: '120px',
    });
    sight.observe(node);
    return () => sight.disconnect();
  };

  /** What `read` gives, or gave last as long as it may wait. For `$derived.by`. */
  held<T>(read: () => T): () => T {
    let last: { value: T } | null = null;
    return () => {
      if (this.#isSeen || pace.isCalm || last === null) last = { value: read() };
      return last.value;
    };
  }
}
