import { expect, it } from 'vitest';
import { placeLabels, position, rateEnds, roundValues } from './scale';

it('places values, and those outside the axis at its end', () => {
  const at = position({ low: 50, high: 100, ticks: [] }, 0, 200);
  expect([50, 75, 100, 250, -5].map(at)).toEqual([0, 100, 200, 200, 0]);
});

it('labels round values', () => {
  expect(roundValues(40, 100, 3)).toEqual([40, 60, 80, 100]);
  expect(roundValues(11, 34, 5)).toEqual([15, 20, 25, 30]);
});

it('fits an axis to rates, at least twenty points long and within 0 and 100', () => {
  expect(rateEnds([91, 96])).toEqual({ low: 80, high: 100 });
  expect(rateEnds([41, null, 96])).toEqual({ low: 40, high: 100 });
  expect(rateEnds([-5, 250])).toEqual({ low: 0, high: 100 });
  expect(rateEnds([3, 4])).toEqual({ low: 0, high: 20 });
});

it('puts a label where it is clear whose it is', () => {
  const anchors = (...x: number[]) => placeLabels(x.map((x) => ({ x, y: 40, labelPx: 38 })), 200).map((label) => label?.anchor ?? null);
  expect(anchors(50)).toEqual(['start']);
  expect(anchors(190), 'near the end').toEqual(['end']);
  expect(placeLabels([{ x: 50, y: 40, labelPx: 90 }, { x: 130, y: 45, labelPx: 0 }], 300), 'by the length of the text').toEqual([{ x: 41, y: 40, anchor: 'end' }, null]);
  expect(anchors(50, 80), 'not between two dots').toEqual(['end', 'start']);
  expect(anchors(50, 65, 35), 'between two others').toEqual(['middle', 'start', 'end']);
});
