// The start page.
import { readFileSync } from 'node:fs';
import type { Batch } from '../src/data/batch';
import { plusDays, today } from './expected';
import { nursery } from './nursery';
import { Database, serve } from './service';
import type { Locator } from '@playwright/test';
import { button, cards, chart, expect, expectRows, goSignedIn, heading, link, message, openSignedIn, region, test } from './test';

/** Thirty usual batches of 90 to 97 %, and some of today. By hand: their middle 80 % are 90 to 96. */
const morning = (...batches: Partial<Batch>[]): Partial<Batch>[] => {
  const usual = Array.from({ length: 30 }, (_, at) => ({
    batch_id: `usual ${at}`,
    batch_name: `Usual ${at}`,
    batch_creation_date: `${plusDays(today(), -10 - at)}T08:00:00Z`,
    crop_type: 'Tomato',
    avg_germination_rate: `${90 + (at % 8)}.00`,
  }));
  const late = batches.map((batch, at) => ({
    batch_id: `new ${at}`,
    batch_name: `Tray ${at}`,
    batch_creation_date: `${today()}T00:00:0${at}Z`,
    crop_type: 'Tomato',
    avg_germination_rate: '94.00',
    ...batch,
  }));
  return [...usual, ...late];
};
const failed = { avg_germination_rate: '41.00', comment: 'Bench 11: heating off' };

test('a good morning is green, in one line', async ({ page }) => {
  await openSignedIn(page, await serve('Good', morning({}, {})));
  const verdict = message(page, '2 batches, all as usual');
  await expect(verdict).toBeVisible();
  expect(await verdict.evaluate((node) => getComputedStyle(node).color)).toBe('rgb(42, 115, 57)');
  await expect(cards(page)).toHaveCount(0);
});

test.describe('on a phone', () => {
  test.use({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });

  test('a failed batch is on the first screen with its rate, in the alarm colour, as soon as its data is there', async ({ page }) => {
    const database = new Database();
    const service = await database.serve(database.addOrganisation('Bad', morning({})));
    await page.clock.install();
    await openSignedIn(page, service);
    await expect(message(page, '1 batch, as usual')).toBeVisible();
    const failure = morning({}, failed).at(-1)!;
    database.importBatches('Bad', [failure]);
    const received = page.waitForResponse(async (response) => /v2.batches/.test(response.url()) && (await response.text()).includes('new 1'));
    await page.clock.runFor(61_000);
    await received;
    // One second of the page's clock.
    await page.clock.runFor(1_000);
    await expect(message(page, '1 of 2 batches needs a look')).toBeInViewport();
    const rate = cards(page).first().getByText('41%', { exact: true });
    await expect(rate).toBeInViewport({ ratio: 1 });
    expect(await rate.evaluate((node) => getComputedStyle(node).color)).toBe('rgb(179, 23, 15)');
    await expect(cards(page).first()).toBeInViewport({ ratio: 1 });
    await expect(cards(page).first()).toHaveText(/41% germinated, 49 points below the usual 90–\u206096%.*Tray 1.*Today, \d\d:00, Tomato.*Bench 11: heating off/s);
  });

  test('a normal morning has at most 120 words and two screens', async ({ page }) => {
    await openSignedIn(page, await serve('Normal', nursery('good')));
    await expect(region(page, 'Germination, last four weeks')).toBeVisible();
    expect((await page.locator('body').innerText()).trim().split(/\s+/).length).toBeLessThanOrEqual(120);
    expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBeLessThanOrEqual(2 * 844);
  });
});

test('the picture has a row for each crop, and a click on a dot opens its batch', async ({ page }) => {
  await openSignedIn(page, await serve('Picture', morning({}, { ...failed, crop_type: 'Leek' }, failed)));
  await expect(chart(page, 'crop')).toHaveCount(2);
  const dot = chart(page, 'crop').getByRole('link', { name: 'Tray 2, 41%' });
  await expect(dot).toContainText('41%');
  await dot.click();
  await expect(heading(page, 'Tray 2')).toBeVisible();
  await link(page, 'Back to today').click();
  await expect(message(page, '2 of 3 batches need a look')).toBeVisible();
  // The last usual batch is that of today.
  const row = chart(page, 'crop').last().locator('svg');
  const [x, y] = /M([\d.]+) ([\d.]+)h0$/.exec((await row.locator('path[d$=h0]').last().getAttribute('d'))!)!.slice(1).map(Number);
  await row.click({ position: { x: x!, y: y! } });
  await expect(heading(page, 'Tray 0')).toBeVisible();
});

