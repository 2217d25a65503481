// Claims about time, memory and bytes. Each tells what it measured.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { drawn, field, figures, loaded, openSignedIn, rowCount, warnings } from '../dashboard.mjs';
import { count, lastDays, tally } from '../expected.mjs';
import { claim, eventually } from '../harness.mjs';
import { batchesOf, demo } from '../service.mjs';

const BATCHES = 50_000;
const CHANGE_MS_MAX = 100;
const CHANGES = 15;

// Both multiples of three, so that both ends show the same.
const WARM_UP = 42;
const CHANGES_FOR_MEMORY = 201;
// What the browser's own caches may take between two collections: far less than one leaked copy of 50,000 rows a change.
const GROWTH_BYTES_MAX = 2_000_000;
const GROWTH_NODES_MAX = 50;

const FIRST_LOAD_BYTES_MAX = 250_000;

let large = null;
/** Made once and left running until all claims are done. */
const largeNursery = () =>
  (large ??= demo({ batches: BATCHES, seed: 50 }).then((service) => ({ ...service, stop: () => {} })));
const year = () => `from=${lastDays(365).from}&to=${lastDays(365).to}`;

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const inWords = (values) =>
  `median ${Math.round(median(values))} ms, most ${Math.round(Math.max(...values))} ms of ${values.length}`;

/**
 * Collects the dashboard's own measure of every change, and the browser's of every press and click: from the event to
 * the paint after it.
 */
async function timing(page, name) {
  await page.evaluate((name) => {
    globalThis.measured = [];
    globalThis.inputs = new Map();
    new PerformanceObserver((entries) =>
      measured.push(...entries.getEntriesByName(name).map(({ duration }) => duration)),
    ).observe({ type: 'measure' });
    // A press makes several events; the slowest of them is what the reader waits for.
    const note = ({ interactionId, duration }) =>
      interactionId > 0 && inputs.set(interactionId, Math.max(duration, inputs.get(interactionId) ?? 0));
    new PerformanceObserver((entries) => entries.getEntries().forEach(note)).observe({
      type: 'event',
      durationThreshold: 16,
    });
  }, name);
  /** Makes a change and waits for its measure. */
  const change = async (make) => {
    const before = await page.evaluate(() => measured.length);
    await make();
    await page.waitForFunction((before) => measured.length > before, before);
  };
  const result = () => page.evaluate(() => ({ measured, inputs: [...inputs.values()] }));
  return { change, result };
}

function assertQuick(t, what, { measured, inputs }) {
  const toPaint = inputs.length === 0 ? 'never over 16 ms' : inWords(inputs);
  t.diagnostic(`${what} of ${count(BATCHES)} batches: ${inWords(measured)}; from input to paint ${toPaint}`);
  assert.ok(measured.length >= CHANGES, `${measured.length} changes were measured`);
  assert.ok(median(measured) < CHANGE_MS_MAX, `${what}: ${inWords(measured)}`);
  assert.ok(inputs.length === 0 || median(inputs) < CHANGE_MS_MAX, `${what}, from input to paint: ${inWords(inputs)}`);
}

/** Runs within the page, so that the debugger's own objects do not count. */
async function changeFilter(times) {
  const isWarnings = (select) => select.labels[0].textContent.includes('Warnings');
  const select = [...document.querySelectorAll('select')].find(isWarnings);
  for (let at = 0; at < times; at++) {
    const painted = new Promise((resolve) => {
      const observer = new PerformanceObserver((entries) => {
        if (entries.getEntriesByName('filter').length === 0) return;
        observer.disconnect();
        resolve();
      });
      observer.observe({ type: 'measure' });
    });
    select.value = ['with', 'without', 'all'][at % 3];
    select.dispatchEvent(new Event('change', { bubbles: true }));
    await painted;
  }
}

