// Axes: their ends, their round labels, and positions in pixels.

export interface Axis {
  low: number;
  high: number;
  ticks: readonly { at: number; label: string }[];
  title?: string;
}

/** The position of a value between two pixels. A value outside the axis is drawn at its end: texts show its value. */
export function position({ low, high }: Axis, from: number, to: number): (value: number) => number {
  return (value) => from + ((Math.max(low, Math.min(high, value)) - low) / (high - low)) * (to - from);
}

/** About that many round values, such as 0, 20, 40. */
export function roundValues(low: number, high: number, count: number): number[] {
  const rough = (high - low) / Math.max(1, count);
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * ten).find((step) => step >= rough * 0.999) ?? rough;
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, at) => (first + at) * step);
}

// How near a pointer must be to a dot.
const NEAR_PX = 16;

/** The item that is drawn nearest to a point, with its place. */
export function nearest<T>(items: Iterable<T>, px: number, py: number, placeOf: (item: T) => [number, number]) {
  let found: { item: T; x: number; y: number; distance: number } | null = null;
  for (const item of items) {
    const [x, y] = placeOf(item);
    const distance = Math.hypot(x - px, y - py);
    if (distance < (found?.distance ?? NEAR_PX)) found = { item, x, y, distance };
  }
  return found;
}

// In percentage points. A shorter axis would make a small difference look like a fall.
const RATES_MIN = 20;

/** The ends of an axis that fits the rates, in tens. Not from zero, because rates differ by a few points. */
export function rateEnds(rates: readonly (number | null | undefined)[]): { low: number; high: number } {
  const known = rates.filter((rate) => rate != null);
  const low = Math.max(0, Math.min(100 - RATES_MIN, Math.floor(Math.min(...known) / 10) * 10));
  return { low, high: Math.min(100, Math.max(low + RATES_MIN, Math.ceil(Math.max(...known) / 10) * 10)) };
}

/** Lower rates are drawn at the edge of a chart, with their number: one failure must not make all usual ranges thin. */
export const RATE_CLIP = 60;

export type Point = { x: number; y: number };
type Label = Point & { anchor: 'start' | 'middle' | 'end' };
type Box = { left: number; right: number; top: number; bottom: number };

// How high a label is, how far from its dot, and how near another dot can be to its end without seeming to be its own.
const [LINE_PX, BESIDE_PX, OTHER_PX] = [15, 9, 14];

/** Places for the labels of dots: next to a dot, above or below it, where it is clear whose it is and no other dot is covered.
    Those of the first go first, and the first always has one. A dot without a label has a width of 0. */
export function placeLabels(dots: readonly (Point & { labelPx: number })[], width: number, height = Infinity, others: readonly Point[] = []): (Label | null)[] {
  const placed: Box[] = [];
  return dots.map((dot, index) => {
    const all = candidates(dot, width).filter(({ box }) => dot.labelPx > 0 && box.right <= width && box.bottom <= height);
    const free = all.filter(({ box, clear }) => !dots.some((other) => other !== dot && touches(pointBox(other), clear)) && !placed.some((label) => touches(label, box)));
    const covered = ({ box }: { box: Box }): number => [...others, ...dots].filter((other) => other !== dot && touches(pointBox(other), box)).length;
    const best = (free.length === 0 ? all : free).toSorted((a, b) => covered(a) - covered(b))[0];
    if (best === undefined || (index > 0 && (free.length === 0 || covered(best) > 0))) return null;
    placed.push(best.box);
    return best.label;
  });
}

const touches = (a: Box, b: Box): boolean => a.left < b.right && a.right > b.left && a.top < b.bottom && a.bottom > b.top;
const pointBox = ({ x, y }: Point): Box => ({ left: x - 2, right: x + 2, top: y - 2, bottom: y + 2 });

function candidates({ x, y, labelPx }: Point & { labelPx: number }, width: number): { label: Label; box: Box; clear: Box }[] {
  const boxOf = (left: number, middle: number): Box => ({ left, right: left + labelPx, top: middle - LINE_PX / 2, bottom: middle + LINE_PX / 2 });
  const middle = Math.min(x, width - labelPx / 2);
  const [right, left] = [boxOf(x + BESIDE_PX, y), boxOf(x - BESIDE_PX - labelPx, y)];
  return [
    { label: { x: x + BESIDE_PX, y, anchor: 'start' }, box: right, clear: { ...right, right: right.right + OTHER_PX } },
    { label: { x: x - BESIDE_PX, y, anchor: 'end' }, box: left, clear: { ...left, left: left.left - OTHER_PX } },
    ...[y - LINE_PX, y + LINE_PX].map((y) => ({ label: { x: middle, y, anchor: 'middle' as const }, box: boxOf(middle - labelPx / 2, y), clear: boxOf(middle - labelPx / 2, y) })),
  ];
}
