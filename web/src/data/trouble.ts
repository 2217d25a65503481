// What can go wrong between the dashboard and the service, as data. Turns answers and failures of
// fetch into a `Trouble`; decides nothing about waiting or trying again. Secrets and tokens never get in.

export type Trouble =
  | { kind: 'wrong-credentials' }
  | { kind: 'signed-out' }
  | { kind: 'unavailable'; retryAfterSecs: number }
  | { kind: 'offline' }
  | { kind: 'refused'; status: number; detail: string };

export class ServiceTrouble extends Error {
  readonly trouble: Trouble;

  constructor(trouble: Trouble) {
    super(trouble.kind === 'refused' ? trouble.detail : trouble.kind);
    this.trouble = trouble;
    this.name = 'ServiceTrouble';
  }
}

export function refused(status: number, detail: string): ServiceTrouble {
  return new ServiceTrouble({ kind: 'refused', status, detail });
}

// The service says 3 to 5 seconds; a proxy may say anything. Under a second is no wait,
// over a minute a reader takes the page for dead.
export const RETRY_AFTER_SECS_MIN = 1;
export const RETRY_AFTER_SECS_MAX = 60;

/** The seconds a `Retry-After` asks for, as a number or a date, within the limits; null when it says nothing usable. */
export function retryAfterSecs(header: string | null, nowMs: number): number | null {
  const text = header?.trim() ?? '';
  const secs = /^\d+$/.test(text) ? Number(text) : (Date.parse(text) - nowMs) / 1000;
  if (Number.isNaN(secs)) return null;
  return Math.min(RETRY_AFTER_SECS_MAX, Math.max(RETRY_AFTER_SECS_MIN, Math.ceil(secs)));
}

// 429 and 503 are the service's own; 502 and 504 are what a proxy in front says while the service restarts.
const UNAVAILABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);

export function isUnavailable(status: number): boolean {
  return UNAVAILABLE.has(status);
}

// A sentence on the screen, not a page of HTML from some proxy.
const DETAIL_CHARS_MAX = 300;

/** The sentence in an error body: `detail` is a text, or a list of { loc, msg } as for a 422. */
export function detailOf(body: string, status: number): string {
  const detail = memberOf(parsed(body), 'detail');
  const said = typeof detail === 'string' ? detail : Array.isArray(detail) ? detail.map(complaintOf).join('; ') : '';
  const sentence = said.trim() === '' ? `The service answered with status ${status}.` : said.trim();
  return sentence.length <= DETAIL_CHARS_MAX ? sentence : `${sentence.slice(0, DETAIL_CHARS_MAX)}…`;
}

/** The value of a JSON text; undefined when it is none. */
export function parsed(body: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return undefined;
  }
}

/** An own member of an object; undefined when there is none, or no object. */
export function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}

function complaintOf(entry: unknown): string {
  const loc = memberOf(entry, 'loc');
  const msg = memberOf(entry, 'msg');
  const last: unknown = Array.isArray(loc) ? loc.at(-1) : '';
  const where = typeof last === 'string' ? last : '';
  const what = typeof msg === 'string' ? msg : 'invalid';
  return where === '' ? what : `${where}: ${what}`;
}
