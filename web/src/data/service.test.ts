import { describe, expect, it } from 'vitest';
import type { Batch } from './batch';
import { manyBatches, sampleBatch } from './sample';
import {
  BATCHES_MAX,
  ServiceTrouble,
  signIn,
  walk,
  type Progress,
  type Waiting,
  type Walk,
  type WalkOptions,
} from './service';

type Step = Response | 'down' | 'hang' | (() => Response);

/** A service that answers with the steps in turn, and what it was asked. */
function serviceOf(steps: Step[]) {
  const asked: { path: string; init: RequestInit }[] = [];
  const fetch = (path: string, init: RequestInit): Promise<Response> => {
    asked.push({ path, init });
    const step = steps[Math.min(asked.length, steps.length) - 1]!;
    if (step === 'down') return Promise.reject(new TypeError('Failed to fetch'));
    if (step === 'hang') return new Promise(() => undefined);
    return Promise.resolve(step instanceof Response ? step : step());
  };
  const query = (at: number): URLSearchParams => new URL(asked[at]!.path, 'http://here').searchParams;
  return { fetch, asked, query };
}

const json = (body: unknown, status = 200, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(body), { status, headers });
const page = (ids: string[], next_token: string | null): Response =>
  json({ data: ids.map((batch_id) => sampleBatch({ batch_id })), next_token });
const busy = (status = 503, headers: Record<string, string> = {}): Response =>
  json({ detail: 'busy' }, status, headers);

const WINDOW = { from: '2026-03-01', to: '2026-03-31' };
const NOW = Date.UTC(2026, 2, 31);

/** A walk that notes all it hears, and whose waits pass at once unless told otherwise. */
function walked(steps: Step[], change: Partial<WalkOptions> = {}) {
  const service = serviceOf(steps);
  const ids: string[] = [];
  const progress: Progress[] = [];
  const waits: (Waiting | null)[] = [];
  const handle: Walk = walk({
    window: WINDOW,
    token: () => 'token-1',
    onPage: (batches: Batch[]) => void ids.push(...batches.map((batch) => batch.batch_id)),
    onProgress: (now) => progress.push(now),
    onWaiting: (waiting) => waits.push(waiting),
    fetch: service.fetch,
    now: () => NOW,
    sleep: () => Promise.resolve(),
    random: () => 0.5,
    ...change,
  });
  return { handle, ids, progress, waits, ...service };
}

async function troubleOf(promise: Promise<unknown>) {
  const error: unknown = await promise.then(
    () => new Error('There was no trouble.'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof ServiceTrouble)) throw error;
  return error.trouble;
}

