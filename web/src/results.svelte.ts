// The batches that match the view, and their statistics. Each value is computed at most once per change, and only while
// something on the screen reads it.
import { batches } from './batches.svelte';
import { Columns } from './data/columns';
import { COMPARED, isSearch, NO_FILTER, NO_MARKS, select, type Filter } from './data/filter';
import { morningOf } from './data/morning';
import { mean, presentValues } from './data/percentile';
import { fourWeeks, usualRangePeriod } from './data/period';
import { sorted } from './data/sort';
import { byName, dots, headline, rowsBy, type Group, type Measure } from './data/statistics';
import { averages, findUnusual, isSevere, usualRanges, type Averages, type UsualRanges } from './data/usual';
import { seen } from './seen.svelte';
import { dayNumber, dayText } from './time/day';
import { view } from './view.svelte';

// The service limits the length of a mark.
const CROP_CHARS_MAX = 300;

const NO_COLUMNS = new Columns();
const NO_RANGES: UsualRanges = new Map();

class Results {
  measure = $state<Measure>('germination');

  // The object stays the same while it grows. So whatever computes rows must read the version too.
  columns = $derived.by(() => (void batches.version, batches.main?.columns ?? NO_COLUMNS));

  // Each on its own, so that another sort or filter does not compute what depends on the period only.
  #period = $derived(view.period);
  #filter = $derived(view.current.filter);

  rows = $derived(this.rowsWith({}));
  sortedRows = $derived(sorted(this.columns, this.rows, view.current.sort));
  /** All rows of the period, whatever the filter. */
  periodRows = $derived.by(() => (void batches.version, select(this.columns, NO_FILTER, this.#period)));

  headline = $derived(headline(this.columns, this.rows));
  dots = $derived(dots(this.columns, this.rows));

  /** For the filters: how many batches match the other filters. Also the crops that are loaded, but not in the period. */
  people = $derived(this.#counts('person', this.rowsWith({ people: [] })));
  knownCrops = $derived.by(() => {
    void batches.version;
    return this.#counts('crop', this.rowsWith({ crops: [] }), batches.loaders.flatMap(({ columns }) => columns.crops));
  });

  /** The batches of the last 365 days, when they are loaded. */
  #year = $derived(batches.yearLoader(view.today));
  /** Whether they are not loaded, and will not be for a while. */
  isNotComparable = $derived(
    this.#year === null && (batches.main?.state === 'failed' || batches.year?.state === 'failed' || batches.year?.waiting != null),
  );
  /** Nothing is called unusual until the period and the last 365 days are loaded. Reads the year first: Svelte 5.57 misses
      its later changes otherwise. */
  isComparing = $derived((this.#year === null && !this.isNotComparable) || batches.main?.state === 'loading');
  #yearRows = $derived.by(() => {
    const columns = this.#year?.columns ?? NO_COLUMNS;
    return { columns, rows: select(columns, NO_FILTER, usualRangePeriod(view.today)) };
  });
  #allRanges = $derived(usualRanges(this.#yearRows.columns, this.#yearRows.rows));
  /** The usual ranges of each crop, in every period and on every screen. */
  ranges: UsualRanges = $derived(this.isComparing ? NO_RANGES : this.#allRanges);
  /** The averages of each crop, whatever the period. */
  averages = $derived({ germination: this.#averagesOf('germination'), usable: this.#averagesOf('usable') });
  /** The crops on the screen with the average of the period. The largest decline comes first, whatever the period: over a year,
      no average differs from that of the year. */
  byCrop = $derived.by(() => {
    const averages = this.averages[this.measure];
    const declineOf = ({ name }: Group): number => averages.get(name)?.change ?? Infinity;
    const crops = rowsBy('crop', this.columns, this.rows).sort((a, b) => declineOf(a) - declineOf(b) || 0);
    return crops.map((crop) => ({ ...crop, average: mean(presentValues(this.columns[this.measure], crop.rows)) }));
  });

  /** The day of the latest batch of the last 365 days: null until they are loaded, '' if there is none. */
  latestDay = $derived.by(() => {
    if (this.#year === null) return null;
    const { columns, rows } = this.#yearRows;
    return rows.length === 0 ? '' : dayText(columns.day[rows.at(-1)!]!);
  });

  /** What the start page shows; null until it can be compared. */
  morning = $derived.by(() => {
    void batches.version;
    const period = fourWeeks(view.today);
    const columns = batches.main?.covers(period) ? batches.main.columns : null;
    if (columns === null || this.isComparing) return null;
    const rows = select(columns, NO_FILTER, period);
    return { columns, ...morningOf(columns, rows, this.ranges, view.today, seen.isSeen) };
  });

  // Other filters do not depend on them.
  #rangesOfFilter = $derived(COMPARED.includes(this.#filter.warnings) ? this.ranges : NO_RANGES);
  #marksOfFilter = $derived(isSearch(this.#filter) || ['unseen', 'noted'].includes(this.#filter.warnings) ? seen : NO_MARKS);
  /** Why batches that are shown are unusual, by row. None until everything is compared. */
  reasons = $derived(new Map((this.isComparing ? [] : findUnusual(this.columns, this.rows, this.ranges)).map(({ row, reasons }) => [row, reasons])));
  /** How many batches of the last 365 days match the filter; null if it is not known. */
  matchesOfYear = $derived.by(() => {
    if (this.#year === null) return null;
    return this.rowsWith({}, this.#year.columns, usualRangePeriod(view.today)).length;
  });

  /** The rows that match the filter with a change to it. */
  rowsWith(change: Partial<Filter>, columns = this.columns, period = this.#period): Int32Array {
    void batches.version;
    return select(columns, { ...this.#filter, ...change }, period, this.#rangesOfFilter, this.#marksOfFilter);
  }

  #averagesOf(measure: Measure): ReadonlyMap<string | null, Averages> {
    const { columns, rows } = this.#yearRows;
    const firstDay = dayNumber(fourWeeks(view.today).from);
    const unusual = findUnusual(columns, rows.filter((row) => columns.day[row]! >= firstDay), this.#allRanges);
    const failures = new Set(unusual.filter(({ reasons }) => isSevere(reasons)).map(({ row }) => row));
    return new Map(rowsBy('crop', columns, rows).map(({ name, rows }) => [name, averages(columns, rows, firstDay, measure, failures)]));
  }

  #counts(by: 'crop' | 'person', rows: Int32Array, others: string[] = []): { name: string | null; batches: number }[] {
    const found = rowsBy(by, this.columns, rows).map(({ name, rows }) => ({ name, batches: rows.length }));
    const missing = new Set([...rowsBy(by, this.columns, this.periodRows).map(({ name }) => name), ...others]);
    for (const { name } of found) missing.delete(name);
    return [...found, ...Array.from(missing, (name) => ({ name, batches: 0 }))].sort(byName);
  }

  /** What a mark of a crop's decline is called; null if it does not decline. A later decline is another one. */
  declineOf(crop: string | null): string | null {
    const since = this.averages.germination.get(crop)?.declineSince;
    return since == null ? null : `decline since ${since}: ${(crop ?? '').slice(0, CROP_CHARS_MAX)}`;
  }
}

export const results = new Results();
