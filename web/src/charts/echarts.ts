// Registers the parts of ECharts that the charts use, and nothing else: this file decides what is downloaded.
// Tooltips, legends and the brush are ours (Chart.svelte), which saves a third of the library and obeys the
// page's policy against inline styles.
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
