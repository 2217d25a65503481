import { expect, it } from 'vitest';
import { shortDate } from '../text/format';
import type { Distribution, SeriesPoint } from '../data/statistics';
import { distributionOption, distributionTooltip } from './distribution';
import { comparisonOption, ratesOption, ratesTooltip, scaleOf } from './rates';
import type { Theme } from './theme';

const period = { from: '2026-01-05', to: '2026-01-07' };
const theme: Theme = {
  paper: '#fff',
  ink: '#000',
  muted: '#888',
  line: '#ccc',
  accent: '#080',
  signal: '#a40',
  crops: [],
  otherCrops: '#999',
  heat: [],
  font: 'sans-serif',
};

const NO_ROWS = new Int32Array(0);

function point(day: number, low: number, mean: number, high: number): SeriesPoint {
  return { start: `2026-01-0${day}`, rows: NO_ROWS, batches: 3, measured: 3, mean, low, high };
}

// A rate of 250 or -5 is valid for the API.
const points = [point(5, -5, 60, 250), point(6, 250, 250, 250), point(7, -5, -5, -5)];

/** All values of the series: the rate is the last number of each, or the whole of a box. */
function drawn(option: object): number[] {
  const { series } = option as { series: { data: ({ value: number[] } | number[])[] }[] };
  return series.flatMap(({ data }) => data.map((item) => (item as number[]).at(-1)!));
}

it('draws wrong rates at the edge of the scale and keeps the band above its lower end', () => {
  const scale = scaleOf(points.flatMap(({ low, high }) => [low, high]));
  expect(scale).toEqual({ low: 0, high: 100 });
  const rates = { points, labelOf: (start: string) => start, period, scale, running: -1, isConnected: false };
  const option = ratesOption(rates, theme, 600);
  // The lower end of the band, its height, and the mean.
  expect(drawn(option)).toEqual([0, 100, 0, 100, 0, 0, 60, 100, 0]);
  expect(option.yAxis).toMatchObject({ min: 0, max: 100 });
});

it('fits the scale to the rates, but not closer than twenty points', () => {
  expect(scaleOf([76.2, null, 93.1])).toEqual({ low: 75, high: 95 });
  expect(scaleOf([61, 93])).toEqual({ low: 60, high: 100 });
  expect(scaleOf([97, 98])).toEqual({ low: 80, high: 100 });
  expect(scaleOf([41, 42])).toEqual({ low: 40, high: 60 });
  expect(scaleOf([])).toEqual({ low: 80, high: 100 });
});

it('marks the start of a decline with its date, if it is in the period', () => {
  const rates = { points, labelOf: (start: string) => start, period, scale: { low: 0, high: 100 }, running: -1, isConnected: false };
  const drawnWith = (since: string): unknown[] => ratesOption({ ...rates, since }, theme, 600).series as unknown[];
  expect(drawnWith('2026-01-05')).toHaveLength(3);
  const ms = Date.UTC(2026, 0, 6);
  expect(drawnWith('2026-01-06')[2]).toMatchObject({
    data: [{ value: [ms, 0] }, { value: [ms, 100], label: { align: 'left', formatter: `Below usual since ${shortDate('2026-01-06')}` } }],
  });
});

it('draws the step that is not over yet apart, with a hollow dot', () => {
  const rates = { points, labelOf: (start: string) => start, period, scale: { low: 0, high: 100 }, running: 2, isConnected: false };
  const [, , whole, end] = ratesOption(rates, theme, 600).series as { data: unknown[][]; itemStyle: object }[];
  expect(whole!.data.map(([, mean]) => mean)).toEqual([60, 100, '-']);
  expect(end!.data.map(([, mean]) => mean)).toEqual([100, 0]);
  expect(end!.itemStyle).toMatchObject({ color: theme.paper });
});

it('connects days over a weekend, up to the day that is not over yet', () => {
  const none = { rows: NO_ROWS, batches: 0, measured: 0, mean: null, low: null, high: null };
  const days = [points[0]!, { start: '2026-01-06', ...none }, points[2]!];
  const means = (running: number, isConnected: boolean): unknown[][] => {
    const option = comparisonOption([{ points: days, colour: '#000', running, isConnected }], period, theme, 600);
    return (option.series as { data: unknown[][] }[]).map(({ data }) => data.map(([, mean]) => mean));
  };
  expect(means(-1, false)).toEqual([[60, '-', 0]]);
  expect(means(-1, true)).toEqual([[60, 0]]);
  expect(means(2, true)).toEqual([[60, '-'], [60, 0]]);
});

it('compares wrong rates on the same scale', () => {
  const option = comparisonOption([{ points, colour: '#000', running: -1, isConnected: false }], period, theme, 600);
  expect(drawn(option)).toEqual([60, 100, 0]);
  expect(option.yAxis).toMatchObject({ min: 0, max: 100 });
});

it('draws the boxes of wrong rates on the scale', () => {
  const box: Distribution = { crop: 'a', batches: 9, min: -5, q1: 90, median: 95, q3: 250, max: 900, mean: 99 };
  const option = distributionOption([box, { ...box, min: 250, q1: 250, median: 250 }], () => 0, theme, 600);
  const [boxes, lowest] = option.series as { data: { value: (number | string)[] }[] }[];
  expect(boxes!.data.map(({ value }) => value)).toEqual([
    [0, 90, 95, 100, 100],
    [100, 100, 100, 100, 100],
  ]);
  expect(lowest!.data.map(({ value }) => value[0])).toEqual(['-', '-']);
  expect(option.xAxis).toMatchObject({ min: 0, max: 100 });
});

it('shows wrong rates as they are in texts', () => {
  const rates = { points, labelOf: (start: string) => start, period, scale: { low: 0, high: 100 }, running: -1, isConnected: false };
  const shown = ratesTooltip(rates, Date.UTC(2026, 0, 6, 12), '#000')!.tooltip.lines[0]!.value;
  expect(shown).toContain('250');
  const box: Distribution = { crop: 'a', batches: 9, min: -5, q1: 90, median: 250, q3: 250, max: 900, mean: 99 };
  expect(distributionTooltip(box, '#000').lines[0]!.value).toContain('250');
});
