// Registers only the parts of ECharts that are used, to keep the download small. Tooltips and the brush are in
// Chart.svelte: ECharts' own would add a third, and need inline styles, which the Content-Security-Policy forbids.
import { BoxplotChart, LineChart, ScatterChart } from 'echarts/charts';
import type { BoxplotSeriesOption, LineSeriesOption, ScatterSeriesOption } from 'echarts/charts';
import { GridSimpleComponent, type GridComponentOption } from 'echarts/components';
import { init, use, type ComposeOption, type EChartsType } from 'echarts/core';
import { CanvasRenderer } from 'echarts/renderers';

export type Option = ComposeOption<BoxplotSeriesOption | LineSeriesOption | ScatterSeriesOption | GridComponentOption>;
export type { EChartsType };

use([BoxplotChart, LineChart, ScatterChart, GridSimpleComponent, CanvasRenderer]);

export function mount(box: HTMLElement): EChartsType {
  return init(box, null, { renderer: 'canvas' });
}
