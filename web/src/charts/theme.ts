// The colours of style.css for charts: a canvas cannot use custom properties.
import { CROP_COLOURS_MAX } from '../crop-colours';

export interface Theme {
  paper: string;
  ink: string;
  muted: string;
  line: string;
  accent: string;
  signal: string;
  crops: string[];
  otherCrops: string;
  heat: string[];
  font: string;
}

const HEAT_STEPS = 6;

export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const token = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return {
    paper: token('paper'),
    ink: token('ink'),
    muted: token('muted'),
    line: token('line'),
    accent: token('accent'),
    signal: token('signal'),
    crops: Array.from({ length: CROP_COLOURS_MAX }, (_, slot) => token(`crop-${slot + 1}`)),
    otherCrops: token('crop-other'),
    heat: Array.from({ length: HEAT_STEPS }, (_, step) => token(`heat-${step}`)),
    font: token('sans'),
  };
}

/** The colour of a slot; -1 for other crops. */
export function cropColour(theme: Theme, slot: number): string {
  return theme.crops[slot] ?? theme.otherCrops;
}

/** The same as a CSS value, for elements. */
export function cropToken(slot: number): string {
  return slot < 0 ? 'var(--crop-other)' : `var(--crop-${slot + 1})`;
}

export function axisStyle(theme: Theme) {
  return {
    axisLine: { show: false },
    axisTick: { show: false },
    axisLabel: { color: theme.muted, fontFamily: theme.font, fontSize: 12 },
    splitLine: { lineStyle: { color: theme.line, width: 1 } },
    nameTextStyle: { color: theme.muted, fontFamily: theme.font, fontSize: 12 },
  } as const;
}
