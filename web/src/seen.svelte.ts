// The batches that this user marked as seen, on this device, for each organisation.
import { session } from './session.svelte';
import { onStored, readSetting, storeSetting } from './settings';

// Only the batches of the last week matter; the oldest are dropped.
const SEEN_MAX = 500;

class Seen {
  #changes = $state(0);
  #setting = $derived(`seen.${session.organisation}`);
  #ids: ReadonlySet<string> = $derived.by(() => (void this.#changes, new Set(parse(readSetting(this.#setting)))));

  constructor() {
    // Another tab is the same device.
    onStored('seen.', () => this.#changes++);
  }

  has(batchId: string): boolean {
    return this.#ids.has(batchId);
  }

  mark(...batchIds: string[]): void {
    this.#store([...this.#ids, ...batchIds]);
  }

  undo(...batchIds: string[]): void {
    this.#store([...this.#ids].filter((id) => !batchIds.includes(id)));
  }

  #store(ids: string[]): void {
    storeSetting(this.#setting, JSON.stringify(ids.slice(-SEEN_MAX)));
    this.#changes++;
  }
}

export const seen = new Seen();

function parse(text: string | null): string[] {
  try {
    const ids: unknown = JSON.parse(text ?? '[]');
    return Array.isArray(ids) ? ids.filter((id) => typeof id === 'string') : [];
  } catch {
    return [];
  }
}
