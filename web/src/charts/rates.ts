// A rate over time: mean (line) and middle 80% of batches (band).
import { DAY_MS, dayNumber } from '../time/day';
import type { SeriesPoint } from '../data/statistics';
import { count, percent, shortDate } from '../text/format';
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
  scale: Scale;
  /** The index of the step that is not over yet, or -1. */
  running: number;
  /** Whether the line continues over steps without batches, such as weekends. */
  isConnected: boolean;
  /** The usual range to mark, if any. */
  range?: Range | null;
  /** The day to mark, if any. */
  since?: string | null;
}

/** The ends of the axis of a rate. */
export type Scale = Pick<Range, 'low' | 'high'>;

const RATES_MARGIN = { left: 44, right: 8, top: 10, bottom: 32 };

export function ratesOption({ period, scale, range, since, ...line }: Rates, theme: Theme, width: number): Option {
  const at = spans(line.points, period).map(middleMs);
  const steps = stepsOf(line, at);
  const band = { type: 'line', symbol: 'none', silent: true, stack: 'spread', lineStyle: { opacity: 0 } } as const;
  return {
    ...ratesAxes(period, scale, theme, width),
    series: [
      { ...band, data: steps.map(({ ms, low }) => [ms, low === null ? '-' : onScale(low, scale)]) },
      {
        ...band,
        areaStyle: { color: theme.accent, opacity: 0.16 },
        data: steps.map(({ ms, low, high }) => [
          ms,
          low === null || high === null ? '-' : onScale(high, scale) - onScale(low, scale),
        ]),
      },
      ...usualLines(range).map(({ rate, label }) => {
        const y = onScale(rate, scale);
        return dottedLine([startMs(period), y], [endMs(period), y], [0, rate === range?.high ? 7 : -18], 'right', label, theme.muted, theme.paper);
      }),
      ...(since && since > period.from ? [startLine(since, period, scale, theme)] : []),
      ...meanLines({ ...line, colour: theme.accent }, at, scale, theme),
    ],
  };
}

/** The usual range of a crop: its ends and its mean, as they are labelled. */
export function usualLines(range?: Range | null): { rate: number; label: string }[] {
  if (!range) return [];
  const { low, mean, high } = range;
  return [
    { rate: low, label: text.rates.rangeFrom(percent(low, 0)) },
    { rate: mean, label: text.rates.usual(percent(mean)) },
    { rate: high, label: text.rates.rangeTo(percent(high, 0)) },
  ];
}

/** A dotted line with a label at its end. */
function dottedLine(
  from: number[],
  to: number[],
  position: [number, number],
  align: 'left' | 'right',
  label: string,
  color: string,
  paper: string,
) {
  return {
    type: 'line' as const,
    silent: true,
    symbolSize: 0,
    lineStyle: { color, width: 1, type: 'dotted' as const },
    data: [{ value: from }, { value: to, label: { show: true, position, align, formatter: label, color, backgroundColor: paper } }],
  };
}

/** A vertical line with its date, on the side with more space. */
function startLine(day: string, period: Period, scale: Scale, theme: Theme) {
  const ms = dayNumber(day) * DAY_MS;
  const isLeft = ms - startMs(period) > endMs(period) - ms;
  const label = text.rates.decline(shortDate(day));
  return dottedLine([ms, scale.low], [ms, scale.high], [isLeft ? -6 : 6, 24], isLeft ? 'right' : 'left', label, theme.signal, theme.paper);
}

interface MeanLine extends Pick<Rates, 'points' | 'running' | 'isConnected'> {
  colour: string;
  isDashed?: boolean;
}

/** The line of the means. Its end is dotted, with a hollow dot, if that step is not over yet. */
function meanLines(line: MeanLine, at: readonly number[], scale: Scale, theme: Theme) {
  const { colour, isDashed } = line;
  const steps = stepsOf(line, at);
  const running = steps.findIndex(({ isRunning }) => isRunning);
  const data = steps.map(({ ms, mean }) => [ms, mean === null ? '-' : onScale(mean, scale)] as [number, number | '-']);
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

/** The chart of two lines. They share the steps of the first: the second may be of another year. */
export function comparisonOption(lines: readonly MeanLine[], period: Period, theme: Theme, width: number): Option {
  const at = spans(lines[0]!.points, period).map(middleMs);
  const scale = scaleOf(lines.flatMap(({ points }) => points.map(({ mean }) => mean)));
  return {
    ...ratesAxes(period, scale, theme, width),
    series: lines.flatMap((line) => meanLines(line, at, scale, theme)),
  };
}

interface DrawnStep extends Pick<SeriesPoint, 'mean' | 'low' | 'high'> {
  ms: number;
  isRunning: boolean;
}

/** The steps to draw. A connected line has none without batches. */
function stepsOf({ points, running, isConnected }: Omit<MeanLine, 'colour'>, at: readonly number[]): DrawnStep[] {
  const steps = at.map((ms, step) => {
    const { mean = null, low = null, high = null } = points[step] ?? {};
    return { ms, mean, low, high, isRunning: step === running };
  });
  return isConnected ? steps.filter(({ mean }) => mean !== null) : steps;
}

/** The axes of a rate over time. */
function ratesAxes(period: Period, scale: Scale, theme: Theme, width: number) {
  const axis = axisStyle(theme);
  return {
    grid: { ...RATES_MARGIN },
    xAxis: timeAxis(period, theme, width),
    yAxis: {
      type: 'value' as const,
      min: scale.low,
      max: scale.high,
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
  if (point.mean === null) return [{ label: point.batches === 0 ? text.panel.noBatches : text.panel.noRate, value: '' }];
  return [
    { label: text.panel.mean, value: percent(point.mean), colour },
    { label: text.rates.spread, value: `${percent(point.low, 0)} – ${percent(point.high, 0)}` },
    { label: text.figures.batches, value: count(point.batches) },
  ];
}

// In percentage points. A shorter scale would make a small difference look like a fall.
const SCALE_MIN = 20;
// A longer one has labels every 10 or 20.
const FINE_SCALE_MAX = 25;

/** Fits the rates, with round ends. Not from zero, because rates differ by a few points. */
export function scaleOf(rates: readonly (number | null)[]): Scale {
  const known = rates.filter((rate) => rate !== null);
  const fit = (step: number): Scale => {
    const low = Math.max(0, Math.min(100 - SCALE_MIN, Math.floor(Math.min(...known) / step) * step));
    const high = Math.min(100, Math.max(low + SCALE_MIN, Math.ceil(Math.max(...known) / step) * step));
    return { low, high };
  };
  const fine = fit(5);
  return fine.high - fine.low > FINE_SCALE_MAX ? fit(10) : fine;
}

/** A wrong rate, such as 250 or -5, is drawn at the edge of the scale. Texts show its value. */
export function onScale(rate: number, { low, high }: Scale): number {
  return Math.max(low, Math.min(high, rate));
}

function isAlone(steps: readonly DrawnStep[], at: number): boolean {
  return (steps[at - 1]?.mean ?? null) === null && (steps[at + 1]?.mean ?? null) === null;
}
