import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Download } from '@playwright/test';
import { FIELDS, type Batch } from '../src/data/batch';
import { lastDays, parseCsv, plusDays, query, today } from './expected';
import { Database, fetchBatches, serve } from './service';
import {
  button,
  expect,
  expectRows,
  goSignedIn,
  grid,
  heading,
  link,
  loaded,
  message,
  openSignedIn,
  region,
  test,
  warnings,
  type Page,
} from './test';

const NAMES = FIELDS.map(({ name }) => name);
// Without the Z, a fraction of a second sorts after its second.
const time = (batch: Batch): string => batch.batch_creation_date.replace('Z', '');
const newestFirst = (batches: Batch[]): Batch[] =>
  [...batches].sort((a, b) => (time(a) < time(b) ? 1 : time(a) > time(b) ? -1 : 0));
const toCells = (batch: Batch, names = NAMES): string[] =>
  names.map((name) => {
    if (name === 'warnings') return batch.warnings ? 'Yes' : 'No';
    const text = String(batch[name] ?? '');
    return name === 'batch_creation_date' ? text.replace('T', ' ').replace('Z', '') : text;
  });

async function exportAs(page: Page, file: string): Promise<Download> {
  const pending = page.waitForEvent('download');
  await button(page, 'Export').click();
  await button(page, file).click();
  return pending;
}

async function exportCsv(page: Page): Promise<{ name: string; head: string[]; rows: string[][] }> {
  const download = await exportAs(page, 'CSV file');
  const text = readFileSync(await download.path(), 'utf8');
  expect(text[0], 'Excel needs the byte order mark').toBe('\uFEFF');
  const [head, ...rows] = parseCsv(text.slice(1));
  return { name: download.suggestedFilename(), head: head!, rows };
}

test('the table lists the newest batch first, and a click opens it', async ({ page, demo }) => {
  const batches = newestFirst(await fetchBatches(demo, lastDays(90)));
  const newest = batches[0]!;
  await openSignedIn(page, demo, '/batches');
  await expectRows(page, batches.length);
  await grid(page).getByRole('link', { name: newest.batch_name }).first().click();
  await expect(heading(page, newest.batch_name)).toBeVisible();
  expect(new URL(page.url()).pathname).toBe(`/batches/${newest.batch_id}`);
  await expect(page.getByRole('main')).toContainText(newest.crop_type ?? 'Crop not recorded');
  await expect(page.getByRole('main')).toContainText(newest.batch_id);
  await page.goBack();
  await expect(heading(page, 'Batches')).toBeVisible();
});

test.describe('on a phone', () => {
  test.use({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });

  test('the way back leads to the same place in the list', async ({ page, demo }) => {
    await openSignedIn(page, demo, '/batches');
    await page.evaluate(() => scrollTo(0, 3_000));
    const place = page.getByRole('main').getByRole('listitem').nth(12);
    // The cards of this place are drawn.
    await expect(place).toBeInViewport();
    const name = (await place.getByRole('heading').textContent())!;
    const top = (await place.boundingBox())!.y;
    await place.getByRole('link').click();
    await expect(page.getByText('All fields')).toBeVisible();
    expect(await page.evaluate(() => scrollY)).toBe(0);
    await link(page, 'Back to batches').click();
    const same = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name, exact: true }) });
    await expect.poll(async () => (await Promise.all((await same.all()).map((item) => item.boundingBox()))).map((box) => box!.y)).toContain(top);
    await link(page, 'Today').click();
    await link(page, 'Batches').click();
    expect(await page.evaluate(() => scrollY)).toBe(0);
  });
});

test('the table shows the same after three refreshes', async ({ page, demo }) => {
  const { length } = await fetchBatches(demo, lastDays(90));
  await openSignedIn(page, demo, '/batches');
  for (let refresh = 0; refresh < 3; refresh++) {
    const response = page.waitForResponse(/v2.batches/);
    await button(page, 'Refresh').click();
    await response;
    await loaded(page);
    await expectRows(page, length);
  }
});

