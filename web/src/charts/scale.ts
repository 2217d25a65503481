// Axes: their ends, their round labels, and positions in pixels.

export interface Tick {
  at: number;
  label: string;
}

export interface Axis {
  low: number;
  high: number;
  ticks: readonly Tick[];
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
export type Label = Point & { anchor: 'start' | 'middle' | 'end' };

// A label such as "41 %", its distance from its dot, how near a dot can be without seeming to be its own, how near dots look
// like one, and half of a dot.
const [LABEL_PX, LINE_PX, BESIDE_PX, OTHER_PX, SAME_PX, DOT_PX] = [38, 15, 9, 14, 4, 2];

/** Places for the labels of dots: next to a dot, above or below it, where it is clear whose it is and no other dot is covered.
    Those of the first go first, and the first always has one. */
export function placeLabels(dots: readonly Point[], width: number, height = Infinity, others: readonly Point[] = []): (Label | null)[] {
  const placed: Point[] = [];
  return dots.map((dot, index) => {
    const all = candidates(dot, width, height);
    const free = all.filter(({ label, middle }) => {
      const isNear = (other: Point, to: Point, px: number): boolean => Math.abs(other.x - to.x) < px && Math.abs(other.y - to.y) < LINE_PX;
      const isInWay = (other: Point): boolean => {
        if (label.anchor === 'middle') return isNear(other, dot, OTHER_PX) || isNear(other, middle, LABEL_PX / 2);
        const aside = (other.x - dot.x) * Math.sign(middle.x - dot.x);
        return aside > SAME_PX && isNear(other, middle, LABEL_PX / 2 + OTHER_PX);
      };
      return !dots.some((other) => other !== dot && isInWay(other)) && !placed.some((other) => isNear(other, middle, LABEL_PX));
    });
    const covered = ({ middle }: { middle: Point }): number =>
      others.filter((other) => Math.abs(other.x - middle.x) < LABEL_PX / 2 + DOT_PX && Math.abs(other.y - middle.y) < LINE_PX / 2 + DOT_PX).length;
    const best = (free.length === 0 ? all : free).toSorted((a, b) => covered(a) - covered(b))[0];
    if (best === undefined || (index > 0 && (free.length === 0 || covered(best) > 0))) return null;
    placed.push(best.middle);
    return best.label;
  });
}

function candidates({ x, y }: Point, width: number, height: number): { label: Label; middle: Point }[] {
  const aside = BESIDE_PX + LABEL_PX / 2;
  const found = [
    { label: { x: x + BESIDE_PX, y, anchor: 'start' as const }, middle: { x: x + aside, y } },
    { label: { x: x - BESIDE_PX, y, anchor: 'end' as const }, middle: { x: x - aside, y } },
    ...[-LINE_PX, LINE_PX].map((by) => ({ label: { x, y: y + by, anchor: 'middle' as const }, middle: { x, y: y + by } })),
  ];
  return found.filter(({ middle }) => middle.x + LABEL_PX / 2 <= width && middle.y + LINE_PX / 2 <= height);
}
