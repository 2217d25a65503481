// A rate over time as two lines.
import type { Period } from '../data/period';
import type { Option } from './echarts';
import { meanLines, ratesAxes, scaleOf, type MeanLine } from './rates';
import { middleMs, spans } from './time-axis';
import type { Theme } from './theme';

/** The lines share the steps of the first: the second may be of another year. */
export function comparisonOption(lines: readonly MeanLine[], period: Period, theme: Theme, width: number): Option {
  const at = spans(lines[0]!.points, period).map(middleMs);
  const scale = scaleOf(lines.flatMap(({ points }) => points.map(({ mean }) => mean)));
  return {
    ...ratesAxes(period, scale, theme, width),
    series: lines.flatMap((line) => meanLines(line, at, scale, theme)),
  };
}
