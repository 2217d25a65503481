import { count, expectFigures, lastDays, matches, tally, today } from './expected';
import { fetchBatches, serve } from './service';
import {
  batchCount,
  button,
  choosePreset,
  expect,
  expectRows,
  field,
  grid,
  heading,
  keyFigures,
  link,
  loaded,
  message,
  openMenu,
  openSignedIn,
  test,
  warnings,
  type Page,
} from './test';

async function select(page: Page, menu: 'Crop' | 'Scanned by', [name, batches]: [string, number]): Promise<void> {
  const panel = await openMenu(page, menu);
  const option = panel.getByRole('listitem').filter({ has: page.getByTitle(name, { exact: true }) });
  await expect(option).toHaveText(new RegExp(`${count(batches)}\\s*$`));
  await option.getByRole('checkbox').check();
  await page.keyboard.press('Escape');
  await expect(panel).toBeHidden();
}

test('crop, warnings, person and text filter the batches', async ({ page, demo }) => {
  const all = await fetchBatches(demo, lastDays(90));
  const crop = tally(all, 'crop_type')[0]!;
  const person = tally(all, 'scanned_by_email')[0]!;
  await openSignedIn(page, demo, '/analysis');
  await expectFigures(page, all);

  await select(page, 'Crop', crop);
  await expectFigures(page, all.filter((batch) => batch.crop_type === crop[0]));
  await button(page, 'Clear filters').click();

  for (const option of ['with', 'without']) {
    await warnings(page).selectOption(option);
    await expectFigures(page, all.filter((batch) => batch.warnings === (option === 'with')));
  }
  await button(page, 'Clear filters').click();

  await select(page, 'Scanned by', person);
  await expectFigures(page, all.filter((batch) => batch.scanned_by_email === person[0]));
  await button(page, 'Clear filters').click();

  // The dashboard shows the name in the address; both are found.
  for (const text of [person[0], person[0].split('@')[0]!.replace('.', ' ')]) {
    await field(page, 'Search').fill(text);
    await expectFigures(page, all.filter((batch) => batch.scanned_by_email === person[0]));
  }
  await button(page, 'Clear filters').click();

  await field(page, 'Search').fill('BENCH 1');
  await expectFigures(page, all.filter((batch) => matches(batch, /\bbench 1\b/i)));
  await button(page, 'Clear filters').click();
  await expectFigures(page, all);
});

test('filters combine, and a copied URL shows the same', async ({ page, context, demo }) => {
  const all = await fetchBatches(demo, lastDays(90));
  const [first, second] = tally(all, 'crop_type') as [[string, number], [string, number]];
  const matching = all.filter(
    (batch) => [first[0], second[0]].includes(batch.crop_type ?? '') && !batch.warnings && matches(batch, /bench/i),
  );
  await openSignedIn(page, demo, '/analysis');
  await select(page, 'Crop', first);
  await select(page, 'Crop', second);
  await warnings(page).selectOption('without');
  await field(page, 'Search').fill('bench');
  await expectFigures(page, matching);
  const parameters = `window=90d&crop=${first[0]}&crop=${second[0]}&warnings=without&q=bench`;
  await expect.poll(() => new URL(page.url()).search).toBe(`?${new URLSearchParams(parameters)}`);

  const copy = await context.newPage();
  await openSignedIn(copy, demo, new URL(page.url()).pathname + new URL(page.url()).search);
  await expectFigures(copy, matching);
  expect(copy.url()).toBe(page.url());
  await expect(field(copy, 'Search')).toHaveValue('bench');
  await expect(async () => expect(await keyFigures(copy)).toEqual(await keyFigures(page))).toPass();
  await link(copy, 'Batches').click();
  await expectRows(copy, matching.length);
});

test('sort and columns are in the URL', async ({ page, context, demo }) => {
  await openSignedIn(page, demo, '/batches');
  await button(page, 'Germination rate').click();
  const columns = await openMenu(page, 'Columns');
  await columns.getByLabel('Comment').check();
  await columns.getByLabel('Images').uncheck();
  await page.keyboard.press('Escape');
  const copy = await context.newPage();
  await openSignedIn(copy, demo, new URL(page.url()).pathname + new URL(page.url()).search);
  const texts = (page: Page): Promise<string[]> =>
    grid(page)
      .getByRole('row')
      .evaluateAll((rows) => rows.slice(0, 10).map((row) => row.textContent));
  // The usual ranges come a moment later.
  await expect(async () => expect(await texts(copy)).toEqual(await texts(page))).toPass();
  await expect(copy.getByRole('columnheader', { name: 'Comment' })).toBeVisible();
  await expect(copy.getByRole('columnheader', { name: 'Images' })).toHaveCount(0);
  const sorted = copy.getByRole('columnheader', { name: 'Germination rate' });
  await expect(sorted).toHaveAttribute('aria-sort', 'ascending');
});

test('the filter has crops that are not in the period', async ({ page, demo }) => {
  const crops = tally(await fetchBatches(demo, lastDays(365)), 'crop_type');
  await openSignedIn(page, demo, '/batches?window=1d');
  const options = (await openMenu(page, 'Crop')).getByRole('checkbox');
  await expect.poll(() => options.count()).toBeGreaterThanOrEqual(crops.length);
});

