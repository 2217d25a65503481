// The user's choices for this browser (language, preset, marks of batches), in localStorage. Without storage, a
// choice lasts as long as the page.

// Used when storage is disabled.
const inMemory = new Map<string, string>();

export function readSetting(name: string): string | null {
  try {
    return localStorage.getItem(key(name));
  } catch {
    return inMemory.get(name) ?? null;
  }
}

export function storeSetting(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(key(name));
    else localStorage.setItem(key(name), value);
  } catch {
    if (value === null) inMemory.delete(name);
    else inMemory.set(name, value);
  }
}

/** Calls back when another tab stores a setting whose name starts so. */
export function onStored(start: string, run: () => void): void {
  addEventListener('storage', (event) => {
    if (event.key?.startsWith(key(start)) && event.newValue !== null) run();
  });
}

const key = (name: string): string => `batchscan.${name}`;
