// Owns what follows from the loaded batches and the view: the rows shown and their figures. Each is
// worked out at most once for a change, and only while something on the screen reads it.
import { count as countText } from './data/locale';
import {
  activity,
  distributions,
  dots,
  headline,
  rowsByCrop,
  series,
  type Headline,
  type Measure,
} from './data/figures';
import { NO_FILTER, select, sorted } from './data/filter';
import { standOuts, usual } from './data/usual';
import { before } from './data/window';
import { Columns } from './data/columns';
import { batches } from './batches.svelte';
import { view } from './view.svelte';

/** Crops with a colour and a small chart of their own; eyes tell no more apart. */
export const CROPS_TOLD_APART = 6;

// More dots hide each other at the size they are drawn, and hide nothing that fewer would show.
const DOTS_MAX = 2_500;

const STAND_OUTS_MAX = 6;

const NOTHING = new Columns();

class Shown {
  measure = $state<Measure>('germination');

  /** Rows number into these. Reading them ties the reader to pages that come. */
  columns = $derived.by(() => (void batches.version, batches.main?.columns ?? NOTHING));

  // The object stays the same while it grows, so that the version must be read wherever rows are made.
  rows = $derived.by(() => (this.#follow(), select(this.columns, view.current.filter, view.current.window)));
  ordered = $derived(sorted(this.columns, this.rows, view.current.sort));

  /** The rows of the window whatever the filter: what crops there are, and what is usual. */
  windowRows = $derived.by(() => (this.#follow(), select(this.columns, NO_FILTER, view.current.window)));
  usual = $derived(usual(this.columns, this.windowRows));

  headline = $derived(headline(this.columns, this.rows));
  /** The window before, once all of it is here; a part would be no comparison. */
  headlineBefore: Headline | null = $derived.by(() => {
    const window = before(view.current.window);
    const load = batches.main?.covers(view.current.window) ? batches.holding(window) : null;
    if (load === null) return null;
    this.#follow();
    return headline(load.columns, select(load.columns, view.current.filter, window));
  });

  series = $derived(series(this.columns, this.rows, view.current.window, this.measure, CROPS_TOLD_APART));
  distributions = $derived(distributions(this.columns, this.rows, this.measure));
  dots = $derived(dots(this.columns, this.rows, DOTS_MAX));
  activity = $derived(activity(this.columns, this.rows, view.current.window));
  standOuts = $derived(standOuts(this.columns, this.rows, STAND_OUTS_MAX));

  crops = $derived(
    rowsByCrop(this.columns, this.windowRows).map(({ index, rows }) => ({
      name: this.columns.cropName(index),
      batches: rows.length,
    })),
  );
  /** The colour of a crop, by its rank in the window: filtering does not repaint it. */
  #slots = $derived(new Map(this.crops.slice(0, CROPS_TOLD_APART).map(({ name }, slot) => [name, slot])));

  scanners = $derived.by(() => {
    const { scanner, scanners } = this.columns;
    const counts = new Int32Array(scanners.length + 1);
    for (const row of this.windowRows) counts[scanner[row]! + 1]!++;
    const named = Array.from(counts, (batches, at) => ({ name: at === 0 ? null : scanners[at - 1]!, batches }));
    return named.filter(({ batches }) => batches > 0).sort((a, b) => b.batches - a.batches);
  });

  /** 0 to CROPS_TOLD_APART - 1, or -1 for the crops in grey. */
  slot(crop: string | null): number {
    return this.#slots.get(crop) ?? -1;
  }

  #follow(): void {
    void batches.version;
  }
}

export const shown = new Shown();

/** What to call a crop, which may be missing. */
export function cropName(crop: string | null): string {
  return crop ?? 'No crop given';
}

export function batchCount(n: number): string {
  return n === 1 ? '1 batch' : `${countText(n)} batches`;
}
