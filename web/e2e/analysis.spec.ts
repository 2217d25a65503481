// Rates, crops, comparison and uniformity.
import { readFileSync } from 'node:fs';
import { lastDays, parseCsv, plusDays, query, tally, today } from './expected';
import { fetchBatches, serve } from './service';
import { button, chart, choosePreset, expect, expectRows, heading, loaded, openSignedIn, region, test } from './test';

test('every key figure leads to the batches behind it', async ({ page, demo }) => {
  const all = await fetchBatches(demo, lastDays(90));
  await openSignedIn(page, demo, '/analysis');
  const figures = region(page, 'Key figures');
  const warned = all.filter((batch) => batch.warnings).length;
  for (const [label, rows, sort] of [
    ['Batches', all.length, null],
    ['Germination rate', all.length, 'avg_germination_rate'],
    ['With warnings', warned, null],
  ] as const) {
    await figures.locator('dl > div').filter({ hasText: label }).getByRole('link').click();
    await expect(heading(page, 'Batches')).toBeVisible();
    await expectRows(page, rows);
    expect(new URL(page.url()).searchParams.get('sort')).toBe(sort);
    await page.goBack();
  }
});

test('a crop has its averages, and leads to its batches and to its own chart', async ({ page, demo }) => {
  const batches = await fetchBatches(demo, lastDays(90));
  const [crop, n] = tally(batches, 'crop_type')[0]!;
  await openSignedIn(page, demo, '/analysis');
  const row = region(page, 'Germination rate by crop').getByRole('row').filter({ hasText: crop });
  const rates = batches.flatMap((batch) => (batch.crop_type === crop && batch.avg_germination_rate !== null ? [Number(batch.avg_germination_rate)] : []));
  const average = rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
  await expect(row).toContainText(`${average.toFixed(1)}%`);
  await row.getByRole('link', { name: `${n}`, exact: true }).click();
  await expectRows(page, n);
  await page.goBack();
  await row.getByRole('link', { name: crop }).click();
  await expect(chart(page, 'rates')).toHaveCount(1);
  expect(new URL(page.url()).searchParams.getAll('crop')).toEqual([crop]);
});

test('the crop with the largest decline comes first, in any period', async ({ page }) => {
  // In the last four weeks, and before.
  const rates = { Basil: ['90.00', '90.00'], Celery: ['95.00', '90.00'], Dill: [null, '90.00'], Leek: ['85.00', '90.00'], Viola: ['70.00', '90.00'] } as const;
  const batches = Object.entries(rates).flatMap(([crop_type, [late, early]]) =>
    Array.from({ length: 30 }, (_, at) => ({
      ...{ batch_id: `${crop_type} ${at}`, crop_type, batch_creation_date: `${plusDays(today(), -1 - 5 * at)}T00:00:00Z` },
      avg_germination_rate: at < 6 ? late : early,
    })),
  );
  const service = await serve('Decline', batches);
  for (const window of ['365d', '90d', '7d']) {
    await openSignedIn(page, service, `/analysis?window=${window}`);
    const crops = region(page, 'Germination rate by crop').getByRole('rowheader').getByRole('link');
    await expect(crops, window).toHaveText(['Viola', 'Leek', 'Basil', 'Celery', 'Dill']);
  }
});

test('the export has the table by crop', async ({ page }) => {
  // By hand: the middle 80 % of 80 to 100 are 82 to 98, and the latest five are 82 on average.
  const batches = Array.from({ length: 21 }, (_, at) => ({ batch_id: `${at}`, crop_type: 'Leek', batch_creation_date: `${plusDays(today(), -7 * at)}T00:00:00Z`, avg_germination_rate: `${80 + at}.00` }));
  await openSignedIn(page, await serve('Export', [...batches, { batch_id: 'b', batch_creation_date: `${today()}T00:00:00Z` }]), '/analysis?window=30d');
  await expect(region(page, 'Germination rate by crop')).toContainText('82–\u206098%');
  const pending = page.waitForEvent('download');
  await button(page, 'Export').click();
  await button(page, 'CSV file').click();
  expect(parseCsv(readFileSync(await (await pending).path(), 'utf8').slice(1))).toEqual([
    ['Crop', 'Batches', ...['Average', 'Usual range, From', 'Usual range, To', 'Last 4 weeks', 'Last 365 days', 'Last 4 weeks − Last 365 days'].map((head) => `Germination rate: ${head} (%)`)],
    ['Leek', '5', '82.00', '82.00', '98.00', '81.50', '90.00', '-8.50'],
    ['Crop not recorded', '1', '', '', '', '', '', ''],
  ]);
});

