// What somebody in the organisation has marked as seen or written a note about: batches by their ids, and crops that decline.
// The service keeps the marks. This device stores them too, and the changes that the service does not have yet. Each note is a
// mark with a subject of its own, which no other note replaces: "note m3x0k1: b-17".
import { fetchSeen, type SeenChange, type SeenMark } from './data/api';
import type { Marks } from './data/filter';
import { groupBy } from './data/percentile';
import { session } from './session.svelte';
import { onStored, readSetting, storeSetting } from './settings';
import { ignoreTaps } from './taps';
import { instantMs } from './time/day';

// The service limits the length of a request. The others follow with the next one.
const SENT_MAX = 25;
// Then it is said that changes are not saved yet.
const RESPONSE_MS_MAX = 4_000;
const NOTE = /^(note\b[^:]*): (.*)$/s;

/** A note that is written, or one that is changed, on some batches. */
export interface Draft {
  typed: string;
  changed: string[] | null;
}

interface Stored {
  marks: SeenMark[];
  unsent: Record<string, SeenChange>;
}

class Seen implements Marks {
  #changes = $state(0);
  /** Whether the service did not respond. */
  #isSilent = $state(false);
  #setting = $derived(`marks.${session.clientId}`);
  #stored: Stored = $derived.by(() => (void this.#changes, parse(readSetting(this.#setting))));
  #marks: ReadonlyMap<string, SeenMark> = $derived(new Map(this.#stored.marks.map((mark) => [mark.subject, mark])));
  /** Whether changes are stored on this device only, until there is a connection. */
  isUnsaved = $derived(this.#isSilent && Object.keys(this.#stored.unsent).length > 0);
  /** Notes that are not finished: they stay while another page is open. */
  readonly drafts = new Map<string, Draft>();
  /** The notes by what they are about, oldest first: batches by their ids. */
  notes: ReadonlyMap<string, SeenMark[]> = $derived.by(() => {
    const subjects = new Set([...this.#marks.keys(), ...Object.keys(this.#stored.unsent)]);
    const notes = Array.from(subjects, (subject) => this.mark(subject)).filter(({ subject, note }) => note !== '' && NOTE.test(subject));
    return new Map(groupBy(notes, ({ subject }) => NOTE.exec(subject)![2]!));
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

  /** The notes on some batches, oldest first. One that was written on several is one, with all its subjects. */
  notesOn(subjects: readonly string[]): (SeenMark & { subjects: string[] })[] {
    const notes = groupBy(subjects.flatMap((subject) => this.notes.get(subject) ?? []), ({ subject, note }) => NOTE.exec(subject)![1] + note);
    const found = notes.map(([, same]) => ({ ...same[0]!, subjects: same.map(({ subject }) => subject) }));
    // Those that were not sent yet have no time.
    return found.sort((a, b) => Number(a.at === '') - Number(b.at === '') || instantMs(a.at) - instantMs(b.at));
  }

  /** All subjects of a note. */
  subjectsOf({ subject }: SeenMark): string[] {
    const all = [...this.notes.values()].flat().map(({ subject }) => subject);
    return all.filter((other) => NOTE.exec(other)![1] === NOTE.exec(subject)![1]);
  }

  write(note: string, subjects: readonly string[]): void {
    const key = Math.floor(Math.random() * 2 ** 48).toString(36);
    this.set({ note }, subjects.map((subject) => `note ${key}: ${subject}`));
  }

  /** Without a connection, the change is sent with the next refresh. */
  set(change: SeenChange, subjects: readonly string[]): void {
    const changed = subjects.map((subject) => [subject, { ...this.#stored.unsent[subject], ...change }] as const);
    this.#store({ ...this.#stored, unsent: { ...this.#stored.unsent, ...Object.fromEntries(changed) } });
    void this.refresh();
    ignoreTaps();
  }

  /** Sends what was changed here, and gets the marks of all. */
  async refresh(): Promise<void> {
    const setting = this.#setting;
    const sent = Object.fromEntries(Object.entries(this.#stored.unsent).slice(0, SENT_MAX));
    const silent = setTimeout(() => (this.#isSilent = true), RESPONSE_MS_MAX);
    try {
      const marks = await fetchSeen(sent, await session.currentToken());
      if (setting !== this.#setting) return;
      const isSent = ([subject, change]: [string, SeenChange]): boolean => JSON.stringify(sent[subject]) === JSON.stringify(change);
      const unsent = Object.entries(this.#stored.unsent).filter((change) => !isSent(change));
      this.#store({ marks, unsent: Object.fromEntries(unsent) });
      this.#isSilent = false;
    } catch {
      this.#isSilent = true;
    } finally {
      clearTimeout(silent);
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
