// The session of this browser at the service. The service keeps it in a cookie that scripts cannot read; here it is
// exchanged for short-lived tokens.

import { parseBody } from './api';
import { memberOf, rejected, ServiceError, type Failure } from './errors';
import { request, type Fetch } from './request';

export interface Token {
  value: string;
  /** When to get the next one, by the local clock, in ms. */
  renewAt: number;
}

export interface SignedIn {
  token: Token;
  clientId: string;
  organisation: string;
  label: string;
}

interface Options {
  signal?: AbortSignal;
  fetch?: Fetch;
  now?: () => number;
}

// The share of its lifetime after which a token is renewed.
const RENEW_AFTER = 0.8;

/** Throws `ServiceError`, or the signal's reason when the caller aborts. */
export async function signIn(clientId: string, clientSecret: string, keep: boolean, options: Options = {}): Promise<SignedIn> {
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret, keep: `${keep}` };
  return expectSignedIn(await post('/session', form, options), 'wrong-credentials');
}

/** Signs in with a link that works once. */
export async function signInWithLink(link: string, options: Options = {}): Promise<SignedIn> {
  return expectSignedIn(await post('/session', { link }, options), 'used-link');
}

/** Exchanges the cookie for a new token; null when this browser is not signed in. */
export const renewToken = (options: Options = {}): Promise<SignedIn | null> => post('/session/token', {}, options);

/** Ends the session at the service. */
export async function signOut({ signal, fetch }: Options = {}): Promise<void> {
  const { status } = await request('/session', { method: 'DELETE' }, signal, fetch);
  if (status !== 204) throw rejected(status, 'The service could not end the session.');
}

function expectSignedIn(signedIn: SignedIn | null, kind: 'wrong-credentials' | 'used-link'): SignedIn {
  if (signedIn === null) throw new ServiceError({ kind } satisfies Failure);
  return signedIn;
}

async function post(path: string, form: Record<string, string>, { signal, fetch, now = Date.now }: Options): Promise<SignedIn | null> {
  const headers = { Accept: 'application/json', 'Content-Type': 'application/x-www-form-urlencoded' };
  const sentAt = now();
  const body = new URLSearchParams(form).toString();
  const response = await request(path, { method: 'POST', headers, body }, signal, fetch);
  if (response.status === 401 || response.status === 204) return null;
  return parseSignedIn(parseBody(response, now), sentAt, response.status);
}

function parseSignedIn(body: unknown, sentAt: number, status: number): SignedIn {
  const value = memberOf(body, 'access_token');
  const ttlSecs = memberOf(body, 'expires_in');
  if (typeof value !== 'string' || typeof ttlSecs !== 'number') throw rejected(status, 'The response of the service has no access token.');
  const text = (name: string): string => {
    const value = memberOf(body, name);
    return typeof value === 'string' ? value : '';
  };
  const token = { value, renewAt: sentAt + ttlSecs * 1000 * RENEW_AFTER };
  return { token, clientId: text('client_id'), organisation: text('organisation'), label: text('label') };
}
