// Owns what the reader looks at (screen, window, filters, order, columns) and keeps it in the address,
// so that a view can be shared and the browser's back and forward work. Loads and draws nothing.
import { hasBrokenWindow, read, takeSignIn, write, type Screen, type View } from './data/address';
import { dayAt } from './data/day';
import { NO_FILTER, type Filter, type SortKey } from './data/filter';
import { isWindow, type Window } from './data/window';
import type { Batch } from './data/batch';
import { pace } from './attention.svelte';
import { untilPainted } from './painted';

type How = 'push' | 'replace';

class CurrentView {
  /** What "today" means for presets and defaults; a page left open over midnight moves on with the next change. */
  today = $state(dayAt(Date.now()));
  current = $state.raw<View>(read(new URL(location.href), dayAt(Date.now())));

  /** Whether the reader went back or forward: then the browser returns to where the page was scrolled. */
  isReturn = false;

  /** The dates in the address made no window, so that the default is shown: the reader is told. */
  isWindowRefused = $state(false);

  constructor() {
    this.#correctAddress();
    addEventListener('popstate', () => {
      this.isReturn = true;
      this.#begin('filter');
      this.today = dayAt(Date.now());
      this.current = read(new URL(location.href), this.today);
      this.#correctAddress();
    });
  }

  /** The credentials handed over in the address, if any. They leave the address before anything else happens. */
  takeSignIn(): { clientId: string; clientSecret: string } | null {
    const url = new URL(location.href);
    const taken = takeSignIn(url);
    // Also one that is misspelt, and so not taken: a secret must not stay in sight.
    if (/sign-?in/i.test(url.hash)) history.replaceState(history.state, '', url.pathname + url.search);
    return taken;
  }

  /** The address of another screen that keeps window, filters and the rest. */
  href(screen: Screen): string {
    return write({ ...this.current, screen }, this.today);
  }

  /** Goes to an address of this page, as a click on a link does. */
  open(url: URL): void {
    this.#show(read(url, this.today), 'push');
    if (hasBrokenWindow(url)) this.isWindowRefused = true;
  }

  showWindow(window: Window, how: How = 'push'): void {
    if (!isWindow(window)) return;
    this.#begin('filter');
    this.isWindowRefused = false;
    this.#show({ ...this.current, window }, how);
  }

  /** Typing replaces the entry in the history: nobody wants to go back letter by letter. */
  showFilter(change: Partial<Filter>, how: How = 'push'): void {
    this.#begin('filter');
    this.#show({ ...this.current, filter: { ...this.current.filter, ...change } }, how);
  }

  clearFilter(): void {
    this.showFilter(NO_FILTER);
  }

  showSort(sort: SortKey): void {
    this.#begin('sort');
    this.#show({ ...this.current, sort }, 'push');
  }

  showFields(fields: (keyof Batch)[]): void {
    this.#show({ ...this.current, fields }, 'replace');
  }

  // The fragment stays: it may hold a sign-in that is taken a moment later.
  #correctAddress(): void {
    this.isWindowRefused = hasBrokenWindow(new URL(location.href));
    if (this.isWindowRefused) history.replaceState(history.state, '', write(this.current, this.today) + location.hash);
  }

  #begin(change: 'filter' | 'sort'): void {
    pace.changed();
    void untilPainted(change);
  }

  #show(view: View, how: How): void {
    this.isReturn = false;
    this.today = dayAt(Date.now());
    this.current = view;
    const address = write(view, this.today);
    if (how === 'replace') history.replaceState(history.state, '', address);
    else if (address !== location.pathname + location.search) history.pushState(null, '', address);
  }
}

export const view = new CurrentView();
