// Lazy updates: an element outside the viewport follows a change only when the user pauses. So a filter costs only
// what is visible.

// Longer than the gap between two key presses or clicks, shorter than reaching for the scroll bar.
const PAUSE_MS = 180;

class IdleTimer {
  /** False from a change until the user pauses. */
  isIdle = $state(true);
  #timer: ReturnType<typeof setTimeout> | undefined;

  reset(): void {
    this.isIdle = false;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (this.isIdle = true), PAUSE_MS);
  }
}

export const idleTimer = new IdleTimer();

export class Visibility {
  isVisible = $state(false);

  /** Attachment (`{@attach}`) for the element to observe. */
  readonly observe = (node: HTMLElement): (() => void) => {
    // A little earlier than visible, so that scrolling shows no empty frames.
    const observer = new IntersectionObserver(
      (entries) => (this.isVisible = entries.at(-1)?.isIntersecting ?? false),
      { rootMargin: '160px' },
    );
    observer.observe(node);
    return () => observer.disconnect();
  };

  /** Wraps a function for `$derived.by`: returns its last value while the element is not visible and the user is busy. */
  lazy<T>(read: () => T): () => T {
    let last: { value: T } | null = null;
    return () => {
      if (this.isVisible || idleTimer.isIdle || last === null) last = { value: read() };
      return last.value;
    };
  }
}
