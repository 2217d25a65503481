// The batches that match the view, and their statistics. Each value is computed at most once per change, and only while
// something on the screen reads it.
import { batches, type PeriodLoader } from './batches.svelte';
import { Columns } from './data/columns';
import { NO_FILTER, select, type Filter } from './data/filter';
import { findOutliers, meanFromTypical, typicalRanges, unusualRows, type TypicalRanges } from './data/outliers';
import { dayCount, daysUpTo, plusDays, samePeriod, TYPICAL_DAYS, TYPICAL_DAYS_MAX, type Period } from './data/period';
import { sorted } from './data/sort';
import {
  activity,
  distributions,
  dots,
  headline,
  rowsBy,
  series,
  type Headline,
  type Measure,
} from './data/statistics';
import { CROP_COLOURS_MAX, cropSlots } from './crop-colours';
import { session } from './session.svelte';
import { view } from './view.svelte';

// More dots would only cover each other.
const DOTS_MAX = 2_500;

// In a longer period, most crops have enough batches in `TYPICAL_DAYS`.
const SHORT_DAYS = 31;

const NO_COLUMNS = new Columns();
const NO_RANGES: TypicalRanges = new Map();

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
  /** Null until the whole previous period is loaded: a part is no comparison. */
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
  operators = $derived(this.#counts('operator'));
  /** For the filter: also the crops that are loaded, but not in the period. */
  knownCrops = $derived.by(() => {
    void batches.version;
    const others = new Set(batches.loaders.flatMap(({ columns }) => columns.crops));
    for (const { name } of this.crops) others.delete(name ?? '');
    return [...this.crops, ...[...others].sort().map((name) => ({ name, batches: 0 }))];
  });
  /** Whether the user asked for the days that only crops with few batches need. */
  wantsAllDays = $state(false);
  /** Whether these days are compared: also in a short period, for a single batch, and when they are loaded. */
  hasAllDays = $derived.by(() => {
    if (this.wantsAllDays || dayCount(this.#period) <= SHORT_DAYS || view.current.screen.name === 'batch') return true;
    const before = this.#daysBefore(TYPICAL_DAYS_MAX);
    return before === null || batches.loaderFor(before) !== null;
  });
  /** The days to compare with before the loaded ones; null if there are none. */
  daysBefore = $derived(this.#daysBefore(this.hasAllDays ? TYPICAL_DAYS_MAX : TYPICAL_DAYS));
  /** Their loader, when it has ended. */
  #loaderBefore = $derived.by(() => {
    const { daysBefore } = this;
    if (daysBefore === null) return null;
    const hasEnded = ({ state, period }: PeriodLoader): boolean => state !== 'loading' && samePeriod(period, daysBefore);
    return batches.loaderFor(daysBefore) ?? batches.loaders.find(hasEnded) ?? null;
  });
  isComparing = $derived(
    batches.main?.state === 'loading' || (this.daysBefore !== null && this.#loaderBefore === null),
  );
  /** Whether some of these batches could not be loaded. */
  isPartlyCompared = $derived(
    batches.main?.state !== 'complete' || (this.daysBefore !== null && !this.#loaderBefore?.covers(this.daysBefore)),
  );
  #recentRanges = $derived(this.#rangesOf(TYPICAL_DAYS));
  /** What is typical for each crop, the same on every screen. */
  ranges: TypicalRanges = $derived(
    this.hasAllDays ? new Map([...this.#rangesOf(TYPICAL_DAYS_MAX), ...this.#recentRanges]) : this.#recentRanges,
  );
  /** How far the rates are from what is typical of each batch's crop. */
  fromTypical = $derived({
    germination: meanFromTypical(this.columns, this.rows, this.ranges, 'germination'),
    usable: meanFromTypical(this.columns, this.rows, this.ranges, 'usable'),
  });
  // Other filters do not depend on them.
  #rangesOfFilter = $derived(this.#filter.warnings === 'low' ? this.ranges : NO_RANGES);
  #outliersOfPeriod = $derived(findOutliers(this.columns, this.periodRows, this.ranges));
  outliers = $derived.by(() => {
    const shown = new Uint8Array(this.columns.length);
    for (const row of this.rows) shown[row] = 1;
    return this.#outliersOfPeriod.filter(({ row }) => shown[row] === 1);
  });
  unusual = $derived(unusualRows(this.#outliersOfPeriod));
  /** The last day that is compared. */
  typicalTo = $derived(daysUpTo(this.#period, view.today, 1).to);
  /** Batches of crops with too few batches to compare. */
  notCompared = $derived(
    this.crops.filter(({ name }) => !this.ranges.has(name)).reduce((sum, { batches }) => sum + batches, 0),
  );

  /** The rows that match the filter with a change to it. */
  rowsWith(change: Partial<Filter>, columns = this.columns, period = this.#period): Int32Array {
    void batches.version;
    return select(columns, { ...this.#filter, ...change }, period, this.#rangesOfFilter);
  }

  /** Over how many days the crop is compared. */
  typicalDays(crop: string | null): number {
    return this.#recentRanges.has(crop) ? TYPICAL_DAYS : TYPICAL_DAYS_MAX;
  }

  #counts(by: 'crop' | 'operator'): { name: string | null; batches: number }[] {
    return rowsBy(by, this.columns, this.periodRows).map(({ name, rows }) => ({ name, batches: rows.length }));
  }

  #daysBefore(days: number): Period | null {
    const start = batches.main?.state === 'complete' ? batches.main.period.from : '';
    const { from } = daysUpTo(this.#period, view.today, days);
    return from < start ? { from, to: plusDays(start, -1) } : null;
  }

  #rangesOf(days: number): TypicalRanges {
    void batches.version;
    if (this.isComparing) return NO_RANGES;
    const period = daysUpTo(this.#period, view.today, days);
    const parts = [{ columns: this.columns, rows: select(this.columns, NO_FILTER, period) }];
    const columns = this.#loaderBefore?.columns;
    const before = { ...period, to: this.daysBefore?.to ?? '' };
    if (columns !== undefined) parts.push({ columns, rows: select(columns, NO_FILTER, before) });
    return typicalRanges(parts);
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
