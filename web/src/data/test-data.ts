// Test data, and a service that sends it.

import type { Batch } from './batch';
import { Columns } from './columns';
import type { Failure, ServiceError } from './errors';

export function sampleBatch(change: Partial<Batch> = {}): Batch {
  return {
    batch_id: 'b-1',
    batch_name: 'Tray 1',
    batch_creation_date: '2026-03-02T10:00:00Z',
    crop_type: 'Tomato',
    number_of_images: 4,
    total_cells_per_tray: 200,
    avg_germinated_seedlings: '185.00',
    avg_non_germinated_seedlings: '15.00',
    avg_germination_rate: '92.50',
    avg_usable_seedlings: '170.00',
    avg_non_usable_cells: '30.00',
    avg_usable_seedling_rate: '85.00',
    avg_coefficient_of_variation: '18.20',
    avg_median_seedling_size_mm2: '143.75',
    scanned_by_email: 'ana@example.org',
    analysis_link: 'https://example.org/r/1',
    comment: null,
    warnings: false,
    ...change,
  };
}

/** One row per change, with distinct ids. */
export function sampleColumns(changes: Partial<Batch>[]): Columns {
  const columns = new Columns();
  columns.append(changes.map((change, at) => sampleBatch({ batch_id: `b-${at}`, ...change })));
  return columns;
}

export function allRows(columns: Columns): Int32Array {
  return Int32Array.from({ length: columns.length }, (_, row) => row);
}

/** CPU time of a call, which does not depend on other processes. */
export async function cpuMs(work: () => unknown): Promise<number> {
  const start = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

/** mulberry32 */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Realistic batches, oldest first. */
export function manyBatches(count: number): Batch[] {
  const random = seededRandom(7);
  const crops = ['Tomato', 'Lettuce', 'Basil', 'Pepper', null, 'Cucumber'];
  const decimal = (max: number): string => (random() * max).toFixed(2);
  return Array.from({ length: count }, (_, at) =>
    sampleBatch({
      batch_id: `batch-${Math.floor(random() * 1e9).toString(16)}-${at}`,
      batch_name: `${crops[at % 6] ?? 'Trial'} house ${at % 9} tray ${Math.floor(random() * count)}`,
      batch_creation_date: new Date(1_700_000_000_000 + at * 600_000).toISOString(),
      crop_type: crops[at % 6]!,
      number_of_images: at % 50,
      avg_germination_rate: at % 11 === 0 ? null : decimal(100),
      avg_non_germinated_seedlings: decimal(200),
      avg_usable_seedling_rate: decimal(100),
      avg_coefficient_of_variation: decimal(40),
      avg_median_seedling_size_mm2: decimal(900),
      scanned_by_email: `user${at % 23}@example.org`,
      comment: at % 9 === 0 ? `dry corner, seen at ${at}` : null,
      warnings: at % 17 === 0,
    }),
  );
}

/** What a promise rejects with. */
export function failureOf(promise: Promise<unknown>): Promise<Failure> {
  return promise.then(() => Promise.reject(new Error('There was no error.')), (error: ServiceError) => error.failure);
}

export function json(body: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers });
}

export type Step = Response | 'down' | 'hang' | (() => Response);

/** A service that responds with the steps in turn, and the requests it received. */
export function serviceOf(steps: Step[]) {
  const requests: { path: string; init: RequestInit }[] = [];
  const fetch = (path: string, init: RequestInit): Promise<Response> => {
    requests.push({ path, init });
    const step = steps[Math.min(requests.length, steps.length) - 1]!;
    if (step === 'down') return Promise.reject(new TypeError('Failed to fetch'));
    if (step === 'hang') return new Promise(() => undefined);
    return Promise.resolve(step instanceof Response ? step : step());
  };
  return { fetch, requests };
}