test('a column sorts in both directions, and End goes to the last row', async ({ page, demo }) => {
  const batches = await fetchBatches(demo, lastDays(365));
  const rates = batches.flatMap(({ avg_germination_rate: rate }) => (rate === null ? [] : Number(rate)));
  await openSignedIn(page, demo, `/batches${query(lastDays(365))}&fields=batch_name,avg_germination_rate`);
  const first = grid(page).getByRole('row').nth(1);
  // The worst first.
  await button(page, 'Germination rate').click();
  await expect(first).toContainText(Math.min(...rates).toFixed(0));
  await button(page, 'Germination rate').click();
  await expect(first).toContainText(Math.max(...rates).toFixed(0));
  await first.getByRole('link').focus();
  await page.keyboard.press('End');
  const last = grid(page).locator(`tr[aria-rowindex="${batches.length + 1}"]`);
  await expect(last.getByRole('link')).toBeFocused();
});

test('the analysis link of a demo batch opens its report in a new tab', async ({ page, context, demo }) => {
  const batch = newestFirst(await fetchBatches(demo, lastDays(90))).find((batch) => batch.analysis_link !== null)!;
  await goSignedIn(page, demo, `/batches/${batch.batch_id}`);
  const opened = context.waitForEvent('page');
  await page.getByRole('link', { name: /^Open report/ }).click();
  const report = await opened;
  expect(report.url()).toBe(`${demo.url}/demo/reports/${batch.batch_id}`);
  await expect(heading(report, batch.batch_name)).toBeVisible();
  await expect(report.getByText(`${batch.avg_germination_rate} %`).first()).toBeVisible();
  await expect(report.locator('svg').first()).toBeVisible();
});

test('the URL of a batch outside the period finds it', async ({ page, demo }) => {
  const day = plusDays(today(), -300);
  const [batch] = (await fetchBatches(demo, { from: day, to: plusDays(day, 20) })) as [Batch];
  await goSignedIn(page, demo, `/batches/${batch.batch_id}`);
  await expect(heading(page, batch.batch_name)).toBeVisible();
  await expect(page.getByRole('main')).toContainText(batch.avg_germination_rate!);
  await page.getByText('All fields').press('Enter');
  await expect(page.getByTitle(batch.scanned_by_email ?? batch.batch_id)).toBeVisible();
});

test('a batch links to others with its name and to the adjacent batches of its crop, whatever the period', async ({ page }) => {
  const batch = (id: string, batch_name: string, days: number, crop_type = 'Leek'): Partial<Batch> => ({
    batch_id: id,
    batch_name,
    batch_creation_date: `${plusDays(today(), -days)}T08:00:00Z`,
    crop_type,
    avg_germination_rate: '91.40',
  });
  const batches = [batch('a', 'Bench 3', 200), batch('b', 'Bench 4', 100), batch('x', 'Bench 3', 50, 'Basil'), batch('c', 'Bench 3', 0)];
  const service = await serve('Twice', batches);
  await openSignedIn(page, service, '/batches?window=1d');
  await link(page, 'Bench 3').click();
  const others = page.getByRole('navigation', { name: 'Other batches with this name' });
  await expect(others).toHaveText(/: [^,]+, 08:00 \(Germination 91%\)$/);
  await link(page, 'Bench 4').click();
  await expect(heading(page, 'Bench 4')).toBeVisible();
  await expect(others).toHaveCount(0);
  await page.getByRole('navigation', { name: 'Adjacent batches' }).getByText('Bench 3').first().click();
  await others.getByRole('link').click();
  await expect(page).toHaveURL(`${service.url}/batches/c`);
});

test.describe('an unknown batch', () => {
  test.use({ allowedErrors: /404/ });

  test('is reported, without actions that make no sense', async ({ page, demo }) => {
    await goSignedIn(page, demo, '/batches/no-such-id');
    await expect(message(page, 'Batch not found')).toBeVisible();
    await expect(button(page, 'Print')).toHaveCount(0);
    await link(page, 'Show all batches').click();
    await expect(heading(page, 'Batches')).toBeVisible();
  });
});

