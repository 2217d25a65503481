import { describe, expect, it } from 'vitest';
import type { Batch } from './batch';
import { cpuMs, failureOf, json, manyBatches, sampleBatch, serviceOf, type Step } from './test-data';
import { BATCHES_MAX, PageLoad, type PageLoadOptions, type Progress, type Waiting } from './api';

const page = (ids: string[], next_token: string | null): Response =>
  json({ data: ids.map((batch_id) => sampleBatch({ batch_id })), next_token });
const busy = (status = 503, headers: Record<string, string> = {}): Response =>
  json({ detail: 'busy' }, status, headers);

const PERIOD = { from: '2026-03-01', to: '2026-03-31' };
const NOW = Date.UTC(2026, 2, 31);

/** A load that records its callbacks, and whose waits end at once by default. */
function startLoad(steps: Step[], change: Partial<PageLoadOptions> = {}) {
  const service = serviceOf(steps);
  const ids: string[] = [];
  const progress: Progress[] = [];
  const waits: (Waiting | null)[] = [];
  const handle = new PageLoad({
    period: PERIOD,
    token: () => Promise.resolve('token-1'),
    onPage: (batches: Batch[]) => void ids.push(...batches.map((batch) => batch.batch_id)),
    onProgress: (now) => progress.push(now),
    onWaiting: (waiting) => waits.push(waiting),
    fetch: service.fetch,
    now: () => NOW,
    sleep: () => Promise.resolve(),
    random: () => 0.5,
    ...change,
  });
  const query = (at: number): URLSearchParams => new URL(service.requests[at]!.path, 'http://here').searchParams;
  return { handle, ids, progress, waits, query, ...service };
}

