// Seedling size and its variation: one dot per batch. Crops differ in colour and in shape.
import type { Dot } from '../data/statistics';
import { decimal, percent } from '../text/format';
import { text } from '../text';
import type { Option } from './echarts';
import { axisStyle, cropColour, type Theme } from './theme';

/** The symbols of the slots as paths in a 10×10 box. Other crops are small circles. */
export const CROP_SYMBOLS = [
  'M5 1a4 4 0 1 1 0 8 4 4 0 1 1 0-8z',
  'M5 1l4.2 8H.8z',
  'M1.4 1.4h7.2v7.2H1.4z',
  'M5 .4L9.6 5 5 9.6.4 5z',
  'M.8 1h8.4L5 9z',
  'M3.8.8h2.4v3h3v2.4h-3v3H3.8v-3h-3V3.8h3z',
] as const;
export const OTHER_CROPS_SYMBOL = 'M5 2a3 3 0 1 1 0 6 3 3 0 1 1 0-6z';

interface DotGroup {
  /** -1 for other crops. */
  slot: number;
  dots: Dot[];
}

/** The dots by slot, grey first, so that the others are drawn on top. */
export function dotGroups(dots: readonly Dot[], slotOfCrop: (crop: number) => number): DotGroup[] {
  const groups = new Map<number, Dot[]>();
  const slots = new Map<number, number>();
  for (const dot of dots) {
    const slot = slots.get(dot.crop) ?? slotOfCrop(dot.crop);
    slots.set(dot.crop, slot);
    const group = groups.get(slot);
    if (group === undefined) groups.set(slot, [dot]);
    else group.push(dot);
  }
  return [...groups].map(([slot, dots]) => ({ slot, dots })).sort((a, b) => a.slot - b.slot);
}

export function uniformityOption(groups: readonly DotGroup[], total: number, theme: Theme): Option {
  const axis = axisStyle(theme);
  const size = total > 1_000 ? 4.5 : total > 300 ? 6 : 8;
  return {
    grid: { left: 48, right: 12, top: 28, bottom: 44 },
    xAxis: {
      type: 'value',
      name: text.uniformity.variationAxis,
      nameLocation: 'middle',
      nameGap: 28,
      scale: true,
      splitNumber: 5,
      ...axis,
      axisLabel: { ...axis.axisLabel, formatter: (value: number) => percent(value, 0), hideOverlap: true },
    },
    yAxis: {
      nameLocation: 'end',
      nameGap: 12,
      ...axis,
      nameTextStyle: { ...axis.nameTextStyle, align: 'left', padding: [0, 0, 0, -48] },
      ...sizeScale(groups, axis, (value) => decimal(value, 0)),
    },
    series: groups.map(({ slot, dots }) => ({
      type: 'scatter' as const,
      symbol: symbolOf(slot),
      symbolSize: slot < 0 ? size - 1 : size,
      itemStyle: { color: cropColour(theme, slot), opacity: total > 1_000 ? 0.55 : 0.75, borderWidth: 0 },
      emphasis: { scale: 1.8, itemStyle: { opacity: 1, borderColor: theme.paper, borderWidth: 1 } },
      data: dots.map(({ variation, size }) => [variation, size]),
    })),
  };
}

// Crops differ in size by factors: from here on the scale is logarithmic.
const FACTOR_FOR_LOG = 5;

function sizeScale(
  groups: readonly DotGroup[],
  axis: ReturnType<typeof axisStyle>,
  formatter: (value: number) => string,
) {
  let low = Infinity;
  let high = 0;
  for (const { dots } of groups) {
    for (const { size } of dots) {
      if (size < low) low = size;
      if (size > high) high = size;
    }
  }
  if (!(low > 0) || high / low < FACTOR_FOR_LOG) {
    const name = text.uniformity.sizeAxis;
    return { type: 'value' as const, name, scale: true, splitNumber: 4, axisLabel: { ...axis.axisLabel, formatter } };
  }
  const customValues = roundValues(low, high);
  return {
    type: 'log' as const,
    name: text.uniformity.logAxis,
    min: low * 0.9,
    max: high * 1.1,
    axisTick: { show: false, customValues },
    splitLine: { ...axis.splitLine, show: true },
    axisLabel: { ...axis.axisLabel, customValues, formatter },
  };
}

/** 10, 20, 50, 100 and so on. */
function roundValues(low: number, high: number): number[] {
  const found: number[] = [];
  for (let ten = 10 ** Math.floor(Math.log10(low)); ten <= high; ten *= 10) {
    for (const value of [ten, 2 * ten, 5 * ten]) if (value >= low * 0.9 && value <= high * 1.1) found.push(value);
  }
  return found;
}

// ECharts draws built-in symbols much faster than paths.
function symbolOf(slot: number): string {
  const builtIn = ['circle', 'triangle', 'rect', 'diamond'][slot];
  if (builtIn !== undefined) return builtIn;
  return slot < 0 ? 'circle' : `path://${CROP_SYMBOLS[slot]}`;
}