test('the usual range is the middle 80 % of a year, the same in any period and on every page', async ({ page, demo }) => {
  const year = await fetchBatches(demo, lastDays(365));
  const [crop] = tally(year, 'crop_type')[0]!;
  const rates = year.flatMap(({ crop_type, avg_germination_rate: rate }) => (crop_type === crop && rate !== null ? [Number(rate)] : [])).sort((a, b) => a - b);
  const percentile = (p: number): number => {
    const at = p * (rates.length - 1);
    const below = Math.floor(at);
    return Math.round(rates[below]! + (rates[below + 1]! - rates[below]!) * (at - below));
  };
  const [low, high] = [percentile(0.1), percentile(0.9)];
  for (const window of ['30d', '365d']) {
    await openSignedIn(page, demo, `/analysis?window=${window}`);
    await expect(region(page, 'Germination rate by crop').getByRole('row').filter({ hasText: crop })).toContainText(`${low}–\u2060${high}%`);
  }
  const batch = year.findLast(({ crop_type, avg_germination_rate }) => crop_type === crop && avg_germination_rate !== null)!;
  await openSignedIn(page, demo, '/batches');
  await page.goto(`${demo.url}/batches/${batch.batch_id}`);
  await expect(region(page, 'Compared with the usual range')).toContainText(`usual range (${low}–\u2060${high}%)`);
});

test('two crops, or a crop in two periods, are compared when the user chooses them', async ({ page }) => {
  const batches = Array.from({ length: 40 }, (_, at) => ({
    batch_id: `b ${at}`,
    batch_creation_date: `${plusDays(today(), -at)}T00:00:00Z`,
    crop_type: at % 2 === 0 ? 'Leek' : 'Basil',
    avg_germination_rate: at % 2 === 0 ? (at < 20 ? '80.00' : '90.00') : '70.00',
  }));
  await openSignedIn(page, await serve('Two', batches), `/analysis${query(lastDays(20))}`);
  const panel = region(page, 'Compare').first();
  await expect(panel).toContainText('Choose a crop');
  await expect(chart(page, 'comparison')).toHaveCount(0);
  await panel.getByLabel('First crop').selectOption('Leek');
  await panel.getByLabel('Compare with').selectOption('Basil');
  await expect(panel).toContainText(/\d{4} – .*\d{4}\. Leek: 80\.0%, 10 batches\. Basil: 70\.0%, 10 batches\. Difference: \+10\.0 points\./);
  await expect(chart(page, 'comparison')).toBeVisible();
  await panel.getByLabel('Compare with').selectOption('same crop, previous period');
  await expect(panel).toContainText(/Leek\. .*: 80\.0%, 10 batches\. .*: 90\.0%, 10 batches\. Difference: -10\.0 points\./);
  expect(new URL(page.url()).searchParams.get('compare')).toBe('before');
  await page.reload();
  await loaded(page);
  await expect(panel).toContainText(/: 80\.0%, 10 batches\. .*: 90\.0%, 10 batches\./);
  await panel.getByLabel('Compare with').selectOption('same crop, a year earlier');
  await expect(panel).toContainText(/: 80\.0%, 10 batches\. There are no batches from .+ to .+\./);
  await expect(panel.getByRole('listitem')).toHaveCount(1);
});

test('the week so far is marked', async ({ page }) => {
  // A Wednesday. Whole weeks have 90% and 92%, this week 50%.
  const batches = ([['2026-02-24', '90.00'], ['2026-03-04', '92.00'], ['2026-03-10', '50.00']] as const).map(
    ([day, rate]) => ({ batch_id: day, batch_creation_date: `${day}T08:00:00Z`, avg_germination_rate: rate }),
  );
  const service = await serve('Weeks', batches);
  await page.clock.install({ time: '2026-03-11T12:00:00Z' });
  await openSignedIn(page, service, '/analysis');
  const box = (await chart(page, 'rates').boundingBox())!;
  await chart(page, 'rates').hover({ position: { x: box.width - 15, y: box.height / 2 } });
  await expect(chart(page, 'rates')).toContainText('This week so far');
  await expect(chart(page, 'rates')).toContainText('50.0%, 1 batch');
});

test('a dot opens its batch, and the numbers are in tables', async ({ page, demo }) => {
  const batches = await fetchBatches(demo, lastDays(7));
  await openSignedIn(page, demo, '/analysis?window=7d');
  const tables = page.getByText('Show as table');
  for (let at = 0; at < (await tables.count()); at++) await tables.nth(at).click();
  const heads = await region(page, 'Germination rate over time as a table').getByRole('columnheader').allTextContents();
  expect(heads.slice(1).sort()).toEqual([...new Set(batches.map(({ crop_type }) => crop_type ?? 'Crop not recorded'))].sort());
  const crop = batches.find(({ crop_type }) => crop_type !== null)!.crop_type!;
  await expect(region(page, 'Size and uniformity')).toContainText('Choose one crop');
  await region(page, 'Germination rate by crop').getByRole('link', { name: crop }).click();
  const uniformity = chart(page, 'uniformity').locator('svg');
  await expect(uniformity).toBeVisible();
  const place = await uniformity.locator('path').evaluateAll((all) => {
    const found = all.map((path) => /^M([\d.]+) ([\d.]+)h0/.exec(path.getAttribute('d') ?? '')).find((match) => match !== null)!;
    return { x: Number(found[1]), y: Number(found[2]) };
  });
  await uniformity.click({ position: place });
  await expect(page).toHaveURL(/\/batches\/[^?]+$/);
  await page.goBack();
  await choosePreset(page, 'Today');
  await expect(heading(page, 'Analysis')).toBeVisible();
});