test('the export has the filtered batches with all fields and exact decimals', async ({
  page,
  demo,
}) => {
  const batches = newestFirst(await fetchBatches(demo, lastDays(90))).filter((batch) => batch.warnings);
  await openSignedIn(page, demo, `/analysis?warnings=with&fields=${NAMES.join()}`);
  await expect(page.getByText(/^Dot: average of this period/)).toBeVisible();
  await link(page, 'Batches').click();
  const { name, head, rows } = await exportCsv(page);
  expect(name).toBe(`batches-${lastDays(90).from}-to-${today()}-filtered.csv`);
  expect(head.slice(0, 6)).toEqual(['Name', 'Scanned (UTC)', 'Crop', 'Scanned by (e-mail)', 'Why unusual', 'Comment']);
  expect(rows.length).toBeGreaterThan(0);
  for (const row of rows) expect(row.splice(4, 1)[0]).toMatch(/The scanner reported a warning(: check the trays by eye| and measured nothing)\.$/);
  expect(rows).toEqual(batches.map((batch) => toCells(batch)));
  await warnings(page).selectOption('Unusual');
  expect((await exportCsv(page)).name).toBe(`batches-${lastDays(90).from}-to-${today()}-unusual.csv`);
});

test('a batch whose rates contradict its counts has no drawing of a tray', async ({ page }) => {
  const counts = { total_cells_per_tray: 104, avg_germinated_seedlings: '87.00', avg_usable_seedlings: '30.00' };
  const rates = { avg_germination_rate: '41.00', avg_usable_seedling_rate: '29.00' };
  const service = await serve('Contradiction', [{ batch_id: 'a', batch_creation_date: `${today()}T00:00:00Z`, ...counts, ...rates }]);
  await goSignedIn(page, service, '/batches/a');
  await expect(region(page, 'Tray')).toHaveText(/No drawing: 41% germinated does not match 87 of 104 cells\./);
});

test('the link of a batch is copied, shown where a page cannot copy, or shared on a phone', async ({ page, context }) => {
  const service = await serve('Linked', [{ batch_id: 'b', batch_creation_date: `${today()}T00:00:00Z` }]);
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await goSignedIn(page, service, '/batches/b');
  await button(page, 'Copy link').click();
  await expect(button(page, 'Link copied')).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(`${service.url}/batches/b`);
  await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
  const shown = page.waitForEvent('dialog');
  const clicked = button(page, 'Link copied').click();
  const dialog = await shown;
  expect(dialog.defaultValue()).toBe(`${service.url}/batches/b`);
  await dialog.dismiss();
  await clicked;
  await page.addInitScript(() => {
    Object.assign(navigator, { share: ({ url }: ShareData) => Promise.resolve((document.title = url!)) });
    globalThis.matchMedia = () => ({ matches: true }) as MediaQueryList;
  });
  await page.reload();
  await button(page, 'Share link').click();
  await expect(page).toHaveTitle(`${service.url}/batches/b`);
});

test('a note can be written on any batch', async ({ page }) => {
  const service = await serve('Ordinary', [{ batch_id: 'b', batch_name: 'Tray 1', batch_creation_date: `${today()}T00:00:00Z`, avg_germination_rate: '91.40' }]);
  await goSignedIn(page, service, '/batches/b');
  await button(page, 'Add a note: Tray 1').click();
  await page.keyboard.type('moved to bench 4');
  await page.keyboard.press('Enter');
  await expect(page.getByText(/^“moved to bench 4” – Anna/)).toBeVisible();
  await expect(button(page, 'Mark as seen: Tray 1')).toBeHidden();
  await link(page, 'Today').click();
  await expect(region(page, 'New batches').getByText('Anna: moved to bench 4')).toBeVisible();
});

test('the export of the table has its columns first and the order of its rows', async ({ page, demo }) => {
  const names = ['batch_name', 'batch_creation_date', 'avg_usable_seedling_rate', 'batch_id'] as const;
  const batches = newestFirst(await fetchBatches(demo, lastDays(90)));
  await openSignedIn(page, demo, `/batches?fields=${names.join()}`);
  const { name, head, rows } = await exportCsv(page);
  expect(name).toBe(`batches-${lastDays(90).from}-to-${today()}.csv`);
  expect(head.slice(0, 4)).toEqual(['Name', 'Scanned (UTC)', 'Usable rate (%)', 'Batch ID']);
  expect(rows.map((row) => row.slice(0, 4))).toEqual(batches.map((batch) => toCells(batch, [...names])));
});

