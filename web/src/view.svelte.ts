// What the user looks at: screen, period, filter, sort, columns. Kept in the URL, so that views can be shared and the
// browser's back and forward work.
import type { Batch } from './data/batch';
import type { Comparison } from './data/comparison';
import { NO_FILTER, type Filter } from './data/filter';
import { DEFAULT_PRESET, isPeriod, isPreset, plusDays, presetPeriod, previousPeriod, type Period, type Preset } from './data/period';
import type { SortKey } from './data/sort';
import { hasInvalidDates, parseSignIn, parseUrl, toUrl, type Screen, type SignInFragment, type View } from './data/url';
import { dayAt } from './time/zone';
import { readSetting, storeSetting } from './settings';
import { idleTimer } from './visibility.svelte';

const DAY_CHECK_MS = 60_000;
const DAYS_BEFORE_DECLINE = 84;
// The fragment of a URL that opens the overview at its first chart.
const CHART = '#rates';
// The setting with the preset that was chosen last.
const PRESET = 'preset';

function parse(url: URL, today: string): View {
  const preset = readSetting(PRESET);
  return parseUrl(url, today, isPreset(preset) ? preset : DEFAULT_PRESET);
}

type HistoryMode = 'push' | 'replace';

class CurrentView {
  /** For presets. A page that is left open follows it. */
  today = $state(dayAt(Date.now()));
  current = $state.raw<View>(parse(new URL(location.href), dayAt(Date.now())));

  /** The period to compare with. */
  previous = $derived(previousPeriod(this.current.period, this.current.preset));

  /** The screen before a batch. */
  list = $state<'overview' | 'table'>('table');

  /** Whether the user went back or forward: the browser then restores the scroll position. */
  isReturn = false;

  /** Whether to scroll to the first chart, as soon as it has its place. */
  isAtChart = $state(location.hash === CHART);

  /** Whether the URL had invalid dates, so that the default period is shown instead. */
  hasInvalidDates = $state(false);

  constructor() {
    this.#correctUrl();
    setInterval(() => this.#followToday(), DAY_CHECK_MS);
    addEventListener('popstate', () => {
      this.isReturn = true;
      idleTimer.reset();
      this.today = dayAt(Date.now());
      this.#setCurrent(parse(new URL(location.href), this.today));
      this.#correctUrl();
    });
  }

  /** What the URL fragment signs in with, if anything. Removes the fragment first. */
  takeSignIn(): SignInFragment | null {
    const url = new URL(location.href);
    // A misspelt fragment is removed too: a secret must not stay visible.
    if (/sign-?in/i.test(url.hash)) history.replaceState(history.state, '', url.pathname + url.search);
    return parseSignIn(url);
  }

  /** The URL of another screen with the same period and filters. */
  href(screen: Screen): string {
    return toUrl({ ...this.current, screen });
  }

  /** The URL of the table with some of the shown batches. */
  tableHref(filter: Partial<Filter> = {}, sort: SortKey = this.current.sort): string {
    return toUrl({ ...this.current, screen: { name: 'table' }, filter: { ...this.current.filter, ...filter }, sort });
  }

  /** The URL of the overview of some of the shown batches. */
  overviewHref(filter: Partial<Filter>): string {
    return toUrl({ ...this.current, screen: { name: 'overview' }, filter: { ...this.current.filter, ...filter } });
  }

  /** The same, at its first chart. */
  chartHref(filter: Partial<Filter>): string {
    return this.overviewHref(filter) + CHART;
  }

  /** The URL of the chart of a crop's decline since a day, and of as many weeks before as show the difference. */
  declineHref(crop: string | null, start: string): string {
    const filter = { ...NO_FILTER, crops: [crop ?? ''] };
    const period = { from: plusDays(start, -DAYS_BEFORE_DECLINE), to: this.today };
    return toUrl({ ...this.current, screen: { name: 'overview' }, period, preset: null, filter }) + CHART;
  }

  /** The URL of a screen with the same filters and another period. */
  hrefOfPeriod(screen: Screen, period: Period): string {
    return toUrl({ ...this.current, screen, period, preset: null });
  }

  /** Opens a URL of the dashboard, as a click on a link does. */
  open(url: URL): void {
    this.#show(parse(url, this.today), 'push');
    this.isAtChart = url.hash === CHART;
    if (hasInvalidDates(url)) this.hasInvalidDates = true;
  }

  setPeriod(period: Period, mode: HistoryMode = 'push'): void {
    if (!isPeriod(period)) return;
    idleTimer.reset();
    this.hasInvalidDates = false;
    this.#show({ ...this.current, period, preset: null }, mode);
  }

  /** Without another choice, it is shown on the next visit. */
  choosePreset(preset: Preset): void {
    storeSetting(PRESET, preset);
    this.setPreset(preset);
  }

  setPreset(preset: Preset): void {
    idleTimer.reset();
    this.hasInvalidDates = false;
    this.#show({ ...this.current, period: presetPeriod(preset, this.today), preset }, 'push');
  }

  /** Typing replaces the history entry: going back letter by letter is pointless. */
  setFilter(change: Partial<Filter>, mode: HistoryMode = 'push'): void {
    idleTimer.reset();
    this.#show({ ...this.current, filter: { ...this.current.filter, ...change } }, mode);
  }

  clearFilter(): void {
    this.setFilter(NO_FILTER);
  }

  setSort(sort: SortKey): void {
    idleTimer.reset();
    this.#show({ ...this.current, sort }, 'push');
  }

  setFields(fields: (keyof Batch)[]): void {
    this.#show({ ...this.current, fields }, 'replace');
  }

  setComparison(compare: Comparison): void {
    this.#show({ ...this.current, compare }, 'push');
  }

  // Without a period, going back to this entry would show another one. Keeps the fragment: it may contain credentials
  // that are read a moment later.
  #correctUrl(): void {
    this.hasInvalidDates = hasInvalidDates(new URL(location.href));
    if (this.current.screen.name !== 'not-found') history.replaceState(history.state, '', toUrl(this.current) + location.hash);
  }

  #followToday(): void {
    const today = dayAt(Date.now());
    if (today === this.today) return;
    this.today = today;
    const { preset } = this.current;
    if (preset !== null) this.current = { ...this.current, period: presetPeriod(preset, today) };
  }

  #setCurrent(view: View): void {
    const { name } = this.current.screen;
    if (name === 'overview' || name === 'table') this.list = name;
    this.current = view;
    this.isAtChart = false;
  }

  #show(view: View, mode: HistoryMode): void {
    this.isReturn = false;
    this.today = dayAt(Date.now());
    this.#setCurrent(view);
    const url = toUrl(view);
    if (mode === 'replace') history.replaceState(history.state, '', url);
    else if (url !== location.pathname + location.search) history.pushState(null, '', url);
  }
}

export const view = new CurrentView();
