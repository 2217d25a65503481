// What the user looks at: screen, period, filter, sort, columns. Kept in the URL, so that views can be shared and the
// browser's back and forward work.
import type { Batch } from './data/batch';
import { NO_FILTER, type Filter } from './data/filter';
import { DEFAULT_PRESET, fourWeeks, isPeriod, parsePreset, presetPeriod, type Period, type Preset } from './data/period';
import type { SortKey } from './data/sort';
import { parseSignIn, parseUrl, toUrl, type Comparison, type ListName, type Screen, type SignInFragment, type View } from './data/url';
import { dayAt } from './time/zone';
import { readSetting, storeSetting } from './settings';

const DAY_CHECK_MS = 60_000;
// The setting with the preset that was chosen last.
const PRESET = 'preset';

function parse(url: URL, today: string): View {
  return parseUrl(url, today, parsePreset(readSetting(PRESET)) ?? DEFAULT_PRESET);
}

type HistoryMode = 'push' | 'replace';

class CurrentView {
  /** For presets. A page that is left open follows it. */
  today = $state(dayAt(Date.now()));
  current = $state.raw<View>(parse(new URL(location.href), dayAt(Date.now())));

  /** The period that the screen shows. */
  period = $derived(isList(this.current.screen) ? this.current.period : fourWeeks(this.today));

  /** The screen before a batch, and how far it was scrolled. */
  before = $state.raw<{ name: 'today' | ListName; href: string; scrollPx: number }>({ name: 'table', href: '/batches', scrollPx: 0 });

  /** Where a new screen is scrolled to; null if the user went back or forward: the browser then restores the position. */
  scrollPx: number | null = 0;

  /** The part of a screen that a link leads to: its id. */
  part = $state('');

  constructor() {
    this.#correctUrl();
    setInterval(() => this.#followToday(), DAY_CHECK_MS);
    addEventListener('popstate', () => {
      this.scrollPx = null;
      this.part = '';
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

  /** The URL of another screen with the same period and filters. Averages of only the batches not seen yet would mislead. */
  href(screen: Screen): string {
    const { filter } = this.current;
    const isLost = screen.name === 'analysis' && this.current.screen.name !== 'analysis' && filter.warnings === 'unseen';
    return toUrl({ ...this.current, screen, filter: isLost ? { ...filter, warnings: 'all' } : filter });
  }

  /** The URL of the table or the analysis with some of the shown batches. */
  listHref(name: ListName, filter: Partial<Filter> = {}, sort: SortKey = this.current.sort): string {
    return toUrl({ ...this.current, screen: { name }, filter: { ...this.current.filter, ...filter }, sort });
  }

  /** The URL of the table or the analysis of a period, whatever the filters shown. */
  periodHref(period: Period | Preset, filter: Partial<Filter> = {}, name: ListName = 'table'): string {
    const dates = typeof period === 'string' ? { period: presetPeriod(period, this.today), preset: period } : { period, preset: null };
    return toUrl({ ...this.current, ...dates, screen: { name }, filter: { ...NO_FILTER, ...filter } });
  }

  /** Opens a URL of the dashboard, as a click on a link does. */
  open(url: URL): void {
    const isBack = this.current.screen.name === 'batch' && toUrl(parse(url, this.today)) === this.before.href;
    this.#show(parse(url, this.today), 'push');
    if (isBack) this.scrollPx = this.before.scrollPx;
    this.part = url.hash.slice(1);
  }

  setPeriod(period: Period, mode: HistoryMode = 'push'): void {
    if (!isPeriod(period)) return;
    this.#show({ ...this.current, period, preset: null }, mode);
  }

  /** Without another choice, it is shown on the next visit. */
  choosePreset(preset: Preset): void {
    storeSetting(PRESET, preset);
    this.setPreset(preset);
  }

  setPreset(preset: Preset): void {
    this.#show({ ...this.current, period: presetPeriod(preset, this.today), preset }, 'push');
  }

  /** Typing replaces the history entry: going back letter by letter is pointless. */
  setFilter(change: Partial<Filter>, mode: HistoryMode = 'push'): void {
    this.#show({ ...this.current, filter: { ...this.current.filter, ...change } }, mode);
  }

  setSort(sort: SortKey): void {
    this.#show({ ...this.current, sort }, 'push');
  }

  setFields(fields: (keyof Batch)[]): void {
    this.#show({ ...this.current, fields }, 'replace');
  }

  setComparison(compare: Comparison | null): void {
    this.#show({ ...this.current, compare }, 'push');
  }

  // Without a period, going back to this entry would show another one. Keeps the fragment: it may contain credentials
  // that are read a moment later.
  #correctUrl(): void {
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
    if (name !== 'batch' && name !== 'not-found') this.before = { name, href: toUrl(this.current), scrollPx: scrollY };
    this.current = view;
  }

  #show(view: View, mode: HistoryMode): void {
    this.scrollPx = 0;
    this.part = '';
    this.today = dayAt(Date.now());
    this.#setCurrent(view);
    const url = toUrl(view);
    if (mode === 'replace') history.replaceState(history.state, '', url);
    else if (url !== location.pathname + location.search) history.pushState(null, '', url);
  }
}

export const view = new CurrentView();

function isList({ name }: Screen): boolean {
  return name === 'table' || name === 'analysis';
}
