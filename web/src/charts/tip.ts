// What a chart says under the pointer.

export interface Tip {
  title: string;
  lines: { label: string; value: string; colour?: string }[];
  /** What a click does, if it does anything. */
  hint?: string;
}
