// Languages, time zones, paper.
import { count, lastDays, plusDays, query, today } from './expected';
import { fetchBatches, serve } from './service';
import { batchCount, button, chart, expect, expectRows, goSignedIn, grid, heading, link, openSignedIn, region, test, warnings } from './test';

test('a batch has a way back to the screen where it was opened', async ({ page, demo }) => {
  await openSignedIn(page, demo, '/batches?window=30d&warnings=with');
  await grid(page).getByRole('link').first().click();
  await link(page, 'Back to batches').click();
  await expect(page).toHaveURL(`${demo.url}/batches?window=30d&warnings=with`);
  await link(page, 'Today').click();
  await region(page, 'New batches').getByRole('listitem').first().getByRole('link').click();
  await link(page, 'Back to today').click();
  await expect(page).toHaveURL(`${demo.url}/`);
});

test('a search shows how many more batches match in the last 365 days', async ({ page, demo }) => {
  const [batch] = await fetchBatches(demo, lastDays(30));
  const found = (await fetchBatches(demo, lastDays(365))).filter(({ crop_type }) => crop_type === batch!.crop_type);
  await openSignedIn(page, demo, `/batches?window=30d&q=${batch!.crop_type}`);
  await button(page, `Search last 365 days (${found.length} batches)`).click();
  await expectRows(page, found.length);
});

test('print is light, and has the verdict, the cards and the charts', async ({ page, demo }) => {
  await page.emulateMedia({ colorScheme: 'dark' });
  await openSignedIn(page, demo);
  await expect(region(page, 'Germination, last four weeks')).toBeVisible();
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  await page.emulateMedia({ media: 'print' });
  await expect(page.locator('html')).toHaveCSS('color-scheme', 'light');
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await expect(chart(page, 'crop').first()).toBeVisible();
  await expect(page.getByText(`${new Date().getUTCFullYear()}, `)).toBeVisible();
  // The chart is as wide as its place: 480 units are scaled to it.
  const [place, drawn] = [chart(page, 'crop').first(), chart(page, 'crop').first().locator('svg')];
  await expect(drawn).toHaveAttribute('viewBox', /^0 0 480 /);
  expect((await drawn.boundingBox())!.width).toBeCloseTo((await place.boundingBox())!.width);
  await expect(page.getByRole('navigation')).toBeHidden();
  await page.emulateMedia({ media: 'screen' });
  await link(page, 'Analysis').click();
  await page.emulateMedia({ media: 'print' });
  await expect(heading(page, 'Analysis')).toBeVisible();
  await expect(button(page, 'Export')).toBeHidden();
  await expect(chart(page, 'rates').first()).toBeVisible();
});

test('a printed analysis has the ranges and the differences, but nothing to choose', async ({ page, demo }) => {
  await openSignedIn(page, demo, '/analysis?window=30d');
  await expect(page.getByText('Choose a crop')).toBeVisible();
  await page.setViewportSize({ width: 718, height: 1000 });
  await page.emulateMedia({ media: 'print' });
  await expect(page.getByText('Choose a crop')).toBeHidden();
  const row = page.getByRole('region', { name: 'Germination rate by crop' }).getByRole('row').nth(1);
  await expect(row).toContainText(/\([+-]\d+\.\d\)/);
  await expect(row.getByText(/^\d+–\u2060?\d+%$/)).toBeVisible();
});

test('a printed table has all batches, with the names of its columns', async ({ page, demo }) => {
  const { length } = await fetchBatches(demo, lastDays(90));
  await openSignedIn(page, demo, '/batches');
  await page.emulateMedia({ media: 'print' });
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  await expect(page.getByRole('grid').getByRole('row')).toHaveCount(length + 1);
  await expect(page.getByRole('columnheader', { name: 'Germination rate' })).toBeVisible();
  // Otherwise the browser does not repeat it on each page.
  await expect(page.getByRole('columnheader').getByRole('button').first()).toHaveCSS('display', 'contents');
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
  await expect.poll(() => page.getByRole('grid').getByRole('row').count()).toBeLessThan(60);
});

