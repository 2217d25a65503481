// A rate over time as two lines.
import type { Period } from '../data/period';
import type { Option } from './echarts';
import { lowestOf, meanLines, ratesAxes, type MeanLine } from './rates';
import { middleMs, spans } from './time-axis';
import type { Theme } from './theme';

/** The lines share the steps of the first: the second may be of another year. */
export function comparisonOption(lines: readonly MeanLine[], period: Period, theme: Theme, width: number): Option {
  const at = spans(lines[0]!.points, period).map(middleMs);
  const lowest = lowestOf(
    lines.flatMap(({ points }) => points),
    'mean',
  );
  return {
    ...ratesAxes(period, lowest, theme, width),
    series: lines.flatMap((line) => meanLines(line, at, lowest, theme)),
  };
}
