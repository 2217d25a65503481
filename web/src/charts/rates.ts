// A rate over time: its mean as a line, the middle eight tenths of the batches as a band.
import { DAY_MS } from '../data/day';
import type { SeriesPoint } from '../data/figures';
import { count, percent } from '../data/locale';
import type { Window } from '../data/window';
import type { Option } from './echarts';
import { dayLabel, endMs, labelDays, middleMs, spans, startMs } from './steps';
import { axisStyle, type Theme } from './theme';
import type { Tip } from './tip';

export interface Rates {
  points: SeriesPoint[];
  /** What the step that starts on a day is called. */
  nameOf: (start: string) => string;
  window: Window;
  /** The bottom of the scale. */
  lowest: number;
}

const MARGIN = { left: 44, right: 8, top: 10, bottom: 32 };

export function ratesOption({ points, window, lowest }: Rates, theme: Theme, width: number): Option {
  const at = spans(points, window).map(middleMs);
  const axis = axisStyle(theme);
  const labelled = labelDays(window, width - MARGIN.left - MARGIN.right);
  const quiet = { type: 'line', symbol: 'none', silent: true, stack: 'spread', lineStyle: { opacity: 0 } } as const;
  return {
    grid: { ...MARGIN },
    xAxis: {
      type: 'time',
      min: startMs(window),
      max: endMs(window),
      ...axis,
      splitLine: { show: false },
      axisLine: { show: true, lineStyle: { color: theme.line } },
      axisTick: { show: true, length: 4, lineStyle: { color: theme.line }, customValues: labelled },
      axisLabel: {
        ...axis.axisLabel,
        margin: 13,
        customValues: labelled,
        hideOverlap: true,
        formatter: (ms: number) => dayLabel(ms, window),
      },
    },
    yAxis: {
      type: 'value',
      min: lowest,
      max: 100,
      splitNumber: 4,
      ...axis,
      axisLabel: { ...axis.axisLabel, formatter: (value: number) => percent(value, 0) },
    },
    series: [
      { ...quiet, data: points.map(({ low }, step) => [at[step]!, low ?? '-']) },
      {
        ...quiet,
        areaStyle: { color: theme.accent, opacity: 0.16 },
        data: points.map(({ low, high }, step) => [at[step]!, low === null || high === null ? '-' : high - low]),
      },
      {
        type: 'line',
        silent: true,
        symbol: 'circle',
        // A step alone between empty ones has no line to be seen by.
        symbolSize: (_value: unknown, { dataIndex }: { dataIndex: number }) => (isAlone(points, dataIndex) ? 6 : 0),
        lineStyle: { color: theme.accent, width: 2, join: 'round' },
        itemStyle: { color: theme.accent, borderWidth: 0 },
        data: points.map(({ mean }, step) => [at[step]!, mean ?? '-']),
      },
    ],
  };
}

/** What is said at a moment of the axis: the step it falls in. */
export function ratesTip(rates: Rates, ms: number, colour: string): { at: number; tip: Tip } | null {
  const { points, nameOf, window } = rates;
  const found = stepAt(rates, ms);
  const point = points[found];
  if (point === undefined) return null;
  return {
    at: middleMs(spans(points, window)[found]!),
    tip: { title: nameOf(point.start), lines: pointLines(point, colour) },
  };
}

/** The step that a moment of the axis falls in. */
export function stepAt({ points, window }: Rates, ms: number): number {
  const found = spans(points, window).findIndex(({ last }) => ms < (last + 1) * DAY_MS);
  return found === -1 ? points.length - 1 : found;
}

function pointLines(point: SeriesPoint, colour: string): Tip['lines'] {
  if (point.mean === null) return [{ label: point.batches === 0 ? 'No scans' : 'No rate measured', value: '' }];
  return [
    { label: 'Mean', value: percent(point.mean), colour },
    { label: '10th–90th percentile', value: `${percent(point.low, 0)} – ${percent(point.high, 0)}` },
    { label: 'Batches', value: count(point.batches) },
  ];
}

/** The bottom of a scale that shows all of a value: a round number, not zero, for rates differ by a few points. */
export function lowestOf(points: readonly SeriesPoint[], of: 'mean' | 'low'): number {
  let low = 100;
  for (const point of points) low = Math.min(low, point[of] ?? 100);
  return Math.max(0, Math.min(80, Math.floor((low - 1) / 10) * 10));
}

function isAlone(points: readonly SeriesPoint[], at: number): boolean {
  return (points[at - 1]?.mean ?? null) === null && (points[at + 1]?.mean ?? null) === null;
}
