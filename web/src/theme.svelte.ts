// Light or dark: the system setting, unless the user chose otherwise.
import { printing } from './printing.svelte';
import { readSetting, storeSetting } from './settings';

const SETTING = 'theme';

type Scheme = 'light' | 'dark';

const system = matchMedia('(prefers-color-scheme: dark)');

class Theme {
  #chosen = $state<Scheme | null>(readChosen());
  #system = $state<Scheme>(system.matches ? 'dark' : 'light');
  /** Paper is light. */
  scheme: Scheme = $derived(printing.isActive ? 'light' : (this.#chosen ?? this.#system));

  constructor() {
    system.addEventListener('change', (event) => (this.#system = event.matches ? 'dark' : 'light'));
    $effect.root(() => {
      $effect.pre(() => void (document.documentElement.dataset.theme = this.scheme));
    });
  }

  toggle(): void {
    const next = this.scheme === 'dark' ? 'light' : 'dark';
    // The same as the system setting needs no choice: the page follows the system again.
    this.#chosen = next === this.#system ? null : next;
    storeSetting(SETTING, this.#chosen);
  }
}

export const theme = new Theme();

function readChosen(): Scheme | null {
  const stored = readSetting(SETTING);
  return stored === 'light' || stored === 'dark' ? stored : null;
}