describe('signIn', () => {
  const outside = (step: Step) => ({ ...serviceOf([step]), now: () => NOW });

  it('posts a form and gives a token with its end by our clock', async () => {
    const service = outside(json({ access_token: 'abc.D-_~+/=', token_type: 'bearer', expires_in: 3600 }));
    const token = await signIn('id', 's&cret=+', undefined, service);
    expect(token).toEqual({ value: 'abc.D-_~+/=', expiresAt: NOW + 3_600_000 });
    const { path, init } = service.asked[0]!;
    expect([path, init.method]).toEqual(['/v2/auth', 'POST']);
    expect(new Headers(init.headers).get('Content-Type')).toBe('application/x-www-form-urlencoded');
    expect(init.body).toBe('grant_type=client_credentials&client_id=id&client_secret=s%26cret%3D%2B');
  });

  it.each<[string, Step, object]>([
    ['wrong credentials', json({ detail: 'no' }, 401), { kind: 'wrong-credentials' }],
    ['a busy service', busy(503, { 'Retry-After': '5' }), { kind: 'unavailable', retryAfterSecs: 5 }],
    ['a busy service that names no time', busy(429), { kind: 'unavailable', retryAfterSecs: 4 }],
    ['no line', 'down', { kind: 'offline' }],
    ['a failure', json({ detail: 'Internal error' }, 500), { kind: 'refused', status: 500, detail: 'Internal error' }],
    [
      'a missing field',
      json({ detail: [{ type: 'missing', loc: ['body', 'client_id'], msg: 'Field required' }] }, 422),
      { kind: 'refused', status: 422, detail: 'client_id: Field required' },
    ],
    [
      'no JSON',
      new Response('<html>'),
      { kind: 'refused', status: 200, detail: 'The service answered with something that is not JSON.' },
    ],
    [
      'no token',
      json({ token: 'x' }),
      { kind: 'refused', status: 200, detail: 'The service answered without an access token.' },
    ],
    [
      'a token no header can carry',
      json({ access_token: 'a\nb' }),
      { kind: 'refused', status: 200, detail: 'The service answered without an access token.' },
    ],
    [
      'an error page',
      new Response('<html>', { status: 404 }),
      { kind: 'refused', status: 404, detail: 'The service answered with status 404.' },
    ],
  ])('tells %s apart', async (_, step, trouble) => {
    expect(await troubleOf(signIn('id', 'secret', undefined, outside(step)))).toEqual(trouble);
  });

  it('can be aborted, before and during', async () => {
    await expect(signIn('id', 's', AbortSignal.abort(), outside('hang'))).rejects.toThrow(/abort/i);
    const stop = new AbortController();
    const asking = signIn('id', 's', stop.signal, outside('hang'));
    stop.abort();
    await expect(asking).rejects.toThrow(/abort/i);
  });

  it('never says the secret', async () => {
    const error: unknown = await signIn('id', 'hush-hush', undefined, outside(json({}, 422))).catch(
      (reason: unknown) => reason,
    );
    expect(JSON.stringify(error) + String(error)).not.toContain('hush');
  });
});

