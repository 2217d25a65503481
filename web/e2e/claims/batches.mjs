// Claims about single batches: the table, a batch's own page, and the export.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe } from 'node:test';
import { goSignedIn, heading, loaded, openMenu, openSignedIn, rowCount } from '../dashboard.mjs';
import { lastDays, parseCsv, plusDays, today } from '../expected.mjs';
import { claim, eventually } from '../harness.mjs';
import { batchesOf, newDatabase, serve } from '../service.mjs';

const FIELDS = [
  'batch_id',
  'batch_name',
  'batch_creation_date',
  'crop_type',
  'number_of_images',
  'total_cells_per_tray',
  'avg_germinated_seedlings',
  'avg_non_germinated_seedlings',
  'avg_germination_rate',
  'avg_usable_seedlings',
  'avg_non_usable_cells',
  'avg_usable_seedling_rate',
  'avg_coefficient_of_variation',
  'avg_median_seedling_size_mm2',
  'scanned_by_email',
  'analysis_link',
  'comment',
  'warnings',
];

const grid = (page) => page.getByRole('grid', { name: 'Batches' });
/** Newest first, as the table is at first. */
const newestFirst = (batches) => batches.toSorted((a, b) => byText(moment(b), moment(a)));
const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
// Without the Z a fraction of a second sorts after its second.
const moment = (batch) => batch.batch_creation_date.replace('Z', '');
/** The cells that the export should have for a batch. */
const cellsOf = (batch, fields = FIELDS) => fields.map((field) => (batch[field] === null ? '' : String(batch[field])));

/** Names the first row that differs, not all of them. */
function assertSameRows(rows, expected) {
  assert.ok(expected.length > 0);
  expected.forEach((row, at) => assert.deepEqual(rows[at], row, `Row ${at}`));
  assert.equal(rows.length, expected.length);
}

async function exported(page) {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Export CSV' }).click(),
  ]);
  const text = await readFile(await download.path(), 'utf8');
  assert.equal(text[0], '\uFEFF', 'Excel needs the mark to read UTF-8');
  const [head, ...rows] = parseCsv(text.slice(1));
  return { name: download.suggestedFilename(), head, rows };
}