test('a printed table is in landscape, with each batch on one line', async ({ page, demo }) => {
  await openSignedIn(page, demo, '/batches?window=30d');
  const pdf = (await page.pdf({ format: 'A4', preferCSSPageSize: true })).toString('latin1');
  expect(new Set(pdf.match(/MediaBox \[0 0 \d+/g))).toEqual(new Set(['MediaBox [0 0 842']));
  // The comments too.
  await page.emulateMedia({ media: 'print' });
  const lines = await grid(page).locator('tbody td').evaluateAll((all) => all.filter((td) => td.getBoundingClientRect().height > 30).length);
  expect(lines).toBe(0);
  const box = await grid(page).locator('tbody a').first().evaluate((link) => getComputedStyle(link, '::before').borderStyle);
  expect(box, 'a box to tick off').toBe('solid');
});

test('a batch is printed on one page', async ({ page, demo }) => {
  const [batch] = await fetchBatches(demo, lastDays(30));
  await goSignedIn(page, demo, `/batches/${batch!.batch_id}`);
  await expect(page.getByText('of the last 365 days')).toBeVisible();
  const margin = { top: '1cm', right: '1cm', bottom: '1cm', left: '1cm' };
  expect((await page.pdf({ format: 'A4', margin })).toString('latin1')).toContain('/Count 1\n');
});

test('an unusual batch has its usual range in the table and on a card', async ({ page }) => {
  const batch = (at: number, day: string, rate: string) => ({
    batch_id: `b${at}`,
    batch_name: `Tray ${at}`,
    batch_creation_date: `${day}T08:00:00Z`,
    crop_type: 'Tomato',
    avg_germination_rate: rate,
  });
  const before = Array.from({ length: 30 }, (_, at) => batch(at, plusDays(today(), -40 - at), `${90 + (at % 8)}.00`));
  const batches = [...before, batch(99, plusDays(today(), -1), '61.00')];
  await openSignedIn(page, await serve('Weak', batches), '/batches');
  await expect(grid(page).getByRole('row').filter({ hasText: 'Tray 99' })).toContainText('61% ▼ 90–\u206096%');
  await expectRows(page, batches.length);
  await warnings(page).selectOption('Unusual');
  await expectRows(page, 1);
  await page.setViewportSize({ width: 390, height: 844 });
  await expect(page.getByRole('main').getByRole('listitem')).toContainText(/Germination\s*61%\s*90–\u206096%/);
});

test('an Excel file can be saved, which closes the menu', async ({ page, demo }) => {
  await openSignedIn(page, demo, '/analysis');
  const pending = page.waitForEvent('download');
  await button(page, 'Export').click();
  await button(page, 'Excel file').click();
  expect((await pending).suggestedFilename()).toBe(`analysis-${lastDays(90).from}-to-${today()}.xlsx`);
  await expect(button(page, 'Excel file')).toBeHidden();
});

test.describe('in Auckland', () => {
  test.use({ timezoneId: 'Pacific/Auckland' });

  test('days and times are local', async ({ page }) => {
    // 11:30 in UTC on the day before is after midnight in Auckland, in summer and in winter.
    const day = plusDays(today(), -3);
    const service = await serve('Far', [{ batch_id: 'a', batch_creation_date: `${day}T13:30:00Z` }]);
    await openSignedIn(page, service, `/analysis${query({ from: day, to: day })}`);
    await expect(page.getByText('No batches in this period')).toBeVisible();
    await openSignedIn(page, service, `/analysis${query({ from: plusDays(day, 1), to: plusDays(day, 1) })}`);
    await expect.poll(() => batchCount(page)).toBe(1);
    await expect(page.getByRole('contentinfo')).toContainText(/Pacific\/Auckland \(UTC\+1[23]\)/);
  });
});

test.describe('in German', () => {
  test.use({ locale: 'de-DE' });

  test('texts, numbers, dates and files are German, and the language can be changed', async ({ page, demo }) => {
    const { length } = await fetchBatches(demo, lastDays(365));
    await openSignedIn(page, demo, '/analysis?window=365d');
    await expect(heading(page, 'Analyse')).toBeVisible();
    const figure = region(page, 'Kennzahlen').locator('dl > div').filter({ hasText: 'Chargen' }).getByRole('link');
    await expect(figure).toHaveText(new Intl.NumberFormat('de-DE').format(length));
    await expect(page.locator('html')).toHaveAttribute('lang', 'de');
    await button(page, 'English').click();
    await expect(heading(page, 'Analysis')).toBeVisible();
    await expect(page.locator('html')).toHaveAttribute('lang', 'en');
    await expect.poll(() => batchCount(page)).toBe(length);
    expect(count(length)).toContain(',');
  });
});

test.describe('a page that does not exist', () => {
  test.use({ allowedErrors: /404/ });

  test('an unknown path is a page with a way back, for people', async ({ page, demo }) => {
    const response = await page.goto(`${demo.url}/nowhere`);
    expect(response!.status()).toBe(404);
    await expect(page.getByRole('heading', { name: 'Page not found' })).toBeVisible();
    await link(page, 'Go to the start page').click();
    await expect(heading(page, 'Sign in')).toBeVisible();
    expect(await (await fetch(`${demo.url}/nowhere`)).json()).toEqual({ detail: 'Not Found' });
  });
});

test('the API documentation is dark in the dark, has a way back, and lists no HEAD or OPTIONS', async ({ page, demo }) => {
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.goto(`${demo.url}/docs`);
  await expect(page.locator('.opblock').first()).toBeVisible();
  await expect(page.locator('.opblock-head, .opblock-options')).toHaveCount(0);
  expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe('rgb(18, 23, 20)');
  await link(page, 'Dashboard').click();
  await expect(heading(page, 'Sign in')).toBeVisible();
});
