// Owns who is signed in. The token lives in memory, or in sessionStorage when asked to stay;
// the secret passes through `signIn` and is kept nowhere.
import { signIn as askForToken, type Token } from './data/service';

const KEPT_AS = 'batchscan.session';

interface Kept extends Token {
  clientId: string;
}

class Session {
  token = $state.raw<Token | null>(null);
  clientId = $state('');
  /** The token was refused while a view is open: a dialog asks for a new one over that view. */
  asking = $state(false);
  #stay = false;
  /** The sign-in under way. A later one, or a sign-out, ends it: the reader's last word holds. */
  #attempt = new AbortController();

  constructor() {
    const kept = readKept();
    if (kept === null) return;
    this.clientId = kept.clientId;
    this.token = { value: kept.value, expiresAt: kept.expiresAt };
    this.#stay = true;
  }

  /** Whether the signed-in reader ticked "Stay signed in". */
  get stay(): boolean {
    return this.#stay;
  }

  /** Whether it came to its end; not when something else was asked for meanwhile. Throws `ServiceTrouble`. */
  async signIn(clientId: string, clientSecret: string, stay: boolean): Promise<boolean> {
    this.#attempt.abort();
    const { signal } = (this.#attempt = new AbortController());
    let token: Token;
    try {
      token = await askForToken(clientId, clientSecret, signal);
    } catch (error) {
      if (signal.aborted) return false;
      throw error;
    }
    if (signal.aborted) return false;
    this.clientId = clientId;
    this.#stay = stay;
    this.token = token;
    this.asking = false;
    if (stay) keep({ ...token, clientId });
    else forget();
    return true;
  }

  /** The service no longer takes the token. */
  expire(): void {
    forget();
    this.asking = true;
  }

  signOut(): void {
    this.#attempt.abort();
    forget();
    this.token = null;
    this.clientId = '';
    this.asking = false;
  }
}

export const session = new Session();

function readKept(): Kept | null {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT_AS) ?? 'null') as Partial<Kept> | null;
    if (kept === null || typeof kept.value !== 'string' || typeof kept.clientId !== 'string') return null;
    if (typeof kept.expiresAt !== 'number' || kept.expiresAt <= Date.now()) return null;
    return { value: kept.value, clientId: kept.clientId, expiresAt: kept.expiresAt };
  } catch {
    // Storage can be switched off or hold something foreign; either way nobody is signed in.
    return null;
  }
}

function keep(kept: Kept): void {
  try {
    sessionStorage.setItem(KEPT_AS, JSON.stringify(kept));
  } catch {
    // Without storage the session lasts as long as the page, which is what was promised at least.
  }
}

function forget(): void {
  try {
    sessionStorage.removeItem(KEPT_AS);
  } catch {
    // Nothing could have been kept.
  }
}
