// Claims about narrow screens, low ones and dark ones.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { drawn, goSignedIn, heading, openMenu, openSignedIn } from '../dashboard.mjs';
import { lastDays } from '../expected.mjs';
import { claim, eventually } from '../harness.mjs';
import { batchesOf } from '../service.mjs';

const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };
const CHARTS = ['rates', 'distribution', 'uniformity', 'activity'];

/** Controls that cannot be brought into sight and hit there; the page must not be wider than the screen either. */
async function outOfReach(page, within = page.locator('body')) {
  const { width } = page.viewportSize();
  return within.evaluate((within, width) => {
    const faults = [];
    const wide = Math.max(document.documentElement.scrollWidth, document.body.scrollWidth);
    if (wide > width) faults.push(`the page is ${wide} px wide`);
    const controls = [...within.querySelectorAll('a[href], button, input, select, summary')].filter(
      (control) => control.checkVisibility() && !control.matches(':disabled, .skip'),
    );
    for (const control of controls) {
      control.scrollIntoView({ block: 'center', inline: 'end' });
      // A radio button may be drawn by its label alone.
      const target = control.matches('.unseen') ? control.closest('label') : control;
      const box = target.getBoundingClientRect();
      const hit = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
      const isHit = hit !== null && (target.contains(hit) || hit.closest('label')?.control === control);
      if (box.left >= -1 && box.right <= width + 1 && isHit) continue;
      const place = `${Math.round(box.left)} to ${Math.round(box.right)} px`;
      faults.push(`${target.outerHTML.slice(0, 120)} at ${place}, under ${hit?.outerHTML.slice(0, 60)}`);
    }
    scrollTo(0, 0);
    if (controls.length === 0) faults.push('no control at all');
    return faults.slice(0, 10);
  }, width);
}

/** The ground of the page, and the picture in each chart. */
async function looks(page) {
  const pictures = {};
  for (const name of CHARTS) pictures[name] = await drawn(page, name);
  return { ground: await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor), pictures };
}

const brightness = (colour) =>
  colour
    .match(/\d+/g)
    .slice(0, 3)
    .reduce((sum, part) => sum + Number(part), 0) / 3;

function assertOpposite(light, dark) {
  assert.ok(brightness(light.ground) > 200 && brightness(dark.ground) < 60, `${light.ground} and ${dark.ground}`);
  for (const name of CHARTS) assert.ok(light.pictures[name] !== dark.pictures[name], `The chart ${name} is drawn anew`);
}

describe('looks', { concurrency: 2 }, () => {
  claim(
    'at 360 px no view scrolls sideways, and every control can be reached',
    { reader: PHONE },
    async ({ page, service }) => {
      const [batch] = await batchesOf(service, lastDays(90));
      await page.goto(service.url);
      await heading(page, 'Sign in').waitFor();
      assert.deepEqual(await outOfReach(page), [], 'sign-in');
      await openSignedIn(page, service, '/?warnings=all');
      await drawn(page);
      assert.deepEqual(await outOfReach(page), [], 'overview');
      await page.getByRole('button', { name: /^Filters/ }).tap();
      assert.deepEqual(await outOfReach(page), [], 'overview with open filters');
      assert.deepEqual(await outOfReach(page, await openMenu(page, 'Crop')), [], 'the menu of crops');
      await page.keyboard.press('Escape');
      await page.getByRole('link', { name: 'Batches', exact: true }).tap();
      await heading(page, 'Batches').waitFor();
      assert.deepEqual(await outOfReach(page), [], 'table');
      assert.deepEqual(await outOfReach(page, await openMenu(page, 'Columns')), [], 'the menu of columns');
      await goSignedIn(page, service, `/batches/${batch.batch_id}?warnings=all`);
      await heading(page, batch.batch_name).waitFor();
      assert.deepEqual(await outOfReach(page), [], 'batch');
      await page.getByRole('button', { name: 'Sign out' }).tap();
      await heading(page, 'Sign in').waitFor();
    },
  );

  claim('in windows of any height the table ends before the footer begins', {}, async ({ page, service }) => {
    await openSignedIn(page, service, '/batches');
    for (const height of [500, 700, 840, 1100]) {
      await page.setViewportSize({ width: 1280, height });
      const table = await page.getByRole('grid', { name: 'Batches' }).locator('..').boundingBox();
      const footer = await page.getByRole('contentinfo').boundingBox();
      assert.ok(table.y + table.height <= footer.y, `${height} px: ${table.y + table.height} and ${footer.y}`);
    }
  });

  claim(
    'dark is as the system says, charts included, and follows it while the page is open',
    { reader: { colorScheme: 'light' } },
    async ({ page, service }) => {
      await openSignedIn(page, service);
      const light = await looks(page);
      await page.emulateMedia({ colorScheme: 'dark' });
      await eventually(async () => assertOpposite(light, await looks(page)));
    },
  );

  claim(
    'the switch for dark goes before the system, charts included, and is remembered',
    { reader: { colorScheme: 'light' } },
    async ({ page, service }) => {
      await openSignedIn(page, service);
      const light = await looks(page);
      await page.getByRole('button', { name: 'Switch to dark' }).click();
      await eventually(async () => assertOpposite(light, await looks(page)));
      await openSignedIn(page, service, '/?warnings=all');
      await eventually(async () => assertOpposite(light, await looks(page)));
      await page.getByRole('button', { name: 'Switch to light' }).click();
      await eventually(async () => assert.equal((await looks(page)).ground, light.ground));
    },
  );
});
