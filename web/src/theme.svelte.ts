// Light or dark: the system setting, unless the user chose otherwise. The choice is stored in localStorage.

const STORAGE_KEY = 'batchscan.theme';

export type Scheme = 'light' | 'dark';

const system = matchMedia('(prefers-color-scheme: dark)');

class Theme {
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
    // The same as the system setting needs no choice: the page follows the system again.
    this.#chosen = next === this.#system ? null : next;
    storeChosen(this.#chosen);
    this.#apply();
  }

  // Set at once, so that charts read the new colours in the same frame.
  #apply(): void {
    document.documentElement.dataset.theme = this.scheme;
  }
}

export const theme = new Theme();

function readChosen(): Scheme | null {
  try {
    const stored = localStorage.getItem(STORAGE_KEY);
    return stored === 'light' || stored === 'dark' ? stored : null;
  } catch {
    return null;
  }
}

function storeChosen(chosen: Scheme | null): void {
  try {
    if (chosen === null) localStorage.removeItem(STORAGE_KEY);
    else localStorage.setItem(STORAGE_KEY, chosen);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}
