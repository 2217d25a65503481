// The batches that match the view, and their statistics. Each value is computed at most once per change, and only while
// something on the screen reads it.
import { batches } from './batches.svelte';
import { Columns } from './data/columns';
import { NO_FILTER, select, type Filter } from './data/filter';
import { belowUsualSince, findOutliers, meanFromUsual, usualRanges, unusualRows, type UsualRanges } from './data/outliers';
import { dayCount, plusDays, recentPeriod, usualRangePeriod } from './data/period';
import { sorted } from './data/sort';
import {
  activity,
  distributions,
  dots,
  headline,
  rowsBy,
  series,
  wholeSteps,
  type Headline,
  type Measure,
} from './data/statistics';
import { CROP_COLOURS_MAX, cropSlots } from './crop-colours';
import { session } from './session.svelte';
import { view } from './view.svelte';

// More dots would only cover each other.
const DOTS_MAX = 2_500;

const YEAR_DAYS = 365;
// A crop that was last scanned before is out of season.
const CURRENT_DAYS = 35;

const NO_COLUMNS = new Columns();
const NO_RANGES: UsualRanges = new Map();

class Results {
  measure = $state<Measure>('germination');

  // The object stays the same while it grows. So whatever computes rows must read the version too.
  columns = $derived.by(() => (void batches.version, batches.main?.columns ?? NO_COLUMNS));

  // Each on its own, so that another sort or filter does not compute what depends on the period only.
  #period = $derived(view.current.period);
  #filter = $derived(view.current.filter);

  rows = $derived(this.rowsWith({}));
  sortedRows = $derived(sorted(this.columns, this.rows, view.current.sort));

