// The sign-in. The token lives in memory, or in sessionStorage with "Stay signed in". The secret is never stored.
import { signIn as requestToken, type Token } from './data/api';

const STORAGE_KEY = 'batchscan.session';

interface StoredSession extends Token {
  clientId: string;
}

class Session {
  token = $state.raw<Token | null>(null);
  clientId = $state('');
  /** The token expired while a view is open: a dialog over that view offers a new sign-in. */
  isDialogOpen = $state(false);
  #stay = false;
  /** The pending sign-in. A later one, or a sign-out, aborts it. */
  #attempt = new AbortController();

  constructor() {
    const stored = readStored();
    if (stored === null) return;
    this.clientId = stored.clientId;
    this.token = { value: stored.value, expiresAt: stored.expiresAt };
    this.#stay = true;
  }

  /** Whether "Stay signed in" was ticked. */
  get stay(): boolean {
    return this.#stay;
  }

  /** Returns false when a later sign-in or a sign-out aborted this one. Throws `ServiceError`. */
  async signIn(clientId: string, clientSecret: string, stay: boolean): Promise<boolean> {
    this.#attempt.abort();
    const { signal } = (this.#attempt = new AbortController());
    let token: Token;
    try {
      token = await requestToken(clientId, clientSecret, signal);
    } catch (error) {
      if (signal.aborted) return false;
      throw error;
    }
    if (signal.aborted) return false;
    this.clientId = clientId;
    this.#stay = stay;
    this.token = token;
    this.isDialogOpen = false;
    if (stay) store({ ...token, clientId });
    else clearStored();
    return true;
  }

  /** Called when the service rejects the token. */
  expire(): void {
    clearStored();
    this.isDialogOpen = true;
  }

  signOut(): void {
    this.#attempt.abort();
    clearStored();
    this.token = null;
    this.clientId = '';
    this.isDialogOpen = false;
  }
}

export const session = new Session();

function readStored(): StoredSession | null {
  try {
    const stored = JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? 'null') as Partial<StoredSession> | null;
    if (stored === null || typeof stored.value !== 'string' || typeof stored.clientId !== 'string') return null;
    if (typeof stored.expiresAt !== 'number' || stored.expiresAt <= Date.now()) return null;
    return { value: stored.value, clientId: stored.clientId, expiresAt: stored.expiresAt };
  } catch {
    // Storage may be disabled or contain something else: not signed in.
    return null;
  }
}

function store(session: StoredSession): void {
  try {
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify(session));
  } catch {
    // Without storage the session lasts as long as the page.
  }
}

function clearStored(): void {
  try {
    sessionStorage.removeItem(STORAGE_KEY);
  } catch {
    // Nothing could have been stored.
  }
}
