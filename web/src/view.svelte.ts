// What the user looks at: screen, period, filter, sort, columns. Kept in the URL, so that views can be shared and the
// browser's back and forward work.
import type { Batch } from './data/batch';
import { dayAt } from './data/day';
import { NO_FILTER, type Filter } from './data/filter';
import { isPeriod, type Period } from './data/period';
import type { SortKey } from './data/sort';
import { hasInvalidDates, parseSignIn, parseUrl, toUrl, type Credentials, type Screen, type View } from './data/url';
import { measurePaint } from './paint-timing';
import { idleTimer } from './visibility.svelte';

type HistoryMode = 'push' | 'replace';

class CurrentView {
  /** For presets and defaults. A page left open over midnight gets the new day with the next change. */
  today = $state(dayAt(Date.now()));
  current = $state.raw<View>(parseUrl(new URL(location.href), dayAt(Date.now())));

  /** Whether the user went back or forward: the browser then restores the scroll position. */
  isReturn = false;

  /** Whether the URL had invalid dates, so that the default period is shown instead. */
  hasInvalidDates = $state(false);

  constructor() {
    this.#correctUrl();
    addEventListener('popstate', () => {
      this.isReturn = true;
      this.#begin('filter');
      this.today = dayAt(Date.now());
      this.current = parseUrl(new URL(location.href), this.today);
      this.#correctUrl();
    });
  }

  /** The credentials in the URL fragment, if any. Removes the fragment first. */
  takeSignIn(): Credentials | null {
    const url = new URL(location.href);
    // A misspelt fragment is removed too: a secret must not stay visible.
    if (/sign-?in/i.test(url.hash)) history.replaceState(history.state, '', url.pathname + url.search);
    return parseSignIn(url);
  }

  /** The URL of another screen with the same period and filters. */
  href(screen: Screen): string {
    return toUrl({ ...this.current, screen }, this.today);
  }

  /** Opens a URL of the dashboard, as a click on a link does. */
  open(url: URL): void {
    this.#show(parseUrl(url, this.today), 'push');
    if (hasInvalidDates(url)) this.hasInvalidDates = true;
  }

  setPeriod(period: Period, mode: HistoryMode = 'push'): void {
    if (!isPeriod(period)) return;
    this.#begin('filter');
    this.hasInvalidDates = false;
    this.#show({ ...this.current, period }, mode);
  }

  /** Typing replaces the history entry: going back letter by letter is no use. */
  setFilter(change: Partial<Filter>, mode: HistoryMode = 'push'): void {
    this.#begin('filter');
    this.#show({ ...this.current, filter: { ...this.current.filter, ...change } }, mode);
  }

  clearFilter(): void {
    this.setFilter(NO_FILTER);
  }

  setSort(sort: SortKey): void {
    this.#begin('sort');
    this.#show({ ...this.current, sort }, 'push');
  }

  setFields(fields: (keyof Batch)[]): void {
    this.#show({ ...this.current, fields }, 'replace');
  }

  // Keeps the fragment: it may contain credentials that are read a moment later.
  #correctUrl(): void {
    this.hasInvalidDates = hasInvalidDates(new URL(location.href));
    if (this.hasInvalidDates) history.replaceState(history.state, '', toUrl(this.current, this.today) + location.hash);
  }

  #begin(change: 'filter' | 'sort'): void {
    idleTimer.reset();
    void measurePaint(change);
  }

  #show(view: View, mode: HistoryMode): void {
    this.isReturn = false;
    this.today = dayAt(Date.now());
    this.current = view;
    const url = toUrl(view, this.today);
    if (mode === 'replace') history.replaceState(history.state, '', url);
    else if (url !== location.pathname + location.search) history.pushState(null, '', url);
  }
}

export const view = new CurrentView();
