// Owns a walk over pages as the reader sees it: how far it is, what it waits for, how it ended, and the
// ways to steer it. What becomes of the batches is for those who extend it.
import type { Batch } from './data/batch';
import { ServiceTrouble, walk, type Progress, type Trouble, type Waiting, type Walk } from './data/service';
import type { Window } from './data/window';
import { session } from './session.svelte';

export type WalkState = 'walking' | 'complete' | 'part' | 'too-many' | 'failed';

/** Walks that an expired sign-in has ended, to be gone on with after the next one. */
const interrupted = new Set<Walking>();

export function goOnAfterSignIn(): void {
  for (const walking of [...interrupted]) walking.go();
}

/** For another reader's sign-in: nothing of the first one's is gone on with. */
export function dropInterrupted(): void {
  for (const walking of [...interrupted]) walking.drop();
}

export abstract class Walking {
  state = $state<WalkState>('walking');
  batches = $state(0);
  /** The UTC day of the last batch that came; pages come oldest first. */
  reached = $state<string | null>(null);
  waiting = $state.raw<Waiting | null>(null);
  trouble = $state.raw<Trouble | null>(null);
  #walk: Walk | null = null;

  constructor(
    readonly window: Window,
    private readonly batchesMax: number,
  ) {}

  protected abstract take(batches: Batch[]): void | 'stop';

  /** Starts, or goes on after the last page that came. */
  go(): void {
    const before = this.#walk;
    before?.cancel();
    interrupted.delete(this);
    this.state = 'walking';
    this.trouble = null;
    this.waiting = null;
    const started: Walk = walk({
      window: this.window,
      token: () => session.token?.value ?? '',
      onPage: (batches) => (this.#walk === started ? this.take(batches) : 'stop'),
      onProgress: (progress) => {
        if (this.#walk === started) this.#show(progress);
      },
      onWaiting: (waiting) => {
        if (this.#walk === started) this.waiting = waiting;
      },
      batchesMax: this.batchesMax,
      ...(before?.cursor == null ? {} : { after: before.cursor, already: before.progress }),
    });
    this.#walk = started;
    void this.#end(started);
  }

  /** Keeps what has come. */
  cancel(): void {
    this.#walk?.cancel();
  }

  /** Stops for good, without a word: the reader looks at something else. */
  drop(): void {
    const walk = this.#walk;
    this.#walk = null;
    walk?.cancel();
    interrupted.delete(this);
  }

  /** Cuts a wait short; after a failure, starts again where it was. */
  retryNow(): void {
    if (this.state === 'failed') this.go();
    else this.#walk?.retryNow();
  }

  #show(progress: Progress): void {
    this.batches = progress.batches;
    if (progress.reached !== null) this.reached = progress.reached.slice(0, 10);
  }

  async #end(walk: Walk): Promise<void> {
    try {
      const { outcome } = await walk.done;
      if (this.#walk === walk) this.ended(outcome === 'cancelled' ? 'part' : outcome, null);
    } catch (error) {
      if (this.#walk !== walk) return;
      // Whatever else was thrown is a defect; the reader must not wait for it, and the console tells of it.
      const trouble: Trouble =
        error instanceof ServiceTrouble
          ? error.trouble
          : { kind: 'refused', status: 0, detail: 'The answer of the service could not be read.' };
      this.ended('failed', trouble);
      if (!(error instanceof ServiceTrouble)) throw error;
      if (trouble.kind !== 'signed-out') return;
      interrupted.add(this);
      session.expire();
    }
  }

  protected ended(state: WalkState, trouble: Trouble | null): void {
    this.waiting = null;
    this.trouble = trouble;
    this.state = state;
  }
}