const hostile = [
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

async function hostileNursery() {
  const database = newDatabase();
  const batches = hostile.map((text, at) => ({
    batch_id: `hostile-${at}`,
    batch_name: text,
    batch_creation_date: `${today()}T00:00:0${at}Z`,
    number_of_images: 1,
    warnings: false,
    crop_type: text,
    comment: text,
    avg_germination_rate: '7.10',
  }));
  const credential = await database.organisation('Hostile', batches);
  return { ...(await serve(database)), ...credential };
}

describe('batches', { concurrency: 2 }, () => {
  claim('the table lists the newest batch first, and a click opens its page', {}, async ({ page, service }) => {
    const newest = newestFirst(await batchesOf(service, lastDays(90)));
    await openSignedIn(page, service, '/batches');
    assert.equal(await rowCount(page), newest.length);
    await grid(page).getByRole('link', { name: newest[0].batch_name }).first().click();
    await heading(page, newest[0].batch_name).waitFor();
    assert.equal(new URL(page.url()).pathname, `/batches/${newest[0].batch_id}`);
    const text = await page.getByRole('main').innerText();
    for (const shown of [newest[0].crop_type ?? 'No crop given', newest[0].batch_id])
      assert.ok(text.includes(shown), `${shown} in ${text}`);
    await page.goBack();
    await heading(page, 'Batches').waitFor();
  });

  claim('the table shows the same after each of three reloads', {}, async ({ page, service }) => {
    const { length } = await batchesOf(service, lastDays(90));
    await openSignedIn(page, service, '/batches');
    for (let reload = 0; reload < 3; reload++) {
      const answered = page.waitForResponse(/v2.batches/);
      await page.getByRole('button', { name: 'Reload' }).click();
      await answered;
      await loaded(page);
      await eventually(async () => assert.equal(await rowCount(page), length));
    }
  });

  claim(
    'a column sorts the table both ways, and the last row is as right as the first',
    {},
    async ({ page, service }) => {
      const measured = (await batchesOf(service, lastDays(365))).filter((batch) => batch.avg_germination_rate !== null);
      const rates = measured.map((batch) => Number(batch.avg_germination_rate));
      const window = lastDays(365);
      await openSignedIn(
        page,
        service,
        `/batches?from=${window.from}&to=${window.to}&fields=batch_name,avg_germination_rate`,
      );
      const first = () => grid(page).getByRole('row').nth(1).innerText();
      const sort = page.getByRole('button', { name: 'Germination rate' });
      await sort.click();
      await eventually(async () => assert.ok((await first()).includes(Math.max(...rates).toFixed(2)), await first()));
      await sort.click();
      await eventually(async () => assert.ok((await first()).includes(Math.min(...rates).toFixed(2)), await first()));
      await grid(page).getByRole('row').nth(1).getByRole('link').focus();
      await page.keyboard.press('End');
      await eventually(async () =>
        assert.equal(
          await page.evaluate(() => document.activeElement.closest('tr')?.ariaRowIndex),
          String((await rowCount(page)) + 1),
        ),
      );
    },
  );

  claim('the analysis link of a batch leads to its page inside the dashboard', {}, async ({ page, service }) => {
    const [batch] = newestFirst(await batchesOf(service, lastDays(90)));
    await openSignedIn(page, service, '/batches');
    const columns = await openMenu(page, 'Columns');
    await columns.getByLabel('Analysis report').check();
    await page.keyboard.press('Escape');
    await page.evaluate(() => (globalThis.sameDocument = true));
    await page.locator(`a[href="${batch.analysis_link}"]`).click();
    await heading(page, batch.batch_name).waitFor();
    assert.equal(new URL(page.url()).pathname, new URL(batch.analysis_link).pathname);
    assert.ok(await page.evaluate(() => globalThis.sameDocument), 'Nothing was loaded anew');
  });

  claim(
    'the address of a batch outside the window finds it, without a view to come from',
    {},
    async ({ page, service }) => {
      const day = plusDays(today(), -300);
      const [batch] = await batchesOf(service, { from: day, to: plusDays(day, 20) });
      await goSignedIn(page, service, `/batches/${batch.batch_id}`);
      await heading(page, batch.batch_name).waitFor();
      await eventually(async () => {
        const text = await page.getByRole('main').innerText();
        assert.ok(text.includes(batch.avg_germination_rate) && text.includes(batch.scanned_by_email ?? ''), text);
      });
    },
  );

  claim('an unknown id is said to be unknown, after all batches were looked through', {}, async ({ page, service }) => {
    await goSignedIn(page, service, '/batches/no-such-id');
    await page.getByRole('heading', { name: 'There is no such batch' }).waitFor();
    await page.getByRole('main').getByText('3,000').waitFor();
    await page.getByRole('main').getByRole('link').first().click();
    await heading(page, 'Batches').waitFor();
  });

  claim(
    'the export of the overview holds the filtered batches with all fields, decimals as they were sent',
    {},
    async ({ page, service }) => {
      const all = await batchesOf(service, lastDays(90));
      await openSignedIn(page, service, '/?warnings=with');
      const { name, head, rows } = await exported(page);
      const { from, to } = lastDays(90);
      assert.equal(name, `batches-${from}-to-${to}-filtered.csv`);
      assert.deepEqual(head, FIELDS);
      assertSameRows(
        rows,
        all.filter((batch) => batch.warnings).map((batch) => cellsOf(batch)),
      );
    },
  );

  claim('the export of the table has its columns and its order', {}, async ({ page, service }) => {
    const all = await batchesOf(service, lastDays(90));
    await openSignedIn(
      page,
      service,
      '/batches?fields=batch_name,batch_id,batch_creation_date,avg_usable_seedling_rate',
    );
    const { name, head, rows } = await exported(page);
    const { from, to } = lastDays(90);
    assert.equal(name, `batches-${from}-to-${to}-table.csv`);
    assert.deepEqual(head, ['batch_name', 'batch_id', 'batch_creation_date', 'avg_usable_seedling_rate']);
    assertSameRows(
      rows,
      newestFirst(all).map((batch) => cellsOf(batch, head)),
    );
  });

  claim(
    'texts that a spreadsheet would run, or a page draw, stay texts',
    { at: hostileNursery },
    async ({ page, service }) => {
      await openSignedIn(page, service, '/batches?sort=batch_creation_date');
      const links = await grid(page)
        .getByRole('link')
        .evaluateAll((all) => all.map((link) => link.textContent));
      assert.deepEqual(links, hostile);
      await page.getByRole('link', { name: 'Overview', exact: true }).click();
      await loaded(page);
      const { rows } = await exported(page);
      const safe = hostile.map((text) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text));
      assert.deepEqual(
        rows.map((row) => row[1]),
        safe,
      );
      assert.deepEqual(
        rows.map((row) => row[16]),
        safe,
      );
      assert.deepEqual(new Set(rows.map((row) => row[8])), new Set(['7.10']));
    },
  );
});
