// A rate over time: mean (line) and middle 80% of batches (band).
import { DAY_MS } from '../data/day';
import type { SeriesPoint } from '../data/statistics';
import { count, percent } from '../data/format';
import type { Period } from '../data/period';
import type { Option } from './echarts';
import { dayLabel, endMs, labelDays, middleMs, spans, startMs } from './time-axis';
import { axisStyle, type Theme } from './theme';
import type { Tooltip } from './tooltip';

export interface Rates {
  points: SeriesPoint[];
  /** The label of the step that starts on a day. */
  labelOf: (start: string) => string;
  period: Period;
  /** The bottom of the scale. */
  lowest: number;
}

const MARGIN = { left: 44, right: 8, top: 10, bottom: 32 };

export function ratesOption({ points, period, lowest }: Rates, theme: Theme, width: number): Option {
  const at = spans(points, period).map(middleMs);
  const axis = axisStyle(theme);
  const labelled = labelDays(period, width - MARGIN.left - MARGIN.right);
  const band = { type: 'line', symbol: 'none', silent: true, stack: 'spread', lineStyle: { opacity: 0 } } as const;
  return {
    grid: { ...MARGIN },
    xAxis: {
      type: 'time',
      min: startMs(period),
      max: endMs(period),
      ...axis,
      splitLine: { show: false },
      axisLine: { show: true, lineStyle: { color: theme.line } },
      axisTick: { show: true, length: 4, lineStyle: { color: theme.line }, customValues: labelled },
      axisLabel: {
        ...axis.axisLabel,
        margin: 13,
        customValues: labelled,
        hideOverlap: true,
        formatter: (ms: number) => dayLabel(ms, period),
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
      { ...band, data: points.map(({ low }, step) => [at[step]!, low ?? '-']) },
      {
        ...band,
        areaStyle: { color: theme.accent, opacity: 0.16 },
        data: points.map(({ low, high }, step) => [at[step]!, low === null || high === null ? '-' : high - low]),
      },
      {
        type: 'line',
        silent: true,
        symbol: 'circle',
        // A single step between empty ones has no line, so it gets a dot.
        symbolSize: (_value: unknown, { dataIndex }: { dataIndex: number }) => (isAlone(points, dataIndex) ? 6 : 0),
        lineStyle: { color: theme.accent, width: 2, join: 'round' },
        itemStyle: { color: theme.accent, borderWidth: 0 },
        data: points.map(({ mean }, step) => [at[step]!, mean ?? '-']),
      },
    ],
  };
}

export function ratesTooltip(rates: Rates, ms: number, colour: string): { at: number; tooltip: Tooltip } | null {
  const { points, labelOf, period } = rates;
  const found = stepAt(rates, ms);
  const point = points[found];
  if (point === undefined) return null;
  return {
    at: middleMs(spans(points, period)[found]!),
    tooltip: { title: labelOf(point.start), lines: pointLines(point, colour) },
  };
}

/** The step at a position of the time axis. */
export function stepAt({ points, period }: Rates, ms: number): number {
  const found = spans(points, period).findIndex(({ last }) => ms < (last + 1) * DAY_MS);
  return found === -1 ? points.length - 1 : found;
}

function pointLines(point: SeriesPoint, colour: string): Tooltip['lines'] {
  if (point.mean === null) return [{ label: point.batches === 0 ? 'No scans' : 'No rate measured', value: '' }];
  return [
    { label: 'Mean', value: percent(point.mean), colour },
    { label: '10th–90th percentile', value: `${percent(point.low, 0)} – ${percent(point.high, 0)}` },
    { label: 'Batches', value: count(point.batches) },
  ];
}

/** The lower end of the scale: a round number. Not zero, because rates differ by a few points. */
export function lowestOf(points: readonly SeriesPoint[], key: 'mean' | 'low'): number {
  let low = 100;
  for (const point of points) low = Math.min(low, point[key] ?? 100);
  return Math.max(0, Math.min(80, Math.floor((low - 1) / 10) * 10));
}

function isAlone(points: readonly SeriesPoint[], at: number): boolean {
  return (points[at - 1]?.mean ?? null) === null && (points[at + 1]?.mean ?? null) === null;
}
