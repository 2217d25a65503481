// The colours of style.css as charts need them: canvas knows no custom properties, so they are read once a scheme.
import { CROPS_TOLD_APART } from '../shown.svelte';

export interface Theme {
  paper: string;
  ink: string;
  muted: string;
  line: string;
  accent: string;
  signal: string;
  crops: string[];
  cropRest: string;
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
    crops: Array.from({ length: CROPS_TOLD_APART }, (_, slot) => token(`crop-${slot + 1}`)),
    cropRest: token('crop-rest'),
    heat: Array.from({ length: HEAT_STEPS }, (_, step) => token(`heat-${step}`)),
    font: token('sans'),
  };
}

/** The colour of a crop's slot; -1 is one of the rest. */
export function cropColour(theme: Theme, slot: number): string {
  return theme.crops[slot] ?? theme.cropRest;
}

/** The same as a custom property, for elements. */
export function cropToken(slot: number): string {
  return slot < 0 ? 'var(--crop-rest)' : `var(--crop-${slot + 1})`;
}

/** Axis parts that all charts share: hairlines, quiet labels, no ticks. */
export function axisStyle(theme: Theme) {
  return {
    axisLine: { show: false },
    axisTick: { show: false },
    axisLabel: { color: theme.muted, fontFamily: theme.font, fontSize: 12 },
    splitLine: { lineStyle: { color: theme.line, width: 1 } },
    nameTextStyle: { color: theme.muted, fontFamily: theme.font, fontSize: 12 },
  } as const;
}
