// Claims about the filters: what they leave agrees with the interface, and all of it is in the address.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { field, figures, heading, loaded, openMenu, openSignedIn, rowCount, warnings } from '../dashboard.mjs';
import { count, headline, holds, lastDays, tally } from '../expected.mjs';
import { claim, eventually } from '../harness.mjs';
import { batchesOf } from '../service.mjs';

const batchesShown = async (page) => (await figures(page)).Batches.value;

async function shows(page, batches) {
  const expected = headline(batches);
  await eventually(async () => {
    const { Batches, Images, 'Germination rate': germination } = await figures(page);
    assert.deepEqual(
      [Batches.value, Images.value, germination.value],
      [expected.batches, expected.images, expected.germination],
    );
  });
}

async function choose(page, menu, [name, number]) {
  const panel = await openMenu(page, menu);
  const choice = panel.getByRole('listitem').filter({ has: page.getByText(name, { exact: true }) });
  assert.match(await choice.textContent(), new RegExp(`${count(number)}\\s*$`), `The number behind ${name}`);
  await choice.getByRole('checkbox').check();
  await page.keyboard.press('Escape');
  await panel.waitFor({ state: 'hidden' });
}

describe('filters', { concurrency: 2 }, () => {
  claim(
    'crop, warnings, scanner and text each leave the batches that the interface says',
    {},
    async ({ page, service }) => {
      const all = await batchesOf(service, lastDays(90));
      const crop = tally(all, 'crop_type')[0];
      const scanner = tally(all, 'scanned_by_email').find(([email]) => email !== null);
      await openSignedIn(page, service);
      await shows(page, all);

      await choose(page, 'Crop', crop);
      await shows(
        page,
        all.filter((batch) => batch.crop_type === crop[0]),
      );
      await page.getByRole('button', { name: 'Clear filters' }).click();

      await warnings(page).selectOption('with');
      await shows(
        page,
        all.filter((batch) => batch.warnings),
      );
      await warnings(page).selectOption('without');
      await shows(
        page,
        all.filter((batch) => !batch.warnings),
      );
      await page.getByRole('button', { name: 'Clear filters' }).click();

      await choose(page, 'Scanned by', scanner);
      await shows(
        page,
        all.filter((batch) => batch.scanned_by_email === scanner[0]),
      );
      await page.getByRole('button', { name: 'Clear filters' }).click();

      await field(page, 'Search').fill('BENCH 1');
      await shows(
        page,
        all.filter((batch) => holds(batch, 'bench') && holds(batch, '1')),
      );
      await page.getByRole('button', { name: 'Clear filters' }).click();
      await shows(page, all);
    },
  );

  claim(
    'filters together leave what passes all of them, and a copied address shows the same',
    {},
    async ({ page, context, service }) => {
      const all = await batchesOf(service, lastDays(90));
      const [first, second] = tally(all, 'crop_type');
      const passing = all.filter(
        (batch) => [first[0], second[0]].includes(batch.crop_type) && !batch.warnings && holds(batch, 'bench'),
      );
      await openSignedIn(page, service);
      await choose(page, 'Crop', first);
      await choose(page, 'Crop', second);
      await warnings(page).selectOption('without');
      await field(page, 'Search').fill('bench');
      await shows(page, passing);
      await eventually(() =>
        assert.deepEqual(
          [...new URL(page.url()).searchParams],
          [
            ['crop', first[0]],
            ['crop', second[0]],
            ['warnings', 'without'],
            ['q', 'bench'],
          ],
        ),
      );

      const { pathname, search } = new URL(page.url());
      const copy = await context.newPage();
      await openSignedIn(copy, service, pathname + search);
      await shows(copy, passing);
      assert.equal(copy.url(), page.url());
      assert.equal(await field(copy, 'Search').inputValue(), 'bench');
      await eventually(async () => assert.deepEqual(await figures(copy), await figures(page)));

      await copy.getByRole('link', { name: 'Batches', exact: true }).click();
      assert.equal(await rowCount(copy), passing.length);
    },
  );

  claim('order and columns of the table are in the address too', {}, async ({ page, context, service }) => {
    await openSignedIn(page, service, '/batches');
    await page.getByRole('button', { name: 'Germination rate' }).click();
    const columns = await openMenu(page, 'Columns');
    await columns.getByLabel('Comment').check();
    await columns.getByLabel('Images').uncheck();
    await page.keyboard.press('Escape');
    const { pathname, search } = new URL(page.url());
    const copy = await context.newPage();
    await openSignedIn(copy, service, pathname + search);
    const head = (on) =>
      on
        .getByRole('columnheader')
        .evaluateAll((cells) => cells.map((cell) => `${cell.textContent.trim()} ${cell.ariaSort}`));
    assert.deepEqual(await head(copy), await head(page));
    assert.ok(
      (await head(copy)).includes('Comment none') && (await head(copy)).includes('Germination rate descending'),
    );
    const names = (on) => on.getByRole('row').evaluateAll((rows) => rows.slice(1, 10).map((row) => row.textContent));
    assert.deepEqual(await names(copy), await names(page));
  });

  claim('a click beside an open menu closes it and does nothing else', {}, async ({ page, service }) => {
    await openSignedIn(page, service, '/batches');
    const panel = await openMenu(page, 'Columns');
    const link = page.getByRole('grid').getByRole('link').first();
    await link.click();
    await panel.waitFor({ state: 'hidden' });
    assert.equal(new URL(page.url()).pathname, '/batches');
    await link.click();
    await page.waitForURL(/\/batches\/./);
  });

  claim('back and forward walk through windows, filters and screens', {}, async ({ page, service }) => {
    const month = await batchesOf(service, lastDays(30));
    const warned = month.filter((batch) => batch.warnings);
    await openSignedIn(page, service);
    const atFirst = await batchesShown(page);
    await page.getByRole('button', { name: 'Last 30 days' }).click();
    await warnings(page).selectOption('with');
    await shows(page, warned);
    await page.getByRole('link', { name: 'Batches', exact: true }).click();
    await heading(page, 'Batches').waitFor();
    await eventually(async () => assert.equal(await rowCount(page), warned.length));

    await page.goBack();
    await heading(page, 'Overview').waitFor();
    await shows(page, warned);
    await page.goBack();
    await shows(page, month);
    assert.equal(await warnings(page).inputValue(), 'all');
    await page.goBack();
    await eventually(async () => assert.equal(await batchesShown(page), atFirst));
    for (let step = 0; step < 3; step++) await page.goForward();
    await heading(page, 'Batches').waitFor();
    await eventually(async () => assert.equal(await rowCount(page), warned.length));
  });

  claim('filters that leave nothing say so, and offer the way back', {}, async ({ page, service }) => {
    await openSignedIn(page, service, '/?q=no-batch-has-this-in-it');
    await page.getByRole('heading', { name: 'No batch passes the filters' }).waitFor();
    assert.ok(await page.getByRole('button', { name: 'Export CSV' }).isDisabled());
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await loaded(page);
    await shows(page, await batchesOf(service, lastDays(90)));
  });
});
