// The headings of exported files: those of the screen, with the unit or the time zone.

import type { Field } from './batch';
import { timeZone } from './zone';

export function exportHead({ kind, label, unit = kind === 'instant' ? timeZone : undefined }: Field): string {
  // Hyphens for narrow columns.
  const head = label.replaceAll('\u00AD', '');
  return unit === undefined ? head : `${head} (${unit})`;
}
