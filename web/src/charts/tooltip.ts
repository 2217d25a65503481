// The content of a chart's tooltip.

export interface Tooltip {
  title: string;
  lines: { label: string; value: string; colour?: string }[];
  /** What a click does. */
  hint?: string;
}