  /** All rows of the period, whatever the filter. */
  periodRows = $derived.by(() => (void batches.version, select(this.columns, NO_FILTER, this.#period)));

  headline = $derived(headline(this.columns, this.rows));
  /** Null until the whole previous period is loaded: partial data is not comparable. */
  previousHeadline: Headline | null = $derived.by(() => {
    const loader = batches.main?.covers(view.current.period) ? batches.loaderFor(view.previous) : null;
    if (loader === null) return null;
    return headline(loader.columns, this.rowsWith({}, loader.columns, view.previous));
  });
  /** Whether all batches are of one day: nothing to draw over time. */
  isOneDay = $derived(
    batches.main?.state === 'complete' && this.columns.day[this.rows[0]!] === this.columns.day[this.rows.at(-1)!],
  );

  series = $derived(series(this.columns, this.rows, view.current.period, this.measure, CROP_COLOURS_MAX));
  distributions = $derived(distributions(this.columns, this.rows, this.measure));
  dots = $derived(dots(this.columns, this.rows, DOTS_MAX));
  activity = $derived(activity(this.columns, this.rows, view.current.period));

  crops = $derived(this.#counts('crop'));
  people = $derived(this.#counts('person'));
  /** For the filter: also the crops that are loaded, but not in the period. */
  knownCrops = $derived.by(() => {
    void batches.version;
    const others = new Set(batches.loaders.flatMap(({ columns }) => columns.crops));
    for (const { name } of this.crops) others.delete(name ?? '');
    return [...this.crops, ...[...others].sort().map((name) => ({ name, batches: 0 }))];
  });
  /** The batches of the last 365 days, when they are loaded. */
  #year = $derived(batches.yearLoader(view.today));
  /** Whether they are not loaded and are not being loaded. */
  isNotComparable = $derived(
    this.#year === null &&
      (batches.main?.state === 'partial' || batches.main?.state === 'failed' || batches.year?.state === 'failed'),
  );
  /** Nothing is called unusual until the period and the last 365 days are loaded. Reads the year first: Svelte 5.57 misses
      its later changes otherwise. */
  isComparing = $derived((this.#year === null && !this.isNotComparable) || batches.main?.state === 'loading');
  /** The usual ranges of each crop, in every period and on every screen. */
  #allRanges = $derived.by(() => {
    const columns = this.#year?.columns;
    return columns === undefined ? NO_RANGES : usualRanges(columns, select(columns, NO_FILTER, usualRangePeriod(view.today)));
  });
  ranges: UsualRanges = $derived(this.isComparing ? NO_RANGES : this.#allRanges);
  /** How far the rates are from the mean of each batch's crop. */
  fromUsual = $derived({ germination: this.#fromUsual('germination'), usable: this.#fromUsual('usable') });
  /** The crops that are below what is usual, and since when in the last 365 days. Not before the end of the period. */
  falling: Map<string | null, { start: string; mean: number; usual: number }> = $derived.by(() => {
    const columns = this.#year?.columns;
    if (columns === undefined || this.isComparing) return new Map();
    const year = usualRangePeriod(view.today);
    const { crops, step } = series(columns, select(columns, NO_FILTER, year), year, this.measure, Infinity);
    const found = crops.map(({ crop, points }) => {
      const weeks = wholeSteps(points, step, year, view.today).filter(({ mean }) => mean !== null);
      const isCurrent = (weeks.at(-1)?.start ?? '') > plusDays(view.today, -CURRENT_DAYS);
      return { crop, since: isCurrent ? belowUsualSince(weeks, columns, this.ranges, this.measure) : null };
    });
    return new Map(
      found.flatMap(({ crop, since }) => {
        const usual = this.ranges.get(crop)?.[this.measure]?.mean;
        return since === null || usual === undefined || since.start > this.#period.to ? [] : [[crop, { ...since, usual }]];
      }),
    );
  });
  /** What is new since the last working day, whatever the period. Null until it can be compared. */
  recent = $derived.by(() => {
    const period = recentPeriod(view.today);
    const columns = batches.loaderFor(period)?.columns;
    if (columns === undefined || this.isComparing || this.isNotComparable) return null;
    const rows = this.rowsWith({}, columns, period);
    const notCompared = rowsBy('crop', columns, rows).filter(({ name }) => !this.ranges.has(name));
    return {
      total: rows.length,
      unusual: findOutliers(columns, rows, this.ranges).map(({ row }) => columns.batch(row)),
      notCompared: notCompared.reduce((sum, { rows }) => sum + rows.length, 0),
    };
  });
  // Other filters do not depend on them.
  #rangesOfFilter = $derived(this.#filter.warnings === 'unusual' ? this.ranges : NO_RANGES);
  #outliersOfPeriod = $derived(findOutliers(this.columns, this.periodRows, this.ranges));
  outliers = $derived.by(() => {
    const shown = new Uint8Array(this.columns.length);
    for (const row of this.rows) shown[row] = 1;
    return this.#outliersOfPeriod.filter(({ row }) => shown[row] === 1);
  });
  unusual = $derived(unusualRows(this.#outliersOfPeriod));
  /** The crops of shown batches that cannot be compared: not recorded, or with too few batches. */
  notCompared = $derived(rowsBy('crop', this.columns, this.rows).filter(({ name }) => !this.ranges.has(name)));
  /** How many batches of the last 365 days match the filter; null if it is not known. */
  matchesOfYear = $derived.by(() => {
    if (this.#year === null) return null;
    return this.rowsWith({}, this.#year.columns, usualRangePeriod(view.today)).length;
  });

  /** The rows that match the filter with a change to it. */
  rowsWith(change: Partial<Filter>, columns = this.columns, period = this.#period): Int32Array {
    void batches.version;
    return select(columns, { ...this.#filter, ...change }, period, this.#rangesOfFilter);
  }

  /** Null for a year, which would be compared with itself. */
  #fromUsual(measure: Measure): number | null {
    if (dayCount(this.#period) >= YEAR_DAYS) return null;
    return meanFromUsual(this.columns, this.rows, this.ranges, measure)?.points ?? null;
  }

  #counts(by: 'crop' | 'person'): { name: string | null; batches: number }[] {
    return rowsBy(by, this.columns, this.periodRows).map(({ name, rows }) => ({ name, batches: rows.length }));
  }

  /** The most frequent crops of the period have a colour, the others are grey. */
  #slots = $derived.by(() => {
    const names = this.crops.slice(0, CROP_COLOURS_MAX).map(({ name }) => name ?? '');
    const slots = cropSlots(session.organisation, names, CROP_COLOURS_MAX);
    return new Map(names.map((name, at) => [name, slots[at]!]));
  });

  /** The colour slot of a crop: 0 to CROP_COLOURS_MAX - 1, or -1 for grey. */
  slot(crop: string | null): number {
    return this.#slots.get(crop ?? '') ?? -1;
  }
}

export const results = new Results();

export { cropLabel } from './crop-colours';
