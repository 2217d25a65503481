// One request and its whole answer, within a time limit. Tells "the line failed" from "the caller gave
// up"; reads no meaning into statuses or bodies.

import { ServiceTrouble } from './trouble';

/** As the global fetch, in the narrow form used here: a path of our own origin. */
export type Fetch = (path: string, init: RequestInit) => Promise<Response>;

export interface Answer {
  status: number;
  retryAfter: string | null;
  body: string;
}

// The service answers within 5 s; the rest is for a large page over a thin line.
export const REQUEST_MS_MAX = 60_000;

/** Throws `offline` when no whole answer came, and the signal's reason when the caller aborted. */
export async function request(path: string, init: RequestInit, signal?: AbortSignal, fetchBy?: Fetch): Promise<Answer> {
  signal?.throwIfAborted();
  const stop = new AbortController();
  const onAbort = (): void => stop.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort);
  const timer = setTimeout(() => stop.abort(), REQUEST_MS_MAX);
  try {
    // Looked up at the call: a test or a page may have replaced it.
    const response = await orAborted(
      (fetchBy ?? globalThis.fetch)(path, { ...init, signal: stop.signal }),
      stop.signal,
    );
    const body = await orAborted(response.text(), stop.signal);
    return { status: response.status, retryAfter: response.headers.get('Retry-After'), body };
  } catch {
    signal?.throwIfAborted();
    throw new ServiceTrouble({ kind: 'offline' });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}

/** The promise, or a rejection as soon as the signal aborts: a body under way does not always heed the signal itself. */
function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
