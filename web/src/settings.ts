// The user's choices for this browser (language, theme, time zone, preset), in localStorage. Without storage, a choice lasts as
// long as the page.

export function readSetting(name: string): string | null {
  try {
    return localStorage.getItem(key(name));
  } catch {
    return null;
  }
}

export function storeSetting(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(key(name));
    else localStorage.setItem(key(name), value);
  } catch {
    // Storage may be disabled.
  }
}

/** Calls back when another tab stores the setting. */
export function onStored(name: string, run: () => void): void {
  addEventListener('storage', (event) => {
    if (event.key === key(name) && event.newValue !== null) run();
  });
}

function key(name: string): string {
  return `batchscan.${name}`;
}
