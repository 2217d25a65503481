// One request and its whole response, with a timeout. Knows nothing about statuses or bodies.

import { ServiceError } from './errors';

/** The part of the global fetch used here: a path on our own origin. */
export type Fetch = (path: string, init: RequestInit) => Promise<Response>;

export interface ApiResponse {
  status: number;
  retryAfter: string | null;
  etag: string | null;
  body: string;
}

// The service responds within 5 s; the rest is for a large page over a slow connection.
const REQUEST_MS_MAX = 60_000;

/** Throws `offline` when no complete response arrived, and the signal's reason when the caller aborted. */
export async function request(path: string, init: RequestInit, signal?: AbortSignal, fetch: Fetch = globalThis.fetch): Promise<ApiResponse> {
  const timeout = AbortSignal.timeout(REQUEST_MS_MAX);
  const stop = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
  signal?.throwIfAborted();
  try {
    const response = await orAborted(fetch(path, { ...init, signal: stop }), stop);
    const body = await orAborted(response.text(), stop);
    const { status, headers } = response;
    return { status, retryAfter: headers.get('Retry-After'), etag: headers.get('ETag'), body };
  } catch {
    signal?.throwIfAborted();
    throw new ServiceError({ kind: 'offline' });
  }
}

/** Rejects as soon as the signal aborts: reading a body does not always stop by itself. */
function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