describe('speed', { concurrency: 1 }, () => {
  claim(
    '50,000 batches are filtered within 100 ms, on the overview with its charts',
    { at: largeNursery },
    async ({ page, service, t }) => {
      const crops = tally(await batchesOf(service, lastDays(365)), 'crop_type');
      await openSignedIn(page, service, `/?${year()}`);
      await drawn(page);
      await eventually(async () => assert.match((await figures(page)).Batches.change, /from/));
      const { change, result } = await timing(page, 'filter');
      const choices = ['with', 'without', 'all'];
      for (let at = 0; at < 6; at++) await change(() => warnings(page).selectOption(choices[at % 3]));
      await page.getByRole('button', { name: /^Crop/ }).click();
      for (const [crop] of crops.slice(0, 4))
        await change(() =>
          page
            .getByRole('listitem')
            .filter({ has: page.getByText(crop, { exact: true }) })
            .getByRole('checkbox')
            .click(),
        );
      await page.keyboard.press('Escape');
      await field(page, 'Search').focus();
      for (const letter of 'bench') await change(() => page.keyboard.press(letter));
      assertQuick(t, 'Filtering', await result());
    },
  );

  claim('50,000 batches are sorted within 100 ms', { at: largeNursery }, async ({ page, service, t }) => {
    await openSignedIn(page, service, `/batches?${year()}`);
    assert.ok((await rowCount(page)) > BATCHES * 0.99);
    const { change, result } = await timing(page, 'sort');
    const columns = ['Germination rate', 'Name', 'Crop', 'Images', 'Created'];
    for (let at = 0; at < CHANGES; at++)
      await change(() =>
        page
          .getByRole('columnheader', { name: columns[at % columns.length] })
          .getByRole('button')
          .click(),
      );
    assertQuick(t, 'Sorting', await result());
  });

  claim(
    'two hundred changes of the filter leave no memory behind',
    { at: largeNursery },
    async ({ page, context, service, t }) => {
      await openSignedIn(page, service, `/?${year()}`);
      // All stay loaded and are filtered each time; fewer drawn make the two hundred quicker.
      await page.getByRole('button', { name: 'Last 30 days' }).click();
      await drawn(page);
      const debug = await context.newCDPSession(page);
      await debug.send('Performance.enable');
      const inUse = async () => {
        for (let round = 0; round < 3; round++) await debug.send('HeapProfiler.collectGarbage');
        const { metrics } = await debug.send('Performance.getMetrics');
        const value = (name) => metrics.find((metric) => metric.name === name).value;
        return { bytes: value('JSHeapUsedSize'), nodes: value('Nodes') };
      };
      await page.evaluate(changeFilter, WARM_UP);
      const before = await inUse();
      await page.evaluate(changeFilter, CHANGES_FOR_MEMORY);
      const after = await inUse();
      const megabytes = ({ bytes }) => `${(bytes / 1e6).toFixed(1)} MB`;
      t.diagnostic(
        `JavaScript heap ${megabytes(before)}, then ${megabytes(after)}; nodes ${before.nodes}, then ${after.nodes}`,
      );
      assert.ok(after.bytes - before.bytes < GROWTH_BYTES_MAX, `The heap grew by ${after.bytes - before.bytes} bytes`);
      assert.ok(after.nodes - before.nodes <= GROWTH_NODES_MAX, `${after.nodes - before.nodes} more nodes`);
    },
  );

  // A small nursery, so that the season of the year, in which the demo has more or fewer batches, does not decide.
  claim(
    'the first load, until the overview is drawn, takes less than 250 kB',
    { at: () => demo({ batches: 300 }) },
    async ({ page, context, service, t }) => {
      const debug = await context.newCDPSession(page);
      await debug.send('Network.enable');
      const batchRequests = new Set();
      let [dashboard, batches] = [0, 0];
      debug.on('Network.requestWillBeSent', ({ requestId, request }) => {
        if (new URL(request.url).pathname === '/v2/batches') batchRequests.add(requestId);
      });
      debug.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
        if (batchRequests.has(requestId)) batches += encodedDataLength;
        else dashboard += encodedDataLength;
      });
      await page.goto(service.link);
      await loaded(page);
      await drawn(page);
      t.diagnostic(`First load: ${count(dashboard)} bytes of dashboard, ${count(batches)} bytes of batches`);
      assert.ok(dashboard > 100_000, 'The measure works');
      assert.ok(dashboard + batches < FIRST_LOAD_BYTES_MAX, `${dashboard + batches} bytes`);
    },
  );
});