describe('walk', () => {
  it('follows the cursor to the end', async () => {
    const { handle, ids, progress, query, asked } = walked([
      page(['a', 'b'], 'c-1'),
      page([], 'c-2'),
      page(['c'], null),
    ]);
    expect(await handle.done).toEqual({ outcome: 'complete' });
    expect(ids).toEqual(['a', 'b', 'c']);
    expect(Object.fromEntries(query(0))).toEqual({
      start_date: '2026-03-01T00:00:00Z',
      end_date: '2026-03-31T23:59:59.999999Z',
    });
    expect([1, 2].map((at) => query(at).get('next_token'))).toEqual(['c-1', 'c-2']);
    expect(new Headers(asked[0]!.init.headers).get('Authorization')).toBe('Bearer token-1');
    expect(progress.at(-1)).toEqual({ batches: 3, pages: 3, reached: '2026-03-02T10:00:00Z' });
  });

  it('ignores what a newer service adds', async () => {
    const { handle, ids } = walked([json({ data: [{ ...sampleBatch(), tray: 1 }], next_token: null, total: 1 })]);
    expect(await handle.done).toEqual({ outcome: 'complete' });
    expect(ids).toEqual(['b-1']);
  });

  it('waits as long as the service asks, within limits', async () => {
    const asks = ['7', '0', '86400', new Date(NOW + 9_000).toUTCString(), 'soon', null];
    const answers = asks.map((ask) => busy(503, ask === null ? {} : { 'Retry-After': ask }));
    const { handle, waits } = walked([...answers, page(['a'], null)]);
    expect(await handle.done).toEqual({ outcome: 'complete' });
    const told = waits.filter((wait) => wait !== null);
    expect(told.map((wait) => (wait.untilMs - NOW) / 1000)).toEqual([7, 1, 60, 9, 4, 4]);
    expect(told.map((wait) => wait.attempt)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(waits.at(-1)).toBeNull();
  });

  it.each([429, 502, 503, 504])('waits out %i', async (status) => {
    const { handle, ids } = walked([busy(status), page(['a'], null)]);
    expect(await handle.done).toEqual({ outcome: 'complete' });
    expect(ids).toEqual(['a']);
  });

  it('says at once that it is offline when nothing ever came', async () => {
    const { handle, waits } = walked(['down']);
    expect(await troubleOf(handle.done)).toEqual({ kind: 'offline' });
    expect(waits).toEqual([]);
  });

  it('waits longer and longer for a line that broke, up to half a minute', async () => {
    const { handle, waits, ids } = walked([page(['a'], 'c-1'), ...Array<Step>(8).fill('down'), page(['b'], null)], {
      random: () => 1,
    });
    expect(await handle.done).toEqual({ outcome: 'complete' });
    expect(ids).toEqual(['a', 'b']);
    const told = waits.filter((wait) => wait !== null);
    expect(told.map((wait) => (wait.untilMs - NOW) / 1000)).toEqual([1, 2, 4, 8, 16, 30, 30, 30]);
    expect(told.every((wait) => wait.reason === 'offline')).toBe(true);
  });

  it('takes a body that breaks off for a broken line', async () => {
    const broken = (): Response =>
      new Response(new ReadableStream({ pull: (body) => body.error(new TypeError('cut')) }));
    const { handle, ids } = walked([page(['a'], 'c-1'), broken, page(['b'], null)]);
    expect(await handle.done).toEqual({ outcome: 'complete' });
    expect(ids).toEqual(['a', 'b']);
  });

  it('is signed out by a 401, and a new walk goes on where it stopped', async () => {
    const first = walked([page(['a'], 'c-1'), json({ detail: 'expired' }, 401)]);
    expect(await troubleOf(first.handle.done)).toEqual({ kind: 'signed-out' });
    expect(first.handle.cursor).toBe('c-1');
    const second = walked([page(['b'], null)], { after: first.handle.cursor!, already: first.handle.progress });
    expect(await second.handle.done).toEqual({ outcome: 'complete' });
    expect(second.query(0).get('next_token')).toBe('c-1');
    expect(second.progress).toEqual([{ batches: 2, pages: 2, reached: '2026-03-02T10:00:00Z' }]);
  });

  it('asks for the token anew with every page', async () => {
    let count = 0;
    const { handle, asked } = walked([page([], 'c-1'), page([], null)], { token: () => `t-${++count}` });
    await handle.done;
    expect(asked.map(({ init }) => new Headers(init.headers).get('Authorization'))).toEqual([
      'Bearer t-1',
      'Bearer t-2',
    ]);
  });

  it.each<[string, Step]>([
    ['no JSON', new Response('{"data": [')],
    ['null', json(null)],
    ['a flat array', json([])],
    ['no data', json({ next_token: null })],
    ['no next_token', json({ data: [] })],
    ['a number for next_token', json({ data: [], next_token: 7 })],
    ['an empty next_token', json({ data: [], next_token: '' })],
    ['a malformed batch', json({ data: [{ ...sampleBatch(), warnings: 'yes' }], next_token: null })],
    ['a null for a batch', json({ data: [null], next_token: null })],
    ['a 422', json({ detail: [{ loc: ['query', 'next_token'], msg: 'bad' }] }, 422)],
    ['a 422 that is odd', json({ detail: [null, 7, {}] }, 422)],
    ['a 500', json({ detail: { any: 'thing' } }, 500)],
  ])('refuses %s with a sentence', async (_, step) => {
    const { handle, ids } = walked([step]);
    expect(await troubleOf(handle.done)).toMatchObject({
      kind: 'refused',
      detail: expect.stringMatching(/\w/) as string,
    });
    expect(ids).toEqual([]);
  });

  it('refuses cursors that go round, at once or in a circle', async () => {
    for (const cursors of [
      ['x', 'x'],
      ['x', 'y', 'x'],
    ]) {
      const { handle } = walked(cursors.map((cursor) => page([], cursor)));
      expect(await troubleOf(handle.done)).toMatchObject({
        kind: 'refused',
        detail: expect.stringContaining('next_token') as string,
      });
    }
  });

  it('ends with too many when there is more than the limit, not when there is just as much', async () => {
    const more = walked([page(['a', 'b'], 'c-1'), page(['c', 'd'], null)], { batchesMax: 3 });
    expect(await more.handle.done).toEqual({ outcome: 'too-many' });
    expect(more.ids).toEqual(['a', 'b', 'c']);
    const same = walked([page(['a', 'b'], 'c-1'), page(['c'], null)], { batchesMax: 3 });
    expect(await same.handle.done).toEqual({ outcome: 'complete' });
    const edge = walked([page(['a', 'b'], 'c-1')], { batchesMax: 2 });
    expect(await edge.handle.done).toEqual({ outcome: 'too-many' });
    expect(BATCHES_MAX).toBe(200_000);
  });

  it('ends after a limit of pages, should the cursors never end', async () => {
    let cursor = 0;
    const { handle, progress } = walked([() => page([], `c-${++cursor}`)], {
      already: { batches: 0, pages: 19_990, reached: null },
    });
    expect(await handle.done).toEqual({ outcome: 'too-many' });
    expect(progress).toHaveLength(10);
  });

  it("ends as cancelled when onPage says 'stop'", async () => {
    const { handle, asked } = walked([page(['a'], 'c-1')], { onPage: () => 'stop' });
    expect(await handle.done).toEqual({ outcome: 'cancelled' });
    expect([asked.length, handle.cursor]).toEqual([1, 'c-1']);
  });

  it('can be cancelled before the answer, between pages, and while it waits', async () => {
    const early = walked(['hang']);
    early.handle.cancel();
    expect(await early.handle.done).toEqual({ outcome: 'cancelled' });

    const between = walked([page(['a'], 'c-1')], { onProgress: () => between.handle.cancel() });
    expect(await between.handle.done).toEqual({ outcome: 'cancelled' });
    expect(between.asked).toHaveLength(1);

    const waiting = walked([busy()], {
      sleep: asTold,
      onWaiting: (wait) => wait && setTimeout(() => waiting.handle.cancel()),
    });
    expect(await waiting.handle.done).toEqual({ outcome: 'cancelled' });

    const told = walked([busy()], { onWaiting: (wait) => wait && told.handle.cancel() });
    expect(await told.handle.done).toEqual({ outcome: 'cancelled' });
  });

  it('can be cancelled in the middle of a body', async () => {
    const endless = (): Response => new Response(new ReadableStream({ pull: () => new Promise(() => undefined) }));
    const { handle } = walked([endless]);
    setTimeout(() => handle.cancel(), 5);
    expect(await handle.done).toEqual({ outcome: 'cancelled' });
  });

  it('retries at once when asked to, with its own timers too', async () => {
    const service = serviceOf([busy(503, { 'Retry-After': '60' }), page([], null)]);
    const handle = walk({
      window: WINDOW,
      token: () => 't',
      onPage: () => undefined,
      onProgress: () => undefined,
      onWaiting: (wait) => wait && setTimeout(() => handle.retryNow()),
      fetch: service.fetch,
    });
    handle.retryNow();
    expect(await handle.done).toEqual({ outcome: 'complete' });
  });

  it('reads fifty thousand batches in well under a second', async () => {
    const bodies = Array.from({ length: 50 }, (_, at) =>
      JSON.stringify({ data: manyBatches(1_000), next_token: at === 49 ? null : `c-${at}` }),
    );
    const { handle, progress } = walked(bodies.map((body) => () => new Response(body)));
    const start = performance.now();
    expect(await handle.done).toEqual({ outcome: 'complete' });
    expect(progress.at(-1)!.batches).toBe(50_000);
    // Measured at 300 to 500 ms of CPU; the limit leaves room for a busy machine.
    expect(performance.now() - start).toBeLessThan(3_000);
  });

  it('hands on what onPage throws', async () => {
    const { handle } = walked([page(['a'], null)], {
      onPage: () => {
        throw new RangeError('no room');
      },
    });
    await expect(handle.done).rejects.toThrow('no room');
  });
});

/** A wait that only ends when it is cut short. */
function asTold(_: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
}
