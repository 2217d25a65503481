// What can go wrong between the dashboard and the service, as data. Never contains secrets or tokens.

export type Failure =
  | { kind: 'wrong-credentials' }
  | { kind: 'used-link' }
  | { kind: 'signed-out' }
  | { kind: 'unavailable'; retryAfterSecs: number }
  | { kind: 'offline' }
  | { kind: 'rejected'; status: number; detail: string };

export class ServiceError extends Error {
  constructor(readonly failure: Failure) {
    super(failure.kind === 'rejected' ? failure.detail : failure.kind);
    this.name = 'ServiceError';
  }
}

export const rejected = (status: number, detail: string): ServiceError => new ServiceError({ kind: 'rejected', status, detail });

// The service sends 3 to 5 seconds; a proxy may send anything. After more than a minute, the page would seem to hang.
const RETRY_AFTER_SECS_MIN = 1;
const RETRY_AFTER_SECS_MAX = 60;

/** Parses a `Retry-After` header, a number or a date, and clamps it; null when it is neither. */
export function retryAfterSecs(header: string | null, nowMs: number): number | null {
  const text = header?.trim() ?? '';
  const secs = /^\d+$/.test(text) ? Number(text) : (Date.parse(text) - nowMs) / 1000;
  if (Number.isNaN(secs)) return null;
  return Math.min(RETRY_AFTER_SECS_MAX, Math.max(RETRY_AFTER_SECS_MIN, Math.ceil(secs)));
}

// 429 and 503 come from the service; 502 and 504 from a proxy while the service restarts.
export const isUnavailable = (status: number): boolean => [429, 502, 503, 504].includes(status);

// A sentence on the screen, not an HTML page from a proxy.
const DETAIL_CHARS_MAX = 300;

/** The message in an error body. */
export function detailOf(body: string, status: number): string {
  const detail = memberOf(parseJson(body), 'detail');
  const text = typeof detail === 'string' ? detail.trim() : '';
  const sentence = text === '' ? `The service responded with status ${status}.` : text;
  return sentence.length <= DETAIL_CHARS_MAX ? sentence : `${sentence.slice(0, DETAIL_CHARS_MAX)}…`;
}

/** Returns undefined for invalid JSON. */
export function parseJson(body: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return undefined;
  }
}

/** An own property; undefined when there is none, or when the value is not an object. */
export function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}