test.describe('a failed export', () => {
  test.use({ allowedErrors: /ERR_FAILED/ });

  test('is reported, and can be repeated', async ({ page, demo }) => {
    await openSignedIn(page, demo, '/analysis');
    const path = '**/assets/export-*.js';
    await page.route(path, (route) => route.abort());
    await button(page, 'Export').click();
    await button(page, 'CSV file').click();
    await expect(page.getByText('The export failed. The connection is lost.')).toBeVisible();
    await page.unroute(path);
    const pending = page.waitForEvent('download');
    await button(page, 'CSV file').click();
    await pending;
  });
});

test('formulas and HTML in the data stay text', async ({ page }) => {
  const texts = [
    '=1+1',
    '+1',
    '-1',
    '@SUM(A1)',
    '\t=1',
    'a "quoted", name',
    'two\nlines',
    '=HYPERLINK("http://x","y")',
    '<img src=x onerror=alert(1)>',
  ];
  const batches = texts.map((text, at) => ({
    batch_id: `hostile-${at}`,
    batch_name: text,
    batch_creation_date: `${today()}T00:00:0${at}Z`,
    crop_type: text,
    comment: text,
    avg_germination_rate: '97.10',
  }));
  const service = await serve('Hostile', batches);
  await openSignedIn(page, service, '/batches?sort=batch_creation_date');
  expect(
    await grid(page)
      .getByRole('link')
      .evaluateAll((all) => all.map((link) => link.textContent)),
  ).toEqual(texts);
  const { rows } = await exportCsv(page);
  const escaped = texts.map((text) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text));
  const column = (name: keyof Batch): (string | undefined)[] => rows.map((row) => row[NAMES.indexOf(name)]);
  expect(column('batch_name')).toEqual(escaped);
  expect(column('comment')).toEqual(escaped);
  expect(new Set(column('avg_germination_rate'))).toEqual(new Set(['97.10']));
});

/** What people write, and what spreadsheets change. */
const odd: Partial<Batch>[] = [
  { batch_name: '=1+1', comment: "'quoted'; with, \"separators\"\nand lines", scanned_by_email: 'm.okafor@example.org' },
  { batch_name: "'", crop_type: '-', comment: '-1', avg_germination_rate: '0.50', warnings: true },
  { batch_name: '007', crop_type: 'Größe 1,5', total_cells_per_tray: 104, avg_median_seedling_size_mm2: '1234.50' },
];

for (const locale of ['en-GB', 'de-DE']) {
  test.describe(`in ${locale}`, () => {
    test.use({ locale, timezoneId: 'Europe/Berlin' });

    test('exported files are imported unchanged', async ({ page }) => {
      const database = new Database();
      const batches = odd.map((batch, at) => ({ ...batch, batch_id: `b${at}`, batch_creation_date: `${plusDays(today(), -at)}T00:00:0${at}.12345Z` }));
      const service = await database.serve(database.addOrganisation('First', batches));
      const expected = await fetchBatches(service, lastDays(7));
      await openSignedIn(page, service, '/batches?window=7d&fields=batch_name');
      for (const name of [/^CSV/, /^Excel/]) {
        const pending = page.waitForEvent('download');
        await button(page, 'Export').click();
        await page.getByRole('button', { name }).click();
        const file = await pending;
        const organisation = file.suggestedFilename().slice(-4);
        const other = database.addOrganisation(organisation, []);
        const path = join(tmpdir(), `${process.pid}-${locale}-${file.suggestedFilename()}`);
        await file.saveAs(path);
        database.importFile(organisation, path);
        rmSync(path);
        expect(await fetchBatches({ ...service, ...other }, lastDays(7)), `${name}`).toEqual(expected);
      }
    });
  });
}