test('a click outside an open menu closes it', async ({ page, demo }) => {
  await openSignedIn(page, demo, '/batches');
  const panel = await openMenu(page, 'Columns');
  await heading(page, 'Batches').click();
  await expect(panel).toBeHidden();
});

test('back and forward restore periods, filters and screens', async ({ page, demo }) => {
  const month = await fetchBatches(demo, lastDays(30));
  const warned = month.filter((batch) => batch.warnings);
  await openSignedIn(page, demo, '/analysis');
  const initial = await batchCount(page);
  await choosePreset(page, '30 days');
  await warnings(page).selectOption('with');
  await expectFigures(page, warned);
  await link(page, 'Batches').click();
  await expect(heading(page, 'Batches')).toBeVisible();
  await expectRows(page, warned.length);

  await page.goBack();
  await expect(heading(page, 'Analysis')).toBeVisible();
  await expectFigures(page, warned);
  await page.goBack();
  await expectFigures(page, month);
  await expect(warnings(page)).toHaveValue('all');
  await page.goBack();
  await expect.poll(() => batchCount(page)).toBe(initial);
  for (let step = 0; step < 3; step++) await page.goForward();
  await expect(heading(page, 'Batches')).toBeVisible();
  await expectRows(page, warned.length);
});

test('a date is found, in a longer period if wanted', async ({ page, demo }) => {
  const { batch_creation_date: old } = (await fetchBatches(demo, lastDays(200)))[0]!;
  const day = old.slice(0, 10);
  const matching = await fetchBatches(demo, { from: day, to: day });
  await openSignedIn(page, demo, '/analysis');
  const format = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });
  await field(page, 'Search').fill(format.format(new Date(day)));
  await expect(message(page, 'No matches for “')).toBeVisible();
  await page.getByRole('button', { name: `Search last 365 days (${matching.length} batch` }).click();
  await loaded(page);
  await expectFigures(page, matching);
});

test('a search with a typing mistake offers the right word, and comments are shown', async ({ page, demo }) => {
  const year = await fetchBatches(demo, lastDays(365));
  const [crop] = tally(year, 'crop_type')[0]!;
  const [word] = /\p{L}{5,}/u.exec(crop)!;
  const typed = `${word.slice(0, 2)}x${word.slice(3)}`;
  await openSignedIn(page, demo, `/batches?window=365d&q=${typed}`);
  await button(page, `Did you mean “${word}”?`).click();
  await expect(field(page, 'Search')).toHaveValue(word);
  await expectRows(page, year.filter((batch) => matches(batch, new RegExp(word, 'i'))).length);
  await expect(page.getByRole('columnheader', { name: 'Comment' })).toBeVisible();
});

test('filters without a match are reported and can be cleared', async ({ page, demo }) => {
  await openSignedIn(page, demo, '/analysis?q=no-batch-has-this-text');
  await expect(message(page, 'No matches for “')).toBeVisible();
  await button(page, 'Clear filters').first().click();
  await loaded(page);
  await expectFigures(page, await fetchBatches(demo, lastDays(90)));
});

test('a bookmark of the unusual batches of a day without any is reported as empty', async ({ page, demo }) => {
  await openSignedIn(page, demo, '/batches');
  for (const window of ['7d', '1d']) {
    await page.goto(`${demo.url}/batches?window=${window}&warnings=unusual`);
    await expect(page.getByText('Comparing with the last 365 days…')).toBeHidden();
    await expect(message(page, 'No batches').or(grid(page))).toBeVisible();
  }
});

test('batches not seen yet or with a note are found, and the numbers in a filter follow the other filters', async ({ page }) => {
  const batches = ['Leek', 'Leek', 'Basil'].map((crop_type, at) => ({
    ...{ batch_id: `b${at}`, batch_name: `Tray ${at}`, crop_type, batch_creation_date: `${today()}T00:00:0${at}Z` },
    avg_germination_rate: at === 1 ? '94.00' : '20.00',
  }));
  await openSignedIn(page, await serve('Seen', batches));
  await button(page, 'Mark as seen: Tray 0').click();
  await button(page, 'Add a note: Tray 2').click();
  await page.keyboard.type('resown on Monday');
  await page.keyboard.press('Enter');
  await link(page, 'Batches').click();
  for (const [shown, rows] of [['Unusual', 2], ['Not seen yet', 1], ['With a note', 1], ['All batches', 3]] as const) {
    await warnings(page).selectOption(shown);
    await expectRows(page, rows);
  }
  await field(page, 'Search').fill('resown');
  await expectRows(page, 1);
  await expect((await openMenu(page, 'Crop')).getByRole('listitem')).toHaveText([/Basil\s*1/, /Leek\s*0/]);
});

test('batches slightly below the usual range are found', async ({ page }) => {
  // By hand: the middle 80 % are 82 to 98.
  const batches = Array.from({ length: 21 }, (_, at) => ({ batch_id: `b${at}`, crop_type: 'Leek', batch_creation_date: `${today()}T00:00:00Z`, avg_germination_rate: `${80 + at}.00` }));
  await openSignedIn(page, await serve('Below', batches), '/batches');
  await warnings(page).selectOption('Below usual range');
  await expectRows(page, 2);
});
