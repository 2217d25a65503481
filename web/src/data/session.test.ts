import { describe, expect, it } from 'vitest';
import { renewToken, signIn, signInWithLink, signOut, type SignedIn } from './session';
import { failureOf, json, serviceOf, type Step } from './test-data';

const NOW = Date.UTC(2026, 2, 31);
const SIGNED_IN = { access_token: 'abc.D-_~+/=', token_type: 'bearer', expires_in: 3600, client_id: 'id', organisation: 'Green Valley', label: 'Anna' };
const EXPECTED: SignedIn = {
  token: { value: 'abc.D-_~+/=', renewAt: NOW + 2_880_000 },
  clientId: 'id',
  organisation: 'Green Valley',
  label: 'Anna',
};

const nothing = (): Response => new Response(null, { status: 204 });
const environment = (step: Step) => ({ ...serviceOf([step]), now: () => NOW });

describe('signIn', () => {
  it('posts a form, and returns a token that is renewed before it expires', async () => {
    const service = environment(json(SIGNED_IN));
    expect(await signIn('id', 's&cret=+', true, service)).toEqual(EXPECTED);
    const { path, init } = service.requests[0]!;
    expect([path, init.method]).toEqual(['/session', 'POST']);
    expect(new Headers(init.headers).get('Content-Type')).toBe('application/x-www-form-urlencoded');
    expect(init.body).toBe('grant_type=client_credentials&client_id=id&client_secret=s%26cret%3D%2B&keep=true');
  });

  it.each<[string, Step, object]>([
    ['wrong credentials', json({ detail: 'no' }, 401), { kind: 'wrong-credentials' }],
    ['a busy service', json({}, 503, { 'Retry-After': '5' }), { kind: 'unavailable', retryAfterSecs: 5 }],
    ['a busy service that names no time', json({}, 429), { kind: 'unavailable', retryAfterSecs: 3 }],
    ['no connection', 'down', { kind: 'offline' }],
    ['a failure', json({ detail: 'Internal error' }, 500), { kind: 'rejected', status: 500, detail: 'Internal error' }],
    [
      'a missing field',
      json({ detail: [{ type: 'missing', loc: ['body', 'client_id'], msg: 'Field required' }] }, 422),
      { kind: 'rejected', status: 422, detail: 'The service responded with status 422.' },
    ],
    [
      'no JSON',
      new Response('<html>'),
      { kind: 'rejected', status: 200, detail: 'The response of the service is not JSON.' },
    ],
    [
      'no token',
      json({ token: 'x' }),
      { kind: 'rejected', status: 200, detail: 'The response of the service has no access token.' },
    ],
    [
      'a token that is not valid in a header',
      json({ access_token: 'a\nb' }),
      { kind: 'rejected', status: 200, detail: 'The response of the service has no access token.' },
    ],
    [
      'an error page',
      new Response('<html>', { status: 404 }),
      { kind: 'rejected', status: 404, detail: 'The service responded with status 404.' },
    ],
  ])('reports %s', async (_, step, failure) => {
    expect(await failureOf(signIn('id', 'secret', false, environment(step)))).toEqual(failure);
  });

  it('can be aborted, before and during', async () => {
    await expect(signIn('id', 's', false, { ...environment('hang'), signal: AbortSignal.abort() })).rejects.toThrow(/abort/i);
    const stop = new AbortController();
    const pending = signIn('id', 's', false, { ...environment('hang'), signal: stop.signal });
    stop.abort();
    await expect(pending).rejects.toThrow(/abort/i);
  });

  it('never includes the secret in an error', async () => {
    const error: unknown = await signIn('id', 'hush-hush', false, environment(json({}, 422))).catch(
      (reason: unknown) => reason,
    );
    expect(JSON.stringify(error) + String(error)).not.toContain('hush');
  });
});

it('signs in with a link, which works once', async () => {
  const service = environment(json(SIGNED_IN));
  expect(await signInWithLink('a.b', service)).toEqual(EXPECTED);
  expect(service.requests[0]!.init.body).toBe('link=a.b');
  expect(await failureOf(signInWithLink('a.b', environment(json({}, 401))))).toEqual({ kind: 'used-link' });
});

it('renews the token, or reports that no one is signed in', async () => {
  const service = environment(json(SIGNED_IN));
  expect(await renewToken(service)).toEqual(EXPECTED);
  expect(service.requests[0]!.path).toBe('/session/token');
  expect(await renewToken(environment(nothing()))).toBeNull();
  expect(await renewToken(environment(json({}, 401)))).toBeNull();
  expect(await failureOf(renewToken(environment('down')))).toEqual({ kind: 'offline' });
});

it('signs out at the service', async () => {
  const service = environment(nothing());
  await signOut(service);
  expect([service.requests[0]!.path, service.requests[0]!.init.method]).toEqual(['/session', 'DELETE']);
  expect((await failureOf(signOut(environment(json({}, 500))))).kind).toBe('rejected');
});
