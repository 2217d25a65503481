// The distribution of a rate per crop as box plots, with a dot for the lowest batch beyond the whisker.
import type { Distribution } from '../data/statistics';
import { cropLabel } from '../crop-colours';
import { count, percent } from '../text/format';
import { text } from '../text';
import type { Option } from './echarts';
import { onScale, scaleOf } from './rates';
import { axisStyle, cropColour, type Theme } from './theme';
import type { Tooltip } from './tooltip';

export const BOXES_MAX = 12;

// Tukey's whiskers: a single ruined tray does not flatten all boxes.
const WHISKER_BOXES = 1.5;

export function distributionOption(
  boxes: readonly Distribution[],
  slot: (crop: string | null) => number,
  theme: Theme,
  width: number,
): Option {
  const axis = axisStyle(theme);
  const names = Math.min(170, Math.round(width * 0.36));
  const scale = scaleOf(boxes.flatMap((box) => [whiskerLow(box), whiskerHigh(box)]));
  const colours = boxes.map(({ crop }) => cropColour(theme, slot(crop)));
  return {
    grid: { left: names + 12, right: 14, top: 4, bottom: 28 },
    xAxis: {
      type: 'value',
      min: scale.low,
      max: scale.high,
      splitNumber: 4,
      ...axis,
      axisLabel: { ...axis.axisLabel, formatter: (value: number) => percent(value, 0), hideOverlap: true },
    },
    yAxis: {
      type: 'category',
      inverse: true,
      data: boxes.map(({ crop }) => cropLabel(crop)),
      ...axis,
      splitLine: { show: false },
      axisLabel: { ...axis.axisLabel, color: theme.ink, width: names, overflow: 'truncate', interval: 0 },
    },
    series: [
      {
        type: 'boxplot',
        boxWidth: [7, 14],
        cursor: 'pointer',
        emphasis: { itemStyle: { borderWidth: 2 } },
        data: boxes.map((box, at) => ({
          value: [whiskerLow(box), box.q1, box.median, box.q3, whiskerHigh(box)].map((rate) => onScale(rate, scale)),
          itemStyle: { color: theme.paper, borderColor: colours[at]!, borderWidth: 1.5 },
        })),
      },
      {
        type: 'scatter',
        symbolSize: 5,
        cursor: 'pointer',
        // A value below the scale is an arrow at its edge.
        data: boxes.map((box, at) => ({
          value: [box.min < whiskerLow(box) ? onScale(box.min, scale) : '-', at],
          symbol: box.min < scale.low ? 'path://M8 0L0 4l8 4z' : 'circle',
          symbolSize: box.min < scale.low ? 8 : 5,
          itemStyle: { color: colours[at]! },
        })),
      },
    ],
  };
}

export function distributionTooltip(box: Distribution, colour: string): Tooltip {
  return {
    title: cropLabel(box.crop),
    lines: [
      { label: text.panel.median, value: percent(box.median), colour },
      { label: text.distribution.middle, value: `${percent(box.q1)} – ${percent(box.q3)}` },
      { label: text.distribution.all, value: `${percent(box.min)} – ${percent(box.max)}` },
      { label: text.figures.batches, value: count(box.batches) },
    ],
    hint: text.distribution.hint,
  };
}

function whiskerLow({ min, q1, q3 }: Distribution): number {
  return Math.max(min, q1 - WHISKER_BOXES * (q3 - q1));
}

function whiskerHigh({ max, q1, q3 }: Distribution): number {
  return Math.min(max, q3 + WHISKER_BOXES * (q3 - q1));
}