test('an unusual batch can be marked as seen, for all, and shown again, also after a reload', async ({ page, browser }) => {
  const service = await serve('Seen', morning({}, failed, { avg_germination_rate: '60.00' }));
  await openSignedIn(page, service);
  await expect(cards(page)).toHaveCount(2);
  const { x, y } = (await button(page, 'Mark as seen: Tray 1').boundingBox())!;
  // A double tap is not a tap on the next card, which moves there.
  for (const at of [x + 5, x + 6]) await page.mouse.click(at, y + 5);
  await expect(message(page, '1 of 3 batches needs a look')).toBeVisible();
  await expect(page.getByText('Tray 1, seen: 41%')).toBeVisible();
  await button(page, 'Mark as seen: Tray 2').click();
  await expect(message(page, '2 unusual batches, all seen')).toBeVisible();
  await goSignedIn(page, service, '/');
  await expect(message(page, '2 unusual batches, all seen')).toBeVisible();
  const list = region(page, 'New batches').getByRole('listitem');
  await expect(list).toHaveText([/Tray 2\s*✓\s*60%/, /Tray 1\s*✓\s*41%/, /Tray 0\s*94%/]);
  await expect(list.getByRole('img', { name: 'Seen' })).toHaveCount(2);
  await expect(list.getByText('41%')).toHaveCSS('color', 'rgb(27, 35, 30)');
  const picture = region(page, 'Germination, last four weeks');
  await expect(picture.getByText('Seen', { exact: true })).toBeVisible();
  // A ring: the colour of the page inside.
  await expect(picture.getByRole('link', { name: 'Tray 1, 41%' }).locator('circle:not(.touch)')).toHaveCSS('fill', 'rgb(251, 250, 246)');
  const colleague = await browser.newPage();
  await openSignedIn(colleague, service);
  await expect(message(colleague, '2 unusual batches, all seen')).toBeVisible();
  await link(colleague, 'Batches').click();
  await expect(colleague.getByRole('gridcell', { name: /^41%/ })).toHaveText(/^41%\s*✓/);
  const download = colleague.waitForEvent('download');
  await button(colleague, 'Export').click();
  await button(colleague, 'CSV file').click();
  const csv = readFileSync(await (await download).path(), 'utf8');
  expect(csv.match(/"Seen by Anna, /g)).toHaveLength(2);
  expect(csv.match(/,Seen,/g), 'only the heading').toHaveLength(1);
  await link(colleague, 'Tray 1').click();
  await expect(colleague.getByText(/^✓ Seen by Anna, \d+ \w+, \d\d:\d\d$/)).toBeVisible();
  await page.getByText('2 marked as seen').click();
  await expect(page.getByRole('group').getByRole('listitem').first()).toHaveText(/60%\s*Tray 2\s*Today, \d\d:00/);
  await button(page, 'Mark as not seen: Tray 1').click();
  await expect(message(page, '1 of 3 batches needs a look')).toBeVisible();
  await expect(page.getByText('Tray 2, seen: 60%')).toBeFocused();
  await button(page, 'Mark as not seen: Tray 2').click();
  await expect(message(page, '2 of 3 batches need a look')).toBeVisible();
  await colleague.reload();
  await expect(button(colleague, 'Mark as seen: Tray 1')).toBeVisible();
  await colleague.close();
});

test('a note and a mark as seen are independent, and all see them', async ({ page, browser }) => {
  const database = new Database();
  const service = await database.serve(database.addOrganisation('Noted', morning({}, failed)));
  await openSignedIn(page, service);
  await expect(page.getByText('Marks and notes are for everyone at Noted.')).toBeVisible();
  await button(page, 'Add a note: Tray 1').click();
  const note = page.getByRole('textbox', { name: 'Note for everyone' });
  await expect(note).toBeFocused();
  // The card is a link, but not below the field.
  await note.click();
  await note.fill(' resown ');
  // It is not lost when another page is opened.
  await link(page, 'Batches').click();
  await link(page, 'Today').click();
  await expect(note).toHaveValue(' resown ');
  await note.press('Enter');
  await expect(button(page, 'Add a note: Tray 1')).toBeFocused();
  const written = /^“resown” – Anna, \d+ \w+, \d\d:\d\d/;
  await expect(cards(page).getByText(written)).toBeVisible();
  await button(page, 'Edit: resown').click();
  await expect(note).toHaveValue('resown');
  await note.fill('resow');
  await button(page, 'Save').click();
  await button(page, 'Edit: resow').click();
  await note.fill('resown');
  await note.press('Enter');
  await expect(cards(page).getByText(written)).toBeVisible();
  await expect(region(page, 'New batches').getByText('Anna: resown')).toBeVisible();
  // With another access: who marked it is not who wrote the note.
  const colleague = await browser.newPage();
  await openSignedIn(colleague, { ...service, ...database.issue('Noted', 'Ben') });
  const said = /^✓ Seen by Ben, \d+ \w+, \d\d:\d\d$/;
  await button(colleague, 'Mark as seen: Tray 1').click();
  // The note stays in sight.
  const line = colleague.getByText(/^Tray 1, seen: 41%: “resown” – Anna, \d+ \w+, \d\d:\d\d$/);
  await line.click();
  await expect(colleague.getByRole('group').getByText(said)).toBeVisible();
  await link(colleague, 'Tray 1').last().click();
  await expect(colleague.getByText(said)).toBeVisible();
  await button(colleague, 'Mark as not seen: Tray 1').click();
  await expect(colleague.getByText(said)).toHaveCount(0);
  await expect(colleague.getByText(written)).toBeVisible();
  await button(colleague, 'Add a note: Tray 1').click();
  await colleague.keyboard.press('Escape');
  await button(colleague, 'Add a note: Tray 1').click();
  await button(colleague, 'Cancel').click();
  await button(colleague, 'Add a note: Tray 1').click();
  await colleague.getByRole('textbox', { name: 'Note for everyone' }).fill('lid was open');
  await button(colleague, 'Save').click();
  // One below the other, also where it is short.
  await expect(colleague.getByText(/^“.+” – /)).toHaveText([written, /^“lid was open” – Ben, \d+ \w+, \d\d:\d\d/]);
  await link(colleague, 'Today').click();
  await expect(region(colleague, 'New batches').getByText('Anna: resown · Ben: lid was open · Bench 11: heating off')).toBeVisible();
  colleague.once('dialog', (dialog) => void dialog.accept());
  await button(colleague, 'Remove: resown').click();
  await expect(button(colleague, 'Add a note: Tray 1')).toBeFocused();
  await expect(colleague.getByText('resown')).toHaveCount(0);
  await link(colleague, 'Batches').click();
  await expect(colleague.getByRole('gridcell', { name: /^41%/ })).not.toHaveText(/✓/);
  await colleague.close();
});

test('several batches of a house are one card, which is seen at once', async ({ page }) => {
  const house = [41, 30, 52].map((rate, at) => ({
    batch_name: `Tray ${at}`,
    crop_type: `Crop ${at}`,
    avg_germination_rate: `${rate - 10}.00`,
    comment: at === 1 ? 'House 3: vents open' : 'In house 3',
  }));
  await openSignedIn(page, await serve('House', morning({}, ...house, failed)));
  await expect(message(page, '4 of 5 batches need a look')).toBeVisible();
  await expect(page.getByText(/3 batches in House 3: 20–\u206042%\. Tray \d+: 41%\./)).toBeVisible();
  const card = cards(page).filter({ hasText: '3 batches in House 3' });
  await expect(card).toHaveText(/20–\u206042% germinated.*“House 3: vents open”.*Tray 1\s*20%.*Tray 0\s*31%.*Tray 2\s*42%/s);
  await button(page, 'Add a note: 3 batches in House 3').click();
  await page.keyboard.type('vents repaired');
  await page.keyboard.press('Enter');
  await button(page, 'Mark all 3 as seen: 3 batches in House 3').click();
  await expect(message(page, '1 of 5 batches needs a look')).toBeVisible();
  const line = page.getByText(/3 batches in House 3, seen: 20–\u206042%: “vents repaired” – Anna/);
  await expect(line).toBeFocused();
  await button(page, 'Undo (3 batches)').click();
  await expect(message(page, '4 of 5 batches need a look')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Undo' })).toHaveCount(0);
  await button(page, 'Mark all 3 as seen: 3 batches in House 3').click();
  await page.reload();
  await line.click();
  await expect(page.getByRole('group').getByRole('listitem').getByRole('link')).toHaveText(['Tray 2', 'Tray 1', 'Tray 0']);
  await button(page, 'Mark as not seen: 3 batches in House 3').click();
  await expect(message(page, '4 of 5 batches need a look')).toBeVisible();
});

test('an earlier batch stays for seven days', async ({ page }) => {
  const ago = (days: number) => ({ ...failed, batch_creation_date: `${plusDays(today(), -days)}T08:00:00Z` });
  await openSignedIn(page, await serve('Earlier', morning(ago(6), ago(7))));
  await expect(message(page, '1 earlier batch needs a look')).toBeVisible();
  await expect(cards(page)).toHaveText(/Tray 0/);
});

const firstDay = (...rates: string[]) => morning(...rates.map((avg_germination_rate) => ({ avg_germination_rate }))).slice(30);

test('on the first day nothing is compared', async ({ page }) => {
  await openSignedIn(page, await serve('First', firstDay('92.00', '81.00', '88.00')));
  await expect(message(page, '3 new batches')).toBeVisible();
  await expect(page.getByText('Not compared yet. After 10 batches of a crop, its usual range is known')).toBeVisible();
});

test('on the first day, a failure is found', async ({ page }) => {
  await openSignedIn(page, await serve('First failure', firstDay('92.00', '41.00', '88.00')));
  await expect(message(page, '1 of 3 batches needs a look')).toBeVisible();
});

test('a batch without a crop is listed as such', async ({ page }) => {
  await openSignedIn(page, await serve('No crop', morning({}, { ...failed, crop_type: null })));
  await expect(cards(page)).toHaveText(/Crop not recorded/);
  await expect(region(page, 'Germination, last four weeks').getByRole('link', { name: 'Crop not recorded' })).toBeVisible();
});

test('a decline is the plain average of four weeks against that of the year', async ({ page }) => {
  const batches = Array.from({ length: 50 }, (_, week) => ({
    batch_id: `leek ${week}`,
    batch_creation_date: `${plusDays(today(), -3 - 5 * week)}T12:00:00Z`,
    crop_type: 'Leek',
    avg_germination_rate: week < 5 ? '90.00' : '94.00',
  }));
  const service = await serve('Slow', batches);
  await openSignedIn(page, service);
  // By hand: five of 90 and 45 of 94 are 93.6 on average, and a tenth of them is 90 + 0.9 × 4.
  await expect(message(page, 'Leek is germinating worse')).toBeVisible();
  await expect(page.getByText('No new batches.')).toBeVisible();
  await expect(page.getByText('90%')).toHaveCount(1);
  await expect(page.getByText('Last 4 weeks on average 90% germinated, the year 94%; 5 of the last 5 batches below the usual range.')).toBeVisible();
  await button(page, 'Add a note: Leek').click();
  await page.keyboard.type('call the supplier');
  await page.keyboard.press('Enter');
  await expect(page.getByText(/^“call the supplier” – Anna, /)).toBeVisible();
  await button(page, 'Mark trend as seen: Leek').click();
  await expect(message(page, 'No new batches')).toBeVisible();
  await page.getByText(/^Leek ↘, seen: “call the supplier” – Anna/).click();
  await button(page, 'Mark as not seen: Leek ↘').click();
  await expect(page.getByText(/^“call the supplier” – Anna, /)).toBeVisible();
  await expect(message(page, 'Leek is germinating worse')).toBeVisible();
  // The first of the five weeks below 91.8, by its Monday.
  await page.getByRole('link', { name: /^↘ Leek dropped in week \d+ \(\d+ \w+\) and is still low\.$/ }).click();
  await expect(page.getByRole('heading', { name: 'Germination rate over time' })).toBeInViewport({ ratio: 1 });
  await expect(chart(page, 'rates').getByText(/^↘ Week \d+, from \d+ \w+$/)).toBeInViewport({ ratio: 1 });
  expect(await page.evaluate(() => scrollY), 'scrolled to the chart').toBeGreaterThan(200);
  const row = region(page, 'Germination rate by crop').getByRole('row', { name: /^Leek/ });
  await expect(row).toContainText(/↘ 90\.0% \([-−]3\.6\)\s*93\.6%/);
  await goSignedIn(page, service, '/batches/leek%200');
  await expect(page.getByRole('link', { name: /^↘ Leek dropped in week \d+ \(.*\) and is still low\.$/ })).toBeVisible();
  await expect(chart(page, 'crop').getByRole('link')).toHaveCount(0);
});

test('a rate that rounds to the end of the scale is not below it', async ({ page }) => {
  await openSignedIn(page, await serve('Edge', morning({ avg_germination_rate: '59.60' })));
  const picture = region(page, 'Germination, last four weeks');
  await expect(picture.getByRole('link', { name: 'Tray 0, 60%' })).toBeVisible();
  await expect(picture.locator('svg a path')).toHaveCount(0);
  await expect(picture).not.toContainText('▼ Below');
  await link(page, 'Analysis').click();
  await expect(chart(page, 'rates').getByRole('link', { name: 'Tray 0, 60%' })).toBeVisible();
  await expect(region(page, 'Germination rate over time')).not.toContainText('▼ Below');
});

test('all batches since yesterday are one click away', async ({ page }) => {
  // A phone lists five.
  await page.setViewportSize({ width: 390, height: 844 });
  await openSignedIn(page, await serve('Recent', morning({}, {}, {}, {}, {}, {}, {})));
  await expect(region(page, 'New batches').getByRole('listitem')).toHaveCount(5);
  await button(page, 'Show all 7').click();
  await expect(region(page, 'New batches').getByRole('listitem')).toHaveCount(7);
});

test('a slash goes to the search', async ({ page, demo }) => {
  await openSignedIn(page, demo);
  await page.keyboard.press('/');
  await expect(heading(page, 'Batches')).toBeVisible();
  await expect(page.getByRole('searchbox')).toBeFocused();
});

test('on a bad night, each batch of a house has its usual range, and failures are no decline', async ({ page }) => {
  await openSignedIn(page, await serve('Many', nursery('many')));
  const card = cards(page).filter({ hasText: '5 batches in House 3' });
  await expect(card.getByRole('listitem').first()).toHaveText(/Basil House 3, bench 2\s*21%, usually 8\d–\u2060\d\d%/);
  await expect(cards(page)).toHaveCount(5);
  const single = cards(page).filter({ hasText: 'Tomato House 8' });
  await expect(single).toContainText('69% germinated, 23 points below the usual 92–\u206096%');
  const last = /5 batches in House 3: 21–\u206045%\. 4 more \(House 5–8\): 51–\u206069%\. Last scan yesterday, \d\d:\d\d\./;
  await expect(page.getByText(last)).toBeVisible();
  await expect(page.getByText('is germinating worse')).toHaveCount(0);
  // Two dots at nearly the same place are one link, to both.
  const both = chart(page, 'crop').first().getByRole('link', { name: '2 batches, 21–\u206051%: Basil House 3, bench 2, 21%; Basil House 5, bench 7, 51%' });
  await expect(both).toHaveText('21–\u206051%');
  await both.click();
  await expectRows(page, 2);
});

test('a failure is red, a slight deviation orange, and an unusual usable rate is marked, wherever the batch is shown', async ({ page }) => {
  const rates = (germination: string, usable: string) => ({ avg_germination_rate: germination, avg_usable_seedling_rate: usable });
  const batches = morning({ comment: 'New substrate' }, rates('41.00', '30.00'), { ...rates('85.00', '80.00'), batch_creation_date: `${plusDays(today(), -1)}T08:00:00Z` }, rates('93.00', '70.00'));
  const usual = batches.slice(0, 30).map((batch) => ({ ...batch, avg_usable_seedling_rate: '85.00' }));
  await openSignedIn(page, await serve('Colours', [...usual, ...batches.slice(30)]));
  const colourOf = (locator: Locator) => locator.evaluate((node) => getComputedStyle(node).color);
  const [red, orange] = ['rgb(179, 23, 15)', 'rgb(168, 74, 8)'];
  const list = region(page, 'New batches').getByRole('listitem');
  await expect(list).toHaveText([/Tray 3\s*93%\s*70% usable/, /Tray 1\s*41%/, /Tray 0\s*94%\s*New substrate/, /Tray 2\s*85%/]);
  expect(await colourOf(list.nth(0).getByText('70% usable'))).toBe(red);
  expect(await Promise.all([1, 3].map((at) => colourOf(list.nth(at).locator('strong'))))).toEqual([red, orange]);
  await expect(cards(page)).toHaveText(/41–\u206085% germinated.*Tray 1\s*41%,.*Tray 3\s*70% usable, usually 85–\u206085%.*Tray 2\s*85%,/s);
  await expect(cards(page).getByText('85%', { exact: true })).toHaveCSS('color', orange);
  const dots = chart(page, 'crop').getByRole('link');
  // Tray 3 is red for its usable rate, which its label says.
  await expect(dots).toHaveCount(3);
  await expect(page.getByRole('link', { name: 'Tray 3, 93%, 70% usable' })).toHaveText('70% usable');
  const fillOf = (name: string) => page.getByRole('link', { name }).locator('circle, path').last().evaluate((node) => getComputedStyle(node).fill);
  expect(await Promise.all(['Tray 1, 41%', 'Tray 2, 85%', 'Tray 3, 93%, 70% usable'].map(fillOf))).toEqual([red, orange, red]);
  await link(page, 'Batches').click();
  await expectRows(page, 34);
  await expect(page.getByRole('gridcell', { name: /^41%/ })).toHaveCSS('color', red);
  await expect(page.getByRole('gridcell', { name: /^85% ▼/ })).toHaveCSS('color', orange);
  await link(page, 'Tray 1').click();
  await expect(page.getByText('Unusual: Germination rate, Usable rate')).toHaveCSS('color', red);
});

test.describe('offline', () => {
  test.use({ allowedErrors: /ERR_INTERNET_DISCONNECTED|ERR_FAILED/ });

  test('the batches show, also without the year to compare with', async ({ page }) => {
    const service = await serve('Offline', morning({}, {}));
    let isMain = true;
    await page.route('**/v2/batches?*', (route) => {
      if (isMain) void route.continue();
      else void route.abort();
      isMain = false;
    });
    await openSignedIn(page, service);
    await expect(message(page, '2 new batches')).toBeVisible();
    await expect(link(page, 'Tray 1')).toBeVisible();
  });

  test('a mark that the service does not receive says so after seconds', async ({ page }) => {
    await openSignedIn(page, await serve('Silent', morning({}, failed)));
    await page.route('**/session/seen', () => undefined);
    await button(page, 'Mark as seen: Tray 1').click();
    await expect(page.getByText('Tray 1, seen, not saved yet')).toBeVisible();
  });

  test('all pages show what is loaded', async ({ page }) => {
    const database = new Database();
    const service = await database.serve(database.addOrganisation('No reception', morning({}, {})));
    await openSignedIn(page, service);
    await expect(message(page, '2 batches, all as usual')).toBeVisible();
    // Newer than the last 365 days that are loaded.
    database.importBatches('No reception', [morning({}, failed).at(-1)!]);
    await button(page, 'Refresh').click();
    await expect(cards(page)).toHaveCount(1);
    await page.context().setOffline(true);
    await link(page, 'Batches').click();
    await expectRows(page, 32);
    await expect(page.getByRole('gridcell', { name: /^41%/ })).toBeVisible();
    await expect(page.getByText('The connection is lost.')).toBeVisible();
    await link(page, 'Today').click();
    await expect(cards(page)).toHaveCount(1);
    await page.context().setOffline(false);
    await expect(page.getByText('The connection is lost.')).toBeHidden();
  });

  test('a mark is sent when there is a connection again', async ({ page, browser }) => {
    const service = await serve('Greenhouse', morning({}, failed));
    await openSignedIn(page, service);
    await expect(cards(page)).toHaveCount(1);
    await page.context().setOffline(true);
    await button(page, 'Mark as seen: Tray 1').click();
    await expect(message(page, '1 unusual batch, seen')).toBeVisible();
    await expect(page.getByText('Your latest marks and notes are not saved yet.')).toBeVisible();
    const sent = page.waitForResponse('**/session/seen');
    await page.context().setOffline(false);
    await sent;
    await expect(page.getByText('Your latest marks and notes are not saved yet.')).toBeHidden();
    const colleague = await browser.newPage();
    await openSignedIn(colleague, service);
    await expect(message(colleague, '1 unusual batch, seen')).toBeVisible();
    await colleague.close();
  });
});
