// Claims about readers who use a keyboard or a screen reader.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe } from 'node:test';
import { drawn, goSignedIn, heading, loaded, openMenu, openSignedIn } from '../dashboard.mjs';
import { lastDays } from '../expected.mjs';
import { claim, eventually } from '../harness.mjs';
import { batchesOf } from '../service.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe holds against the page in light and in dark. Goes in by the debugger: the policy lets no inline script in. */
async function complaints(page) {
  const found = [];
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await page.waitForFunction((scheme) => document.documentElement.dataset.theme === scheme, colorScheme);
    // Colours on their way are no colours to judge by.
    await page.evaluate(() =>
      Promise.all(document.getAnimations().map((animation) => animation.finished.catch(() => null))),
    );
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() =>
      globalThis.axe.run(document, { resultTypes: ['violations'], preload: false }),
    );
    const bad = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
    for (const { id, nodes } of bad)
      found.push(
        `${colorScheme}: ${id} at ${nodes[0].html.slice(0, 200)} and ${nodes.length - 1} more. ${nodes[0].failureSummary}`,
      );
  }
  return found;
}

// More stops than any view has before its table.
const TABS_MAX = 60;

/** Presses Tab until the focus is where it should be. On the way every stop shows that it has the focus. */
async function tabTo(page, target, key = 'Tab') {
  for (let tabs = 0; tabs < TABS_MAX; tabs++) {
    await page.keyboard.press(key);
    assert.equal(await hiddenFocus(page), null);
    if (await target.evaluateAll((all) => all.includes(document.activeElement))) return;
  }
  assert.fail(`${target} is not reached by ${TABS_MAX} tabs`);
}

/** Null when it can be seen where the focus is, else where it is. */
function hiddenFocus(page) {
  return page.evaluate(() => {
    const focused = document.activeElement;
    if (focused === document.body || focused === null) return 'The focus is lost';
    const isRinged = (element) => element !== null && getComputedStyle(element).outlineStyle !== 'none';
    // A radio button may be drawn by its label; the calendar button in a date field, ring and all, is the browser's own.
    const isCalendar = focused.type === 'date' && !focused.matches(':focus');
    if (!isRinged(focused) && !isRinged(focused.closest('label')) && !isCalendar)
      return `${focused.outerHTML} has no ring`;
    const { top, bottom, left, right } = focused.getBoundingClientRect();
    const inSight = bottom > 0 && top < innerHeight && right > 0 && left < innerWidth;
    return inSight ? null : `${focused.outerHTML} is out of sight`;
  });
}

/** After going somewhere the focus is on the new screen, not lost. */
async function arrivesAt(page, name) {
  await heading(page, name).waitFor();
  const focused = () =>
    document.activeElement === document.body ? 'The focus is lost' : document.activeElement.textContent.trim();
  await eventually(async () => assert.equal(await page.evaluate(focused), name));
}

describe('access', { concurrency: 2 }, () => {
  claim('axe finds nothing serious on any view, in light or dark', {}, async ({ page, service }) => {
    const [batch] = await batchesOf(service, lastDays(90));
    await page.goto(service.url);
    await heading(page, 'Sign in').waitFor();
    assert.deepEqual(await complaints(page), [], 'sign-in');
    await openSignedIn(page, service, '/?warnings=all');
    await drawn(page);
    assert.deepEqual(await complaints(page), [], 'overview');
    await page.getByText('Show as table').first().click();
    await openMenu(page, 'Crop');
    assert.deepEqual(await complaints(page), [], 'overview with an open menu and a chart as a table');
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Batches', exact: true }).click();
    await heading(page, 'Batches').waitFor();
    assert.deepEqual(await complaints(page), [], 'table');
    await goSignedIn(page, service, `/batches/${batch.batch_id}?warnings=all`);
    await heading(page, batch.batch_name).waitFor();
    assert.deepEqual(await complaints(page), [], 'batch');
    await openSignedIn(page, service, '/?from=2020-01-01&to=2020-01-31');
    await page.getByRole('heading', { name: 'Nothing was scanned in this window' }).waitFor();
    assert.deepEqual(await complaints(page), [], 'empty window');
  });

  claim('a keyboard alone signs in, filters, sorts, opens a batch and comes back', {}, async ({ page, service }) => {
    await page.goto(service.url);
    await tabTo(page, page.getByLabel('Client id'));
    await page.keyboard.type(service.clientId);
    await tabTo(page, page.getByLabel('Client secret'));
    await page.keyboard.type(service.clientSecret);
    await page.keyboard.press('Enter');
    await arrivesAt(page, 'Overview');
    await loaded(page);

    const crop = page.getByRole('button', { name: /^Crop/ });
    await tabTo(page, crop, 'Shift+Tab');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.type), 'checkbox');
    await page.keyboard.press('Space');
    await eventually(() => assert.equal(new URL(page.url()).searchParams.getAll('crop').length, 1));
    await page.keyboard.press('Escape');
    assert.equal(await crop.getAttribute('aria-expanded'), 'false');
    assert.ok(await crop.evaluate((button) => button === document.activeElement), 'Esc gives the focus back');

    await tabTo(page, page.getByRole('link', { name: 'Batches', exact: true }), 'Shift+Tab');
    await page.keyboard.press('Enter');
    await arrivesAt(page, 'Batches');

    const sort = page.getByRole('button', { name: 'Germination rate' });
    await tabTo(page, sort);
    await page.keyboard.press('Enter');
    assert.equal(
      await page.getByRole('columnheader', { name: 'Germination rate' }).getAttribute('aria-sort'),
      'descending',
    );
    assert.ok(await sort.evaluate((button) => button === document.activeElement), 'Sorting keeps the focus');

    await tabTo(page, page.getByRole('grid').locator('tbody a'));
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    assert.equal(await hiddenFocus(page), null);
    const name = await page.evaluate(() => document.activeElement.textContent);
    await page.keyboard.press('Enter');
    await arrivesAt(page, name);
    await page.goBack();
    await arrivesAt(page, 'Batches');
  });

  claim('the first Tab offers to skip to the content', {}, async ({ page, service }) => {
    await openSignedIn(page, service);
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press('Tab');
    assert.equal(await hiddenFocus(page), null);
    await page.keyboard.press('Enter');
    assert.ok(await page.evaluate(() => document.activeElement.closest('main') !== null));
    assert.equal(new URL(page.url()).hash, '');
  });
});
