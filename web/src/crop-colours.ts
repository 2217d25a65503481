// The label and the colour of a crop. A crop keeps its colour in every period, on this browser: the choice is stored for each
// organisation.
import { readSetting, storeSetting } from './settings';
import { text as texts } from './text';

/** Crops with their own colour and small chart; more colours cannot be distinguished. */
export const CROP_COLOURS_MAX = 6;

// Enough for every nursery; the oldest are dropped.
const CROPS_MAX = 500;

export function cropLabel(crop: string | null): string {
  return crop ?? texts.cropNotRecorded;
}

/** The slot of each crop, 0 to `count` - 1, all different. Crops that never had one get one that is free. */
export function cropSlots(organisation: string, crops: readonly string[], count: number): number[] {
  const setting = `crop-colours.${organisation}`;
  const stored = parse(readSetting(setting));
  const slots = assign(stored, crops, count);
  if (crops.some((crop, at) => stored.get(crop) !== slots[at] && !stored.has(crop))) {
    for (const [at, crop] of crops.entries()) if (!stored.has(crop)) stored.set(crop, slots[at]!);
    storeSetting(setting, JSON.stringify([...stored].slice(-CROPS_MAX)));
  }
  return slots;
}

/** A crop keeps its stored slot unless a more frequent one has it. */
function assign(stored: ReadonlyMap<string, number>, crops: readonly string[], count: number): number[] {
  const taken = new Set<number>();
  const slots = crops.map((crop) => {
    const slot = stored.get(crop);
    if (slot === undefined || slot >= count || taken.has(slot)) return -1;
    taken.add(slot);
    return slot;
  });
  return slots.map((slot) => {
    if (slot !== -1) return slot;
    let free = 0;
    while (taken.has(free)) free++;
    taken.add(free);
    return free;
  });
}

function parse(text: string | null): Map<string, number> {
  try {
    return new Map(JSON.parse(text ?? '[]') as [string, number][]);
  } catch {
    return new Map();
  }
}
