// Whether the page is being printed. A browser prints what is drawn when the handlers of its event have ended.
import { flushSync } from 'svelte';

class Printing {
  isActive = $state(false);

  constructor() {
    addEventListener('beforeprint', () => flushSync(() => (this.isActive = true)));
    addEventListener('afterprint', () => (this.isActive = false));
  }
}

export const printing = new Printing();
