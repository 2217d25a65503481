// Owns the search for one batch in the whole organisation, page by page, keeping none but the match.
import type { Batch } from './data/batch';
import type { Window } from './data/window';
import { Walking } from './walking.svelte';

// All that a four-digit year can say. The service has no lookup by id, so every page is read.
const EVER: Window = { from: '0001-01-01', to: '9999-12-31' };

// Nothing is kept, so memory sets no limit; this one ends a service that never sends a last page.
const SEARCHED_MAX = 20_000_000;

export class Search extends Walking {
  found = $state.raw<Batch | null>(null);

  constructor(private readonly matches: (batch: Batch) => boolean) {
    super(EVER, SEARCHED_MAX);
  }

  protected override take(batches: Batch[]): void | 'stop' {
    this.found = batches.find(this.matches) ?? null;
    return this.found === null ? undefined : 'stop';
  }
}
