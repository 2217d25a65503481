// The batches that match the view, and their statistics. Each value is computed at most once per change, and only while
// something on the screen reads it.
import { batches } from './batches.svelte';
import { Columns } from './data/columns';
import { NO_FILTER, select } from './data/filter';
import { count } from './data/format';
import { findOutliers, typicalRanges } from './data/outliers';
import { previousPeriod } from './data/period';
import { sorted } from './data/sort';
import {
  activity,
  distributions,
  dots,
  headline,
  rowsByCrop,
  series,
  type Headline,
  type Measure,
} from './data/statistics';
import { view } from './view.svelte';

/** Crops with their own colour and small chart; more colours cannot be distinguished. */
export const CROP_COLOURS_MAX = 6;

// More dots would only cover each other.
const DOTS_MAX = 2_500;

const OUTLIERS_MAX = 6;

const NO_COLUMNS = new Columns();

class Results {
  measure = $state<Measure>('germination');

  // The object stays the same while it grows. So whatever computes rows must read the version too.
  columns = $derived.by(() => (void batches.version, batches.main?.columns ?? NO_COLUMNS));

  rows = $derived.by(() => (void batches.version, select(this.columns, view.current.filter, view.current.period)));
  sortedRows = $derived(sorted(this.columns, this.rows, view.current.sort));

  /** All rows of the period, whatever the filter. */
  periodRows = $derived.by(() => (void batches.version, select(this.columns, NO_FILTER, view.current.period)));
  typicalRanges = $derived(typicalRanges(this.columns, this.periodRows));

  headline = $derived(headline(this.columns, this.rows));
  /** Null until the whole previous period is loaded: a part is no comparison. */
  previousHeadline: Headline | null = $derived.by(() => {
    const period = previousPeriod(view.current.period);
    const loader = batches.main?.covers(view.current.period) ? batches.loaderFor(period) : null;
    if (loader === null) return null;
    void batches.version;
    return headline(loader.columns, select(loader.columns, view.current.filter, period));
  });

  series = $derived(series(this.columns, this.rows, view.current.period, this.measure, CROP_COLOURS_MAX));
  distributions = $derived(distributions(this.columns, this.rows, this.measure));
  dots = $derived(dots(this.columns, this.rows, DOTS_MAX));
  activity = $derived(activity(this.columns, this.rows, view.current.period));
  outliers = $derived(findOutliers(this.columns, this.rows, OUTLIERS_MAX));

  crops = $derived(
    rowsByCrop(this.columns, this.periodRows).map(({ index, rows }) => ({
      name: this.columns.cropName(index),
      batches: rows.length,
    })),
  );
  /** By rank in the period, so that a filter does not change a crop's colour. */
  #slots = $derived(new Map(this.crops.slice(0, CROP_COLOURS_MAX).map(({ name }, slot) => [name, slot])));

  operators = $derived.by(() => {
    const { operator, operators } = this.columns;
    const counts = new Int32Array(operators.length + 1);
    for (const row of this.periodRows) counts[operator[row]! + 1]!++;
    const named = Array.from(counts, (batches, at) => ({ name: at === 0 ? null : operators[at - 1]!, batches }));
    return named.filter(({ batches }) => batches > 0).sort((a, b) => b.batches - a.batches);
  });

  /** The colour slot of a crop: 0 to CROP_COLOURS_MAX - 1, or -1 for grey. */
  slot(crop: string | null): number {
    return this.#slots.get(crop) ?? -1;
  }
}

export const results = new Results();

export function cropLabel(crop: string | null): string {
  return crop ?? 'Crop not recorded';
}

export function batchCount(n: number): string {
  return n === 1 ? '1 batch' : `${count(n)} batches`;
}
