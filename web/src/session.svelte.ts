// The sign-in. The service keeps the session in a cookie that scripts cannot read; this page has only short-lived tokens,
// in memory. The secret is never stored.
import { ServiceError, type Failure } from './data/errors';
import { renewToken, signIn, signInWithLink, signOut, type SignedIn, type Token } from './data/session';
import type { SignInFragment } from './data/url';
import { onStored, readSetting, storeSetting } from './settings';

// Set while a sign-out has not reached the service: the cookie must not sign in again.
const SIGNING_OUT = 'signing-out';
// All tabs have the same cookie, which each renewal replaces: one at a time.
const LOCK = 'batchscan.session';
// If a token is rejected so soon after a renewal, renewing again will not help.
const RENEWED_RECENTLY_MS = 2_000;
const START_RETRY_MS = 4_000;

class Session {
  token = $state.raw<Token | null>(null);
  clientId = $state('');
  organisation = $state('');
  label = $state('');
  /** Until the service has reported whether this browser is signed in. */
  isStarting = $state(true);
  /** Why that takes long; the page keeps trying. */
  startFailure = $state.raw<Failure | null>(null);
  /** The session ended while a view is open: a dialog over that view offers a new sign-in. */
  isDialogOpen = $state(false);
  /** The pending sign-in. A later one, or a sign-out, aborts it. */
  #attempt = new AbortController();
  #renewing: Promise<boolean> | null = null;
  #renewedAt = -Infinity;

  constructor() {
    // Signing out is for all tabs.
    onStored(SIGNING_OUT, () => location.replace('/'));
  }

  /** Signs in with the fragment of the URL or with the cookie. Throws `ServiceError` for a fragment that is wrong. */
  async start(fragment: SignInFragment | null): Promise<void> {
    try {
      if (fragment !== null) await this.signInWith(fragment);
    } finally {
      while (this.token === null && this.isStarting) {
        try {
          await this.#finishSignOut();
          await this.renew();
          this.isStarting = false;
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error;
          this.startFailure = error.failure;
          await new Promise((resolve) => setTimeout(resolve, START_RETRY_MS));
        }
      }
      this.isStarting = false;
      this.startFailure = null;
    }
  }

  /** Returns false when a later sign-in or a sign-out aborted this one. Throws `ServiceError`. */
  signIn(clientId: string, clientSecret: string, keep: boolean): Promise<boolean> {
    return this.#attemptTo((signal) => signIn(clientId, clientSecret, keep, { signal }));
  }

  signInWith(fragment: SignInFragment): Promise<boolean> {
    if ('link' in fragment) return this.#attemptTo((signal) => signInWithLink(fragment.link, { signal }));
    return this.signIn(fragment.clientId, fragment.clientSecret, false);
  }

  /** A token that is not about to expire. Throws `ServiceError`. */
  async currentToken(): Promise<string> {
    if (this.token !== null && Date.now() >= this.token.renewAt) await this.renew();
    if (this.token === null) throw new ServiceError({ kind: 'signed-out' });
    return this.token.value;
  }

  /** Gets a new token; false when the session has ended. Throws `ServiceError` when the service does not respond. */
  renew(): Promise<boolean> {
    this.#renewing ??= this.#renew().finally(() => (this.#renewing = null));
    return this.#renewing;
  }

  /** The service rejected the token: whether there is a better one. */
  async renewRejected(): Promise<boolean> {
    if (Date.now() - this.#renewedAt < RENEWED_RECENTLY_MS) return false;
    return this.renew();
  }

  /** The session has ended. */
  expire(): void {
    this.isDialogOpen = true;
  }

  async signOut(): Promise<void> {
    this.#attempt.abort();
    this.token = null;
    this.clientId = '';
    this.organisation = '';
    this.label = '';
    this.isDialogOpen = false;
    storeSetting(SIGNING_OUT, 'yes');
    // Otherwise the next start does it.
    await this.#finishSignOut().catch(() => undefined);
  }

  async #attemptTo(request: (signal: AbortSignal) => Promise<SignedIn>): Promise<boolean> {
    this.#attempt.abort();
    const { signal } = (this.#attempt = new AbortController());
    let signedIn: SignedIn;
    try {
      signedIn = await exclusively(() => request(signal));
    } catch (error) {
      if (signal.aborted) return false;
      throw error;
    }
    if (signal.aborted) return false;
    storeSetting(SIGNING_OUT, null);
    this.#accept(signedIn);
    return true;
  }

  async #renew(): Promise<boolean> {
    const signedIn = await exclusively(() => renewToken());
    if (signedIn !== null) this.#accept(signedIn);
    return signedIn !== null;
  }

  #accept({ token, clientId, organisation, label }: SignedIn): void {
    this.clientId = clientId;
    this.organisation = organisation;
    this.label = label;
    this.token = token;
    this.#renewedAt = Date.now();
    this.isDialogOpen = false;
    this.isStarting = false;
  }

  async #finishSignOut(): Promise<void> {
    if (readSetting(SIGNING_OUT) === null) return;
    await exclusively(() => signOut());
    storeSetting(SIGNING_OUT, null);
  }
}

export const session = new Session();

/** Without HTTPS, some browsers have no locks. Then two tabs that renew at the same moment both ask to sign in again. */
function exclusively<T>(work: () => Promise<T>): Promise<T> {
  return 'locks' in navigator ? navigator.locks.request(LOCK, work) : work();
}
