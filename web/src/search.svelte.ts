// Searches all batches of the organisation for one, page by page, and keeps only the match.
import type { Batch } from './data/batch';
import type { Period } from './data/period';
import { Loader } from './loading.svelte';

// Every four-digit year.
export const ALL_TIME: Period = { from: '0001-01-01', to: '9999-12-31' };

// Nothing is kept, so memory sets no limit. This one stops on a service that never sends a last page.
const SEARCHED_MAX = 20_000_000;

export class BatchSearch extends Loader {
  found = $state.raw<Batch | null>(null);

  constructor(
    private readonly matches: (batch: Batch) => boolean,
    period = ALL_TIME,
  ) {
    super(period, SEARCHED_MAX);
  }

  protected override onPage(batches: Batch[]): void | 'stop' {
    this.found = batches.find(this.matches) ?? null;
    return this.found === null ? undefined : 'stop';
  }
}
