// A rate over time: mean (line) and middle 80% of batches (band).
import { DAY_MS } from '../data/day';
import type { SeriesPoint } from '../data/statistics';
import { count, percent } from '../data/format';
import type { Range } from '../data/outliers';
import type { Period } from '../data/period';
import { text } from '../text';
import type { Option } from './echarts';
import { dayLabel, endMs, labelDays, middleMs, spans, startMs } from './time-axis';
import { axisStyle, type Theme } from './theme';
import type { Tooltip } from './tooltip';

export interface Rates {
  points: readonly SeriesPoint[];
  /** The label of the step that starts on a day. */
  labelOf: (start: string) => string;
  period: Period;
  /** The bottom of the scale. */
  lowest: number;
  /** The index of the step that is not over yet, or -1. */
  running: number;
  /** Whether the line goes on over steps without scans, such as weekends. */
  isConnected: boolean;
  /** The range to mark, if any. */
  typical?: Range | null;
}

export const RATES_MARGIN = { left: 44, right: 8, top: 10, bottom: 32 };

export function ratesOption({ period, lowest, typical, ...line }: Rates, theme: Theme, width: number): Option {
  const at = spans(line.points, period).map(middleMs);
  const steps = stepsOf(line, at);
  const band = { type: 'line', symbol: 'none', silent: true, stack: 'spread', lineStyle: { opacity: 0 } } as const;
  return {
    ...ratesAxes(period, lowest, theme, width),
    series: [
      { ...band, data: steps.map(({ ms, low }) => [ms, low === null ? '-' : onScale(low, lowest)]) },
      {
        ...band,
        areaStyle: { color: theme.accent, opacity: 0.16 },
        data: steps.map(({ ms, low, high }) => [
          ms,
          low === null || high === null ? '-' : onScale(high, lowest) - onScale(low, lowest),
        ]),
      },
      ...(typical ? [typical.low, typical.mean, typical.high].map((rate) => flatLine(rate, period, lowest, theme)) : []),
      ...meanLines({ ...line, colour: theme.accent }, at, lowest, theme),
    ],
  };
}

function flatLine(rate: number, period: Period, lowest: number, theme: Theme) {
  return {
    type: 'line' as const,
    silent: true,
    symbol: 'none',
    lineStyle: { color: theme.muted, width: 1, type: 'dotted' as const },
    data: [startMs(period), endMs(period)].map((ms) => [ms, onScale(rate, lowest)]),
  };
}

export interface MeanLine extends Pick<Rates, 'points' | 'running' | 'isConnected'> {
  colour: string;
  isDashed?: boolean;
}

/** The line of the means. Its end is dotted, with a hollow dot, if that step is not over yet. */
export function meanLines(line: MeanLine, at: readonly number[], lowest: number, theme: Theme) {
  const { colour, isDashed } = line;
  const steps = stepsOf(line, at);
  const running = steps.findIndex(({ isRunning }) => isRunning);
  const data = steps.map(({ ms, mean }) => [ms, mean === null ? '-' : onScale(mean, lowest)] as [number, number | '-']);
  const common = { type: 'line' as const, silent: true, symbol: 'circle' };
  const style = { color: colour, width: 2, join: 'round' as const };
  const whole = {
    ...common,
    // A single step between empty ones has no line, so it gets a dot.
    symbolSize: (_value: unknown, { dataIndex }: { dataIndex: number }) => (isAlone(steps, dataIndex) ? 6 : 0),
    lineStyle: { ...style, type: isDashed ? ('dashed' as const) : ('solid' as const) },
    itemStyle: { color: colour, borderWidth: 0 },
    data: data.map(([ms, mean], step) => [ms, step === running ? '-' : mean]),
  };
  if (running === -1) return [whole];
  const end = {
    ...common,
    symbolSize: ([ms]: number[]) => (ms === steps[running]!.ms ? 8 : 0),
    lineStyle: { ...style, type: 'dotted' as const },
    itemStyle: { color: theme.paper, borderColor: colour, borderWidth: 2 },
    data: data.slice(Math.max(0, running - 1), running + 1),
  };
  return [whole, end];
}

interface DrawnStep extends Pick<SeriesPoint, 'mean' | 'low' | 'high'> {
  ms: number;
  isRunning: boolean;
}

/** The steps to draw. A connected line has none without scans. */
function stepsOf({ points, running, isConnected }: Omit<MeanLine, 'colour'>, at: readonly number[]): DrawnStep[] {
  const steps = at.map((ms, step) => {
    const { mean = null, low = null, high = null } = points[step] ?? {};
    return { ms, mean, low, high, isRunning: step === running };
  });
  return isConnected ? steps.filter(({ mean }) => mean !== null) : steps;
}

/** The axes of a rate over time. */
export function ratesAxes(period: Period, lowest: number, theme: Theme, width: number) {
  const axis = axisStyle(theme);
  return {
    grid: { ...RATES_MARGIN },
    xAxis: timeAxis(period, theme, width),
    yAxis: {
      type: 'value' as const,
      min: lowest,
      max: 100,
      splitNumber: 4,
      ...axis,
      axisLabel: { ...axis.axisLabel, formatter: (value: number) => percent(value, 0) },
    },
  };
}

function timeAxis(period: Period, theme: Theme, width: number) {
  const axis = axisStyle(theme);
  const labelled = labelDays(period, width - RATES_MARGIN.left - RATES_MARGIN.right);
  return {
    type: 'time' as const,
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
  if (point.mean === null) return [{ label: point.batches === 0 ? text.panel.noScans : text.panel.noRate, value: '' }];
  return [
    { label: text.panel.mean, value: percent(point.mean), colour },
    { label: text.rates.spread, value: `${percent(point.low, 0)} – ${percent(point.high, 0)}` },
    { label: text.panel.batches, value: count(point.batches) },
  ];
}

/** The lower end of the scale: a round number. Not zero, because rates differ by a few points. */
export function lowestOf<Key extends 'mean' | 'low'>(points: readonly Record<Key, number | null>[], key: Key): number {
  let low = 100;
  for (const point of points) low = Math.min(low, point[key] ?? 100);
  return Math.max(0, Math.min(80, Math.floor((low - 1) / 10) * 10));
}

/** A wrong rate, such as 250 or -5, is drawn at the edge of the scale. Texts show its value. */
export function onScale(rate: number, lowest: number): number {
  return Math.max(lowest, Math.min(100, rate));
}

function isAlone(steps: readonly DrawnStep[], at: number): boolean {
  return (steps[at - 1]?.mean ?? null) === null && (steps[at + 1]?.mean ?? null) === null;
}
