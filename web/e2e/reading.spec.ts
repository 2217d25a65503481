// Languages, time zones, drill-down, comparison, paper.
import { personName } from '../src/data/batch';
import { count, lastDays, plusDays, query, tally, today } from './expected';
import { fetchBatches, serve } from './service';
import { batchCount, button, chart, drawn, expect, expectRows, goSignedIn, grid, heading, link, loaded, openSignedIn, region, test, warnings, type Page } from './test';

test('every key figure leads to the batches behind it', async ({ page, demo }) => {
  const all = await fetchBatches(demo, lastDays(90));
  await openSignedIn(page, demo);
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

test('a crop in a chart leads to its batches, and keeps its colour in another period', async ({ page, demo }) => {
  const [crop, batches] = tally(await fetchBatches(demo, lastDays(90)), 'crop_type')[0]!;
  await openSignedIn(page, demo);
  const trend = chart(page, 'rates-by-crop').getByRole('listitem').filter({ has: link(page, crop) });
  const colour = (): Promise<string> => trend.locator('svg path').first().evaluate((path) => getComputedStyle(path).fill);
  const before = await colour();
  await button(page, 'Last 365 days').click();
  await loaded(page);
  if (await trend.isVisible()) expect(await colour()).toBe(before);
  await button(page, 'Last 90 days').click();
  await loaded(page);
  await expect(page.getByText('Comparing with the last 365 days')).toHaveCount(0);
  await trend.getByRole('link', { name: crop, exact: true }).click();
  await expectRows(page, batches);
});

test('all unusual batches can be shown, also the worst first', async ({ page, demo }) => {
  await openSignedIn(page, demo, `/${query(lastDays(360))}`);
  const section = region(page, 'Unusual batches');
  await expect(section.getByRole('listitem')).toHaveCount(6);
  const [, total] = /Show all (\d+)/.exec((await section.textContent())!)!;
  await button(page, `Show all ${total}`).click();
  await section.getByText('Worst first').click();
  await expect(section.getByRole('listitem')).toHaveCount(Number(total));
  // How far all values of a batch are outside their ranges; a variation counts a tenth.
  const outside = (text: string): number =>
    [...text.matchAll(/(Only|by) ([\d.]+)%[^(.]*\(usual range: (\d+)% to (\d+)%\)/g)].reduce(
      (sum, [, kind, value, low, high]) => sum + (kind === 'Only' ? Number(low) - Number(value) : (Number(value) - Number(high)) / 10),
      0,
    );
  const texts = await section.locator('li > .why').allTextContents();
  const weights = texts.filter((text) => !text.includes('Nothing')).map((text) => Number(outside(text).toFixed(3)));
  expect(weights[0]).toBeGreaterThan(1);
  // The texts have whole percents, the order is exact.
  for (const [at, weight] of weights.slice(1).entries()) expect(weight).toBeLessThan(weights[at]! + 2.1);

  const last = section.getByRole('listitem').last().getByRole('link');
  const name = (await last.textContent())!;
  await last.click();
  await expect(heading(page, name)).toBeVisible();
  await page.goBack();
  await expect(last).toHaveText(name);
});

test('a batch has a way back to the screen where it was opened', async ({ page, demo }) => {
  await openSignedIn(page, demo);
  await region(page, 'Unusual batches').getByRole('listitem').first().getByRole('link').click();
  await link(page, 'Back to overview').click();
  await expect(heading(page, 'Overview')).toBeVisible();
  await link(page, 'Batches').click();
  await grid(page).getByRole('link').first().click();
  await page.getByRole('link', { name: /^Back to [\d,]+ batches$/ }).click();
  await expect(heading(page, 'Batches')).toBeVisible();
});

test('the week so far is marked, and not compared with whole weeks', async ({ page }) => {
  // A Wednesday. Whole weeks have 90% and 92%, this week 50%.
  const batches = ([['2026-02-24', '90.00'], ['2026-03-04', '92.00'], ['2026-03-10', '50.00']] as const).map(
    ([day, rate]) => ({ batch_id: day, batch_creation_date: `${day}T08:00:00Z`, avg_germination_rate: rate }),
  );
  const service = await serve('Weeks', batches);
  await page.clock.install({ time: '2026-03-11T12:00:00Z' });
  await openSignedIn(page, service);
  const panel = page.getByRole('region', { name: 'Germination rate over time', exact: true }).first();
  await expect(panel).toContainText('Highest in the week of 2 Mar 2026, W10 (92.0%), lowest in the week of 23 Feb 2026, W9 (90.0%).');
  await expect(panel).toContainText('This week so far: 50.0%.');
  await drawn(page);
  const { width, height } = (await chart(page, 'rates').boundingBox())!;
  await chart(page, 'rates').hover({ position: { x: width - 15, y: height / 2 } });
  await expect(panel.locator('[data-chart="rates"]')).toContainText('This week so far');
});

test('two crops, two people and two years are compared, and the choice is in the URL', async ({ page, demo }) => {
  // The demo has no batches before the last year, which starts at this time of day.
  const period = lastDays(90, plusDays(today(), -2));
  const [[first], [second]] = tally(await fetchBatches(demo, period), 'crop_type') as [[string, number], [string, number]];
  await openSignedIn(page, demo, `/${query(period)}`);
  const panel = region(page, 'Compare').first();
  await expect(panel).toContainText(first);
  await expect(panel).toContainText(second);
  await drawn(page, 'comparison');
  await panel.getByText('A year earlier').click();
  await expect(panel).toContainText('No batches in the same period a year earlier.');
  expect(new URL(page.url()).searchParams.get('compare')).toBe('year');
  await panel.getByText('Two people').click();
  const [[email, batches]] = tally(await fetchBatches(demo, period), 'scanned_by_email') as [[string, number]];
  const row = panel.getByRole('row').filter({ hasText: personName(email) });
  await expect(row).toContainText(new RegExp(`[\\d.]+%, (as usual|[\\d.]+ points (above|below) usual)\\s*${batches}\\s*\\d`));
  await panel.getByLabel('Second').selectOption({ index: 2 });
  await expect.poll(() => new URL(page.url()).searchParams.getAll('with').length).toBe(2);
  await page.reload();
  await loaded(page);
  await expect(panel.getByText('Two people')).toBeVisible();
  await expect(panel.getByLabel('Second')).not.toHaveValue('');
});

test('the crop that is shown is compared with the most frequent other', async ({ page, demo }) => {
  const crops = tally(await fetchBatches(demo, lastDays(90)), 'crop_type').map(([crop]) => crop);
  const [first, , third] = crops as [string, string, string];
  await openSignedIn(page, demo, `/?crop=${encodeURIComponent(third)}`);
  const panel = region(page, 'Compare').first();
  await expect(panel.getByLabel('First')).toHaveValue(third);
  await expect(panel.getByLabel('Second')).toHaveValue(first);
});

test('a comparison is of two different things, and people with different crops can be compared', async ({ page }) => {
  const groups = [
    ['anna', 'Leek', 30, '80.00'],
    ['anna', 'Tomato', 30, '95.00'],
    ['ben', 'Leek', 10, '82.00'],
    ['carl', 'Tomato', 10, '91.00'],
  ] as const;
  const batches = groups.flatMap(([scanned_by_email, crop_type, n, avg_germination_rate], group) =>
    Array.from({ length: n }, (_, at) => ({
      batch_id: `${scanned_by_email} ${crop_type} ${at}`,
      batch_creation_date: `${plusDays(today(), -2 - group - at)}T08:00:00Z`,
      scanned_by_email,
      crop_type,
      avg_germination_rate,
    })),
  );
  const service = await serve('Two', batches);
  await openSignedIn(page, service, '/?compare=crop&with=Leek&with=Leek');
  const panel = region(page, 'Compare').first();
  await expect(panel.getByLabel('First')).toHaveValue('Leek');
  await expect(panel.getByLabel('Second')).not.toHaveValue('Leek');
  await expect(panel.getByLabel('Second').getByRole('option', { name: 'Leek' })).toHaveCount(0);
  await panel.getByText('Two people').click();
  await panel.getByLabel('Second').selectOption('carl');
  await panel.getByLabel('First').selectOption('ben');
  await expect(panel).toContainText(
    'Better: ben, by 4.5 points, compared with what is usual for the crops. ben: 82.0%, 1.5 points above usual. carl: 91.0%, 3.0 points below usual.',
  );
  // With one crop, the lines are the rates.
  await openSignedIn(page, service, '/?crop=Leek&compare=person&with=anna&with=ben');
  await panel.getByText('Show as table').click();
  await expect(panel.getByRole('row', { name: /80\.0% 82\.0%$/ }).first()).toBeVisible();
});

test('the newest unusual batches come first, they can be shown as a table, and a small chart shows only its crop', async ({
  page,
  demo,
}) => {
  await openSignedIn(page, demo);
  const unusual = region(page, 'Unusual batches');
  const total = Number(/\d+/.exec(await unusual.getByRole('button', { name: /Show all/ }).innerText())![0]);
  await unusual.getByRole('button', { name: /Show all/ }).click();
  await expect(unusual.getByRole('listitem')).toHaveCount(total);
  const time = new Map((await fetchBatches(demo, lastDays(90))).map((batch) => [batch.batch_id, batch.batch_creation_date]));
  const hrefs = await unusual.getByRole('listitem').getByRole('link').evaluateAll((all) => all.map((a) => (a as HTMLAnchorElement).pathname));
  const times = hrefs.map((path) => time.get(path.replace('/batches/', ''))!);
  expect(times).toEqual([...times].sort().reverse());
  await link(page, 'Show in table').click();
  await expectRows(page, total);
  for (const name of ['Scanned by', 'Comment']) await expect(grid(page).getByRole('columnheader', { name })).toBeVisible();

  await link(page, 'Overview').click();
  await page.locator('[data-chart="rates-by-crop"]').getByRole('listitem').first().getByRole('img').click();
  await expect(page.locator('[data-chart="rates-by-crop"]')).toHaveCount(0);
  await expect(page.getByRole('img', { name: /Usual from \d+%\. Usual [\d.]+%\. Usual up to \d+%\.$/ })).toBeInViewport();
  expect(new URL(page.url()).searchParams.getAll('crop')).toHaveLength(1);
});

test('a crop that got worse is named with the same start in every period', async ({ page }) => {
  const monday = plusDays(today(), -((new Date(today()).getUTCDay() + 6) % 7));
  const batches = Array.from({ length: 40 }, (_, week) => ({
    batch_id: `leek ${week}`,
    batch_creation_date: `${plusDays(monday, -7 * (week + 1))}T12:00:00Z`,
    crop_type: 'Leek',
    avg_germination_rate: week < 6 ? '88.00' : `${94 + (week % 3)}.00`,
  }));
  const service = await serve('Slow', batches);
  await openSignedIn(page, service);
  const link = page.getByRole('link', { name: /^Leek: germination rate 88\.0% since the week of .*: [\d.]+ points below usual \([\d.]+%\)\.$/ });
  const sentence = await link.textContent();
  for (const preset of ['Last week', 'Last 30 days', 'Last 365 days']) {
    await button(page, preset).click();
    await expect(link).toHaveText(sentence!);
  }
  await button(page, 'Last week').click();
  await link.click();
  // From before the decline until today.
  expect(new URL(page.url()).search).toMatch(new RegExp(`^\\?from=[\\d-]+&to=${today()}&crop=Leek$`));
  await expect(region(page, 'Leek: Germination rate over time').getByRole('img')).toBeInViewport({ ratio: 1 });
});

test('batches that are not compared, such as those without a crop, are one click away', async ({ page, demo }) => {
  const without = (await fetchBatches(demo, lastDays(90))).filter(({ crop_type }) => crop_type === null);
  await openSignedIn(page, demo);
  await region(page, 'Unusual batches').getByRole('link', { name: /^\d+ batch(es)?$/ }).click();
  await expect(heading(page, 'Batches')).toBeVisible();
  expect(new URL(page.url()).searchParams.getAll('crop')).toContain('');
  await goSignedIn(page, demo, '/batches?crop=');
  await expectRows(page, without.length);
});

test('a search shows how many more batches match in the last 365 days', async ({ page, demo }) => {
  const [batch] = await fetchBatches(demo, lastDays(30));
  const found = (await fetchBatches(demo, lastDays(365))).filter(({ crop_type }) => crop_type === batch!.crop_type);
  await openSignedIn(page, demo, `/batches?window=30d&q=${batch!.crop_type}`);
  await button(page, `Search last 365 days (${found.length} batches)`).click();
  await expectRows(page, found.length);
});

test('the usual range is the same in any period, in the list and on the page of a batch', async ({ page, demo }) => {
  const unusual = region(page, 'Unusual batches');
  const compared = region(page, 'Compared with other batches of this crop');
  const seen = new Set<string>();
  const id = (await fetchBatches(demo, lastDays(20))).find(({ crop_type }) => crop_type !== null)!.batch_id;
  for (const days of [30, 90, 400]) {
    await openSignedIn(page, demo, `/${query(lastDays(days))}`);
    await expect(unusual).toContainText('in the last 365 days.');
    const first = unusual.getByRole('listitem').filter({ hasText: 'usual range: ' }).first();
    const [, low, high] = /usual range: (\d+)% to (\d+)%/.exec((await first.textContent())!)!;
    await first.getByRole('link').click();
    await expect(compared).toContainText('in the last 365 days.');
    await expect(compared).toContainText(`usual range (${low}% to ${high}%)`);
    await goSignedIn(page, demo, `/batches/${id}${query(lastDays(days))}`);
    await expect(compared).toContainText('in the last 365 days.');
    seen.add((await compared.textContent())!);
  }
  expect(seen.size).toBe(1);
});

test('print has all charts, in light colours', async ({ page, demo }) => {
  await page.emulateMedia({ colorScheme: 'dark' });
  await openSignedIn(page, demo);
  // The charts were never scrolled into view.
  await page.waitForLoadState('networkidle');
  const unusual = region(page, 'Unusual batches');
  const total = Number(/\d+/.exec(await unusual.getByRole('button', { name: /Show all/ }).innerText())![0]);
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'light');
  await expect(unusual.getByRole('listitem')).toHaveCount(total);
  for (const name of ['rates', 'comparison', 'distribution', 'uniformity', 'activity']) {
    const isDrawn = await chart(page, name).locator('canvas').evaluate((canvas: HTMLCanvasElement) => {
      const blank = Object.assign(document.createElement('canvas'), { width: canvas.width, height: canvas.height });
      return canvas.toDataURL() !== blank.toDataURL();
    });
    expect(isDrawn, name).toBe(true);
  }
  await page.emulateMedia({ media: 'print' });
  await expect(page.getByRole('search')).toBeHidden();
  await expect(button(page, 'Export')).toBeHidden();
});

test('a printed table has all batches, with the names of its columns', async ({ page, demo }) => {
  const { length } = await fetchBatches(demo, lastDays(90));
  await openSignedIn(page, demo, '/batches');
  await page.emulateMedia({ media: 'print' });
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  await expect(page.getByRole('grid').getByRole('row')).toHaveCount(length + 1);
  await expect(page.getByRole('columnheader', { name: 'Germination rate' })).toBeVisible();
  await expect(page.getByText(`${count(length)} of ${count(length)} batches`)).toBeVisible();
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
  await expect.poll(() => page.getByRole('grid').getByRole('row').count()).toBeLessThan(60);
});

test('a batch is printed on one page', async ({ page, demo }) => {
  const [batch] = await fetchBatches(demo, lastDays(30));
  await goSignedIn(page, demo, `/batches/${batch!.batch_id}`);
  await expect(page.getByText('in the last 365 days')).toBeVisible();
  const margin = { top: '1cm', right: '1cm', bottom: '1cm', left: '1cm' };
  expect((await page.pdf({ format: 'A4', margin })).toString('latin1')).toContain('/Count 1\n');
});

test('a weak batch is found on its own day, compared with earlier ones', async ({ page }) => {
  const batch = (at: number, day: string, rate: string) => ({
    batch_id: `b${at}`,
    batch_name: `Tray ${at}`,
    batch_creation_date: `${day}T08:00:00Z`,
    crop_type: 'Tomato',
    avg_germination_rate: rate,
  });
  const before = Array.from({ length: 30 }, (_, at) => batch(at, plusDays(today(), -40 - at), `${90 + (at % 8)}.00`));
  const batches = [...before, batch(99, today(), '61.00')];
  const service = await serve('Weak', batches);
  await openSignedIn(page, service);
  const recent = page.getByText(/^Since (yesterday|Friday): 1 batch, 1 unusual: Tray 99$/);
  await expect(recent).toBeVisible();
  for (const other of ['Last year', 'Today']) {
    await button(page, other).click();
    await expect(recent).toBeHidden();
  }
  const row = page.getByRole('region', { name: 'Batches', exact: true }).getByRole('row').filter({ hasText: 'Tray 99' });
  await expect(row).toHaveText(/Tray 99\s*Today, 08:00, Tomato\s*61%\s*Below the usual range \(86% to 97%\)\s*–/);
  await expect(page.locator('[data-chart]')).toHaveCount(1);
  await expect(row.getByRole('link')).toHaveAttribute('href', /^\/batches\/b99\?/);
  const unusual = region(page, 'Unusual batches');
  await expect(unusual).toContainText('Only 61% germinated (usual range: 86% to 97%).');

  await link(page, 'Batches').click();
  await expect(grid(page).getByRole('row').filter({ hasText: 'Tray 99' })).toContainText('61% ▼ usual 86–97%');
  await button(page, 'Last 90 days').click();
  await expectRows(page, batches.length);
  await warnings(page).selectOption('Unusual');
  await expectRows(page, 1);
  await page.setViewportSize({ width: 390, height: 844 });
  await expect(page.getByRole('main').getByRole('listitem')).toContainText('Unusual: ▼ Germination');
});

test('an Excel file can be saved, which closes the menu', async ({ page, demo }) => {
  await openSignedIn(page, demo);
  const pending = page.waitForEvent('download');
  await button(page, 'Export').click();
  await button(page, 'Excel file').click();
  expect((await pending).suggestedFilename()).toBe(`batches-${lastDays(90).from}-to-${today()}.xlsx`);
  await expect(button(page, 'Excel file')).toBeHidden();
});

test.describe('in Auckland', () => {
  test.use({ timezoneId: 'Pacific/Auckland' });

  test('days and times are local, and UTC is one click away', async ({ page }) => {
    // 11:30 in UTC on the day before is after midnight in Auckland, in summer and in winter.
    const day = plusDays(today(), -3);
    const service = await serve('Far', [{ batch_id: 'a', batch_creation_date: `${day}T13:30:00Z` }]);
    await openSignedIn(page, service, `/${query({ from: day, to: day })}`);
    await expect(page.getByText('No batches in this period')).toBeVisible();
    await openSignedIn(page, service, `/${query({ from: plusDays(day, 1), to: plusDays(day, 1) })}`);
    await expect.poll(() => batchCount(page)).toBe(1);
    await expect(page.getByRole('contentinfo')).toContainText(/Pacific\/Auckland \(UTC\+1[23]\)/);
    await button(page, 'Show UTC').click();
    await expect(page.getByRole('contentinfo')).toContainText('Dates and times in UTC.');
    await expect(page.getByText('No batches in this period')).toBeVisible();
  });
});

test.describe('in German', () => {
  test.use({ locale: 'de-DE' });

  test('texts, numbers, dates and files are German, and the language can be changed', async ({ page, demo }) => {
    const { length } = await fetchBatches(demo, lastDays(365));
    await openGerman(page, demo.link);
    await button(page, '365 Tage').click();
    await expect.poll(() => germanKeyFigure(page, 'Chargen')).toBe(new Intl.NumberFormat('de-DE').format(length));
    await expect(page.locator('html')).toHaveAttribute('lang', 'de');
    await button(page, 'English').click();
    await expect(heading(page, 'Overview')).toBeVisible();
    await expect(page.locator('html')).toHaveAttribute('lang', 'en');
    await expect.poll(() => batchCount(page)).toBe(length);
    expect(count(length)).toContain(',');
  });
});

async function openGerman(page: Page, link: string): Promise<void> {
  await page.goto(link);
  await expect(heading(page, 'Übersicht')).toBeVisible();
  await expect(button(page, 'Aktualisieren')).toBeVisible();
}

async function germanKeyFigure(page: Page, label: string): Promise<string | null> {
  return region(page, 'Kennzahlen').locator('dl > div').filter({ hasText: label }).locator('.value').first().textContent();
}

test.describe('a page that does not exist', () => {
  test.use({ allowedErrors: /404/ });

  test('an unknown path is a page with a way back, for people', async ({ page, demo }) => {
    const response = await page.goto(`${demo.url}/nowhere`);
    expect(response!.status()).toBe(404);
    await expect(page.getByRole('heading', { name: 'Page not found' })).toBeVisible();
    await link(page, 'Go to the overview').click();
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
