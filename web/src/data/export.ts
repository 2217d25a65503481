// The file that the service exports.

import { expectOk } from './api';
import { ServiceError } from './errors';
import { requestDates, type Period } from './period';

// A large file over a slow connection.
const DOWNLOAD_MS_MAX = 600_000;

/** All batches of a period. Throws `ServiceError`. */
export async function fetchParquet(period: Period, token: string): Promise<Blob> {
  const path = `/v2/export.parquet?${new URLSearchParams(requestDates(period))}`;
  try {
    const signal = AbortSignal.timeout(DOWNLOAD_MS_MAX);
    const response = await fetch(path, { headers: { Authorization: `Bearer ${token}` }, signal });
    const { status, ok, headers } = response;
    expectOk({ status, retryAfter: headers.get('Retry-After'), body: ok ? '' : await response.text() });
    return await response.blob();
  } catch (error) {
    throw error instanceof ServiceError ? error : new ServiceError({ kind: 'offline' });
  }
}
