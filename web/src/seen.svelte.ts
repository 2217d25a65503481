// What somebody in the organisation has marked as seen or written a note about: batches by their ids, and crops that decline.
// The service keeps the marks. This device stores them too, and the changes that the service does not have yet. A note is a mark
// with a subject of its own: who wrote it need not be who marked the batch as seen.
import { fetchSeen, type SeenChange, type SeenMark } from './data/api';
import type { Marks } from './data/filter';
import { session } from './session.svelte';
import { onStored, readSetting, storeSetting } from './settings';

// The service limits the length of a request. The others follow with the next one.
const SENT_MAX = 25;
const NOTE = 'note: ';

interface Stored {
  marks: SeenMark[];
  unsent: Record<string, SeenChange>;
}

class Seen implements Marks {
  #changes = $state(0);
  #setting = $derived(`marks.${session.clientId}`);
  #stored: Stored = $derived.by(() => (void this.#changes, parse(readSetting(this.#setting))));
  #marks: ReadonlyMap<string, SeenMark> = $derived(new Map(this.#stored.marks.map((mark) => [mark.subject, mark])));
  /** The notes by what they are about: batches by their ids. */
  notes: ReadonlyMap<string, string> = $derived.by(() => {
    const subjects = [...this.#marks.keys(), ...Object.keys(this.#stored.unsent)].filter((subject) => subject.startsWith(NOTE));
    const notes = subjects.map((subject) => [subject.slice(NOTE.length), this.mark(subject).note] as const);
    return new Map(notes.filter(([, note]) => note !== ''));
  });

  constructor() {
    // Another tab.
    onStored('marks.', () => this.#changes++);
  }

  /** Without a name and a time while the service does not have its change. */
  mark(subject: string): SeenMark {
    const none = { subject, is_seen: false, at: '', by: '', note: '' };
    const mark = this.#marks.get(subject) ?? none;
    const change = this.#stored.unsent[subject];
    return change === undefined ? mark : { ...mark, at: '', by: '', ...change };
  }

  readonly isSeen = (subject: string): boolean => this.mark(subject).is_seen;

  note(subject: string): SeenMark {
    return this.mark(NOTE + subject);
  }

  write(note: string, subjects: readonly string[]): void {
    this.set({ note }, subjects.map((subject) => NOTE + subject));
  }

  /** Without a connection, the change is sent with the next refresh. */
  set(change: SeenChange, subjects: readonly string[]): void {
    const changed = subjects.map((subject) => [subject, { ...this.#stored.unsent[subject], ...change }] as const);
    this.#store({ ...this.#stored, unsent: { ...this.#stored.unsent, ...Object.fromEntries(changed) } });
    void this.refresh();
  }

  /** Sends what was changed here, and gets the marks of all. */
  async refresh(): Promise<void> {
    const setting = this.#setting;
    const sent = Object.fromEntries(Object.entries(this.#stored.unsent).slice(0, SENT_MAX));
    try {
      const marks = await fetchSeen(sent, await session.currentToken());
      if (setting !== this.#setting) return;
      const isSent = ([subject, change]: [string, SeenChange]): boolean => JSON.stringify(sent[subject]) === JSON.stringify(change);
      const unsent = Object.entries(this.#stored.unsent).filter((change) => !isSent(change));
      this.#store({ marks, unsent: Object.fromEntries(unsent) });
    } catch {
      // The batches are requested at the same time: their error is shown.
    }
  }

  #store(stored: Stored): void {
    const text = JSON.stringify(stored);
    // What is shown depends on it.
    if (text === readSetting(this.#setting)) return;
    storeSetting(this.#setting, text);
    this.#changes++;
  }
}

export const seen = new Seen();

function parse(text: string | null): Stored {
  try {
    const { marks, unsent } = JSON.parse(text ?? '') as Stored;
    return { marks: [...marks], unsent: { ...unsent } };
  } catch {
    return { marks: [], unsent: {} };
  }
}
