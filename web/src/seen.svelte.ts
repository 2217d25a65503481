// What somebody in the organisation has marked as seen: batches by their ids, and crops that decline. The service keeps the
// marks. This device stores them too, and the changes that the service does not have yet.
import { fetchSeen, type SeenChange, type SeenMark } from './data/api';
import { session } from './session.svelte';
import { onStored, readSetting, storeSetting } from './settings';

// The service limits the length of a request. The others follow with the next one.
const SENT_MAX = 25;

interface Stored {
  seen: SeenMark[];
  unsent: Record<string, SeenChange>;
}

class Seen {
  #changes = $state(0);
  #setting = $derived(`seen.${session.organisation}`);
  #stored: Stored = $derived.by(() => (void this.#changes, parse(readSetting(this.#setting))));
  #marks: ReadonlyMap<string, SeenMark> = $derived(new Map(this.#stored.seen.map((mark) => [mark.subject, mark])));

  constructor() {
    // Another tab.
    onStored('seen.', () => this.#changes++);
  }

  has(subject: string): boolean {
    return (this.#stored.unsent[subject] ?? this.#marks.has(subject)) !== false;
  }

  /** Who marked it, when, and why. A new mark has neither name nor time until the service has it. */
  mark(subject: string): SeenMark {
    const change = this.#stored.unsent[subject];
    const unsent = { subject, at: '', by: '', note: typeof change === 'string' ? change : '' };
    return unsent.note === '' ? (this.#marks.get(subject) ?? unsent) : unsent;
  }

  /** Without a connection, the change is sent with the next refresh. */
  set(change: SeenChange, subjects: readonly string[]): void {
    const changed = Object.fromEntries(subjects.map((subject) => [subject, change]));
    this.#store({ ...this.#stored, unsent: { ...this.#stored.unsent, ...changed } });
    void this.refresh();
  }

  /** Sends what was changed here, and gets the marks of all. */
  async refresh(): Promise<void> {
    const setting = this.#setting;
    const sent = Object.fromEntries(Object.entries(this.#stored.unsent).slice(0, SENT_MAX));
    try {
      const seen = await fetchSeen(sent, await session.currentToken());
      if (setting !== this.#setting) return;
      const unsent = Object.entries(this.#stored.unsent).filter(([subject, change]) => sent[subject] !== change);
      this.#store({ seen, unsent: Object.fromEntries(unsent) });
    } catch {
      // The batches are requested at the same time: their error is shown.
    }
  }

  #store(stored: Stored): void {
    storeSetting(this.#setting, JSON.stringify(stored));
    this.#changes++;
  }
}

export const seen = new Seen();

function parse(text: string | null): Stored {
  try {
    const { seen, unsent } = JSON.parse(text ?? '') as Stored;
    return { seen: [...seen], unsent: { ...unsent } };
  } catch {
    return { seen: [], unsent: {} };
  }
}