describe('a load of pages', () => {
  it('follows the cursor to the end', async () => {
    const { handle, ids, progress, query, requests } = startLoad([
      page(['a', 'b'], 'c-1'),
      page([], 'c-2'),
      page(['c'], null),
    ]);
    expect(await handle.done).toBe('complete');
    expect(ids).toEqual(['a', 'b', 'c']);
    expect(Object.fromEntries(query(0))).toEqual({
      start_date: '2026-03-01T00:00:00.000Z',
      end_date: '2026-03-31T23:59:59.999999Z',
    });
    expect([1, 2].map((at) => query(at).get('next_token'))).toEqual(['c-1', 'c-2']);
    expect(new Headers(requests[0]!.init.headers).get('Authorization')).toBe('Bearer token-1');
    expect(progress.at(-1)).toEqual({ batches: 3, pages: 3, reached: '2026-03-02T10:00:00Z' });
  });

  it('ignores what a newer service adds', async () => {
    const { handle, ids } = startLoad([json({ data: [{ ...sampleBatch(), tray: 1 }], next_token: null, total: 1 })]);
    expect(await handle.done).toBe('complete');
    expect(ids).toEqual(['b-1']);
  });

  it('waits as long as Retry-After says, within limits', async () => {
    const headers = ['7', '0', '86400', new Date(NOW + 9_000).toUTCString(), 'soon', null];
    const responses = headers.map((header) => busy(503, header === null ? {} : { 'Retry-After': header }));
    const { handle, waits } = startLoad([...responses, page(['a'], null)]);
    expect(await handle.done).toBe('complete');
    const started = waits.filter((wait) => wait !== null);
    expect(started.map((wait) => (wait.untilMs - NOW) / 1000)).toEqual([7, 1, 60, 9, 4, 4]);
    expect(started.map((wait) => wait.attempt)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(waits.at(-1)).toBeNull();
  });

  it.each([429, 502, 503, 504])('retries after %i', async (status) => {
    const { handle, ids } = startLoad([busy(status), page(['a'], null)]);
    expect(await handle.done).toBe('complete');
    expect(ids).toEqual(['a']);
  });

  it('retries when it is offline from the start', async () => {
    const { handle, waits, ids } = startLoad(['down', page(['a'], null)]);
    expect(await handle.done).toBe('complete');
    expect([ids, waits.length]).toEqual([['a'], 2]);
  });

  it('backs off after a lost connection, up to 30 seconds', async () => {
    const { handle, waits, ids } = startLoad([page(['a'], 'c-1'), ...Array<Step>(8).fill('down'), page(['b'], null)], {
      random: () => 1,
    });
    expect(await handle.done).toBe('complete');
    expect(ids).toEqual(['a', 'b']);
    const started = waits.filter((wait) => wait !== null);
    expect(started.map((wait) => (wait.untilMs - NOW) / 1000)).toEqual([1, 2, 4, 8, 16, 30, 30, 30]);
    expect(started.every((wait) => wait.reason === 'offline')).toBe(true);
  });

  it('treats a truncated body as a lost connection', async () => {
    const broken = (): Response =>
      new Response(new ReadableStream({ pull: (body) => body.error(new TypeError('cut')) }));
    const { handle, ids } = startLoad([page(['a'], 'c-1'), broken, page(['b'], null)]);
    expect(await handle.done).toBe('complete');
    expect(ids).toEqual(['a', 'b']);
  });

  it('fails as signed out on 401, and a new load continues where it stopped', async () => {
    const first = startLoad([page(['a'], 'c-1'), json({ detail: 'expired' }, 401)]);
    expect(await failureOf(first.handle.done)).toEqual({ kind: 'signed-out' });
    expect(first.handle.cursor).toBe('c-1');
    const second = startLoad([page(['b'], null)], { after: first.handle.cursor!, already: first.handle.progress });
    expect(await second.handle.done).toBe('complete');
    expect(second.query(0).get('next_token')).toBe('c-1');
    expect(second.progress).toEqual([{ batches: 2, pages: 2, reached: '2026-03-02T10:00:00Z' }]);
  });

  it('reads the token for every page', async () => {
    let count = 0;
    const { handle, requests } = startLoad([page([], 'c-1'), page([], null)], { token: () => Promise.resolve(`t-${++count}`) });
    await handle.done;
    expect(requests.map(({ init }) => new Headers(init.headers).get('Authorization'))).toEqual([
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
    ['a 500', json({ detail: { any: 'thing' } }, 500)],
  ])('rejects %s with a message', async (_, step) => {
    const { handle, ids } = startLoad([step]);
    expect(await failureOf(handle.done)).toMatchObject({
      kind: 'rejected',
      detail: expect.stringMatching(/\w/) as string,
    });
    expect(ids).toEqual([]);
  });

  it('ends with too-many above the limit, not at the limit', async () => {
    const more = startLoad([page(['a', 'b'], 'c-1'), page(['c', 'd'], null)], { batchesMax: 3 });
    expect(await more.handle.done).toBe('too-many');
    expect(more.ids).toEqual(['a', 'b', 'c']);
    const same = startLoad([page(['a', 'b'], 'c-1'), page(['c'], null)], { batchesMax: 3 });
    expect(await same.handle.done).toBe('complete');
    const edge = startLoad([page(['a', 'b'], 'c-1')], { batchesMax: 2 });
    expect(await edge.handle.done).toBe('too-many');
    expect(BATCHES_MAX).toBe(200_000);
  });

  it('stops after a maximum of pages', async () => {
    let cursor = 0;
    const { handle, progress } = startLoad([() => page([], `c-${++cursor}`)], {
      already: { batches: 0, pages: 19_990, reached: null },
    });
    expect(await handle.done).toBe('too-many');
    expect(progress).toHaveLength(10);
  });


  it('can be cancelled before the response, between pages, and while it waits', async () => {
    const early = startLoad(['hang']);
    early.handle.cancel();
    expect(await early.handle.done).toBe('cancelled');

    const between = startLoad([page(['a'], 'c-1')], { onProgress: () => between.handle.cancel() });
    expect(await between.handle.done).toBe('cancelled');
    expect(between.requests).toHaveLength(1);

    const waiting = startLoad([busy()], {
      sleep: untilAborted,
      onWaiting: (wait) => wait && setTimeout(() => waiting.handle.cancel()),
    });
    expect(await waiting.handle.done).toBe('cancelled');

    const inCallback = startLoad([busy()], { onWaiting: (wait) => wait && inCallback.handle.cancel() });
    expect(await inCallback.handle.done).toBe('cancelled');
  });

  it('can be cancelled while a body is read', async () => {
    const endless = (): Response => new Response(new ReadableStream({ pull: () => new Promise(() => undefined) }));
    const { handle } = startLoad([endless]);
    setTimeout(() => handle.cancel(), 5);
    expect(await handle.done).toBe('cancelled');
  });

  it('retries at once on request, with the real timer', async () => {
    const service = serviceOf([busy(503, { 'Retry-After': '60' }), page([], null)]);
    const handle: PageLoad = new PageLoad({
      period: PERIOD,
      token: () => Promise.resolve('t'),
      onPage: () => undefined,
      onProgress: () => undefined,
      onWaiting: (wait) => wait && setTimeout(() => handle.retryNow()),
      fetch: service.fetch,
    });
    handle.retryNow();
    expect(await handle.done).toBe('complete');
  });

  it('parses fifty thousand batches quickly', { retry: 4 }, async () => {
    const bodies = Array.from({ length: 50 }, (_, at) =>
      JSON.stringify({ data: manyBatches(1_000), next_token: at === 49 ? null : `c-${at}` }),
    );
    const { handle, progress } = startLoad(bodies.map((body) => () => new Response(body)));
    // Takes 300 to 500 ms.
    expect(await cpuMs(() => handle.done)).toBeLessThan(3_000);
    expect(progress.at(-1)!.batches).toBe(50_000);
  });

  it('rejects with what onPage throws', async () => {
    const { handle } = startLoad([page(['a'], null)], {
      onPage: () => {
        throw new RangeError('no room');
      },
    });
    await expect(handle.done).rejects.toThrow('no room');
  });
});

/** A sleep that ends only when aborted. */
function untilAborted(_: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
}
