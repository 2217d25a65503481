// Light or dark: the system setting, unless the user chose otherwise.
import { flushSync } from 'svelte';
import { readSetting, storeSetting } from './settings';

const SETTING = 'theme';

type Scheme = 'light' | 'dark';

const system = matchMedia('(prefers-color-scheme: dark)');

class Theme {
  #chosen = $state<Scheme | null>(readChosen());
  #system = $state<Scheme>(system.matches ? 'dark' : 'light');
  #isPrinting = $state(false);
  scheme: Scheme = $derived(this.#isPrinting ? 'light' : (this.#chosen ?? this.#system));

  constructor() {
    system.addEventListener('change', (event) => {
      this.#system = event.matches ? 'dark' : 'light';
      this.#apply();
    });
    this.#apply();
    // Paper is light.
    addEventListener('beforeprint', () => flushSync(() => this.#setPrinting(true)));
    addEventListener('afterprint', () => this.#setPrinting(false));
  }

  toggle(): void {
    const next = this.scheme === 'dark' ? 'light' : 'dark';
    // The same as the system setting needs no choice: the page follows the system again.
    this.#chosen = next === this.#system ? null : next;
    storeSetting(SETTING, this.#chosen);
    this.#apply();
  }

  #setPrinting(isPrinting: boolean): void {
    this.#isPrinting = isPrinting;
    this.#apply();
  }

  #apply(): void {
    document.documentElement.dataset.theme = this.scheme;
  }
}

export const theme = new Theme();

function readChosen(): Scheme | null {
  const stored = readSetting(SETTING);
  return stored === 'light' || stored === 'dark' ? stored : null;
}
