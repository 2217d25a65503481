// Time, memory and bytes.
import { count, lastDays, matches, plusDays, query, tally, today } from './expected';
import { fetchBatches, startDemo, type Demo } from './service';
import {
  batchCount,
  choosePreset,
  expect,
  field,
  grid,
  link,
  loaded,
  openSignedIn,
  test as base,
  type Page,
} from './test';

const BATCHES = 50_000;
const CHANGES = 15;

// Both multiples of three, so that both end with the same filter.
const WARM_UP = 42;
const MEMORY_CHANGES = 201;
const WARM_UP_PERIODS = 3;
const MEMORY_PERIODS = 10;
// For the browser's own caches: much less than one leaked copy of 50,000 rows per change.
const GROWTH_BYTES_MAX = 2_000_000;
const GROWTH_NODES_MAX = 50;

const FIRST_LOAD_BYTES_MAX = 230_000;

const test = base.extend<object, { large: Demo }>({
  large: [
    async ({}, use) => {
      await use(await startDemo({ batches: BATCHES, seed: 50 }));
    },
    { scope: 'worker', timeout: 300_000 },
  ],
});

// Nearly all of the demo's 365 days, so that the period before has batches at any time of day.
const period = lastDays(360);
const median = (values: number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/**
 * Records the time of every key press and click until the next paint. Returns a function that prints the median: it
 * depends on the machine. Unit tests of `src/data` limit the CPU time.
 */
async function recordInputs(page: Page): Promise<() => Promise<void>> {
  const recorder = await page.evaluateHandle(() => {
    const inputs = new Map<number, number>();
    // A key press has several events; the slowest counts.
    new PerformanceObserver((entries) => {
      for (const { interactionId, duration } of entries.getEntries() as PerformanceEventTiming[])
        if (interactionId > 0) inputs.set(interactionId, Math.max(duration, inputs.get(interactionId) ?? 0));
    }).observe({ type: 'event', durationThreshold: 16 } as PerformanceObserverInit);
    return inputs;
  });
  return async () => {
    const times = await recorder.evaluate((inputs) => [...inputs.values()]);
    console.log(`${count(BATCHES)} batches: input to paint ${median(times)} ms`);
  };
}

/** Waits until everything is loaded and compared. */
async function compared(page: Page): Promise<void> {
  await expect(page.getByText(/^Dot: average of this period/)).toBeVisible();
}

/** Runs in the page, so that the debugger's objects do not count. */
async function changeFilter(times: number): Promise<void> {
  const select = document.querySelector<HTMLSelectElement>('select[aria-label=Show]')!;
  for (let at = 0; at < times; at++) {
    select.value = ['with', 'without', 'all'][at % 3]!;
    select.dispatchEvent(new Event('change', { bubbles: true }));
    // The second frame starts when the first is painted.
    await new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(painted)));
  }
}

/** Shows 30 and then 90 days, again and again, through the browser's history. Runs in the page too. */
async function changePeriod(times: number): Promise<void> {
  const find = (name: string): HTMLButtonElement | undefined =>
    [...document.querySelectorAll('button')].find((button) => button.textContent.trim() === name);
  for (let at = 0; at < times * 2; at++) {
    if (at % 2 === 0) history.back();
    else history.forward();
    do await new Promise((resolve) => setTimeout(resolve, 100));
    while (find('Refresh') === undefined);
  }
}

/** Compares the memory in use after garbage collections, before and after the changes. */
async function expectNoLeak(page: Page, warmUp: () => Promise<void>, change: () => Promise<void>): Promise<void> {
  const debug = await page.context().newCDPSession(page);
  await debug.send('Performance.enable');
  const usage = async (): Promise<{ bytes: number; nodes: number }> => {
    await compared(page);
    for (let round = 0; round < 3; round++) await debug.send('HeapProfiler.collectGarbage');
    const { metrics } = await debug.send('Performance.getMetrics');
    const value = (name: string): number => metrics.find((metric) => metric.name === name)!.value;
    return { bytes: value('JSHeapUsedSize'), nodes: value('Nodes') };
  };
  await warmUp();
  const before = await usage();
  await change();
  const after = await usage();
  console.log(`JavaScript heap ${count(before.bytes)} → ${count(after.bytes)} bytes`);
  expect(after.bytes - before.bytes).toBeLessThan(GROWTH_BYTES_MAX);
  expect(after.nodes - before.nodes).toBeLessThanOrEqual(GROWTH_NODES_MAX);
}

test('50,000 batches are filtered, with charts', async ({ page, large }) => {
  const batches = await fetchBatches(large, period);
  const crops = tally(batches, 'crop_type');
  await openSignedIn(page, large, `/analysis${query(period)}`);
  await compared(page);
  const report = await recordInputs(page);
  await page.getByRole('button', { name: /^Crop/ }).click();
  for (const [crop] of crops.slice(0, 4)) {
    const option = page.getByRole('listitem').filter({ has: page.getByText(crop, { exact: true }) });
    await option.getByRole('checkbox').click();
  }
  await page.keyboard.press('Escape');
  await field(page, 'Search').focus();
  for (const letter of 'bench') await page.keyboard.press(letter);
  const selected = crops.slice(0, 4).map(([crop]) => crop);
  const matching = batches.filter((batch) => selected.includes(batch.crop_type ?? '') && matches(batch, /bench/i));
  await expect.poll(() => batchCount(page)).toBe(matching.length);
  await report();
});

test('50,000 batches are sorted', async ({ page, large }) => {
  await openSignedIn(page, large, `/analysis${query(period)}`);
  await compared(page);
  await link(page, 'Batches').click();
  expect(Number(await grid(page).getAttribute('aria-rowcount'))).toBeGreaterThan(BATCHES * 0.97);
  const report = await recordInputs(page);
  const columns = ['Germination rate', 'Name', 'Crop', 'Comment', 'Scanned'];
  for (let at = 0; at < CHANGES; at++) {
    const header = page.getByRole('columnheader', { name: columns[at % columns.length]!, exact: true });
    await header.getByRole('button').click();
    await expect(header).not.toHaveAttribute('aria-sort', 'none');
  }
  await report();
});

test('two hundred filter changes leak no memory', async ({ page, large }) => {
  await openSignedIn(page, large, `/analysis${query(period)}`);
  // All batches stay loaded and are filtered each time; drawing fewer is faster.
  await choosePreset(page, '30 days');
  await expectNoLeak(
    page,
    () => page.evaluate(changeFilter, WARM_UP),
    () => page.evaluate(changeFilter, MEMORY_CHANGES),
  );
});

test('loading twenty periods in turn leaks no memory', async ({ page, large }) => {
  await openSignedIn(page, large, `/analysis${query(lastDays(60, plusDays(today(), -300)))}`);
  await choosePreset(page, '30 days');
  await loaded(page);
  await expectNoLeak(
    page,
    () => page.evaluate(changePeriod, WARM_UP_PERIODS),
    () => page.evaluate(changePeriod, MEMORY_PERIODS),
  );
});

test('the first load of the start page takes less than 230 kB', async ({ page, context }) => {
  const demo = await startDemo({ batches: 250 });
  const debug = await context.newCDPSession(page);
  await debug.send('Network.enable');
  let bytes = 0;
  debug.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes += encodedDataLength));
  await page.goto(demo.link);
  await expect(page.locator('[data-chart=crop] svg').first()).toBeVisible();
  console.log(`first load: ${count(bytes)} bytes`);
  expect(bytes).toBeGreaterThan(50_000);
  expect(bytes).toBeLessThan(FIRST_LOAD_BYTES_MAX);
});
