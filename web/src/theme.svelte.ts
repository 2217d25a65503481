// Owns light or dark: the system's wish unless the reader has chosen, and that choice in localStorage.

const KEPT_AS = 'batchscan.theme';

export type Scheme = 'light' | 'dark';

const system = matchMedia('(prefers-color-scheme: dark)');

class Appearance {
  #chosen = $state<Scheme | null>(readChosen());
  #system = $state<Scheme>(system.matches ? 'dark' : 'light');
  scheme: Scheme = $derived(this.#chosen ?? this.#system);

  constructor() {
    system.addEventListener('change', (event) => {
      this.#system = event.matches ? 'dark' : 'light';
      this.#apply();
    });
    this.#apply();
  }

  toggle(): void {
    const next = this.scheme === 'dark' ? 'light' : 'dark';
    // Back at what the system says, nothing needs keeping: the page follows the system again.
    this.#chosen = next === this.#system ? null : next;
    keepChosen(this.#chosen);
    this.#apply();
  }

  // On the root element, and at once, so that charts read the new colours in the same frame.
  #apply(): void {
    document.documentElement.dataset.theme = this.scheme;
  }
}

export const appearance = new Appearance();

function readChosen(): Scheme | null {
  try {
    const kept = localStorage.getItem(KEPT_AS);
    return kept === 'light' || kept === 'dark' ? kept : null;
  } catch {
    return null;
  }
}

function keepChosen(chosen: Scheme | null): void {
  try {
    if (chosen === null) localStorage.removeItem(KEPT_AS);
    else localStorage.setItem(KEPT_AS, chosen);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}
