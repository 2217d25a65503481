// Keyboard and screen reader.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Locator } from '@playwright/test';
import type axe from 'axe-core';
import { lastDays } from './expected';
import { fetchBatches } from './service';
import {
  expect,
  goSignedIn,
  grid,
  heading,
  link,
  loaded,
  openSignedIn,
  signIn,
  test,
  type Page,
} from './test';

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds, in light and dark. */
async function violations(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    // Colours in transition would be wrong.
    await page.evaluate(() => Promise.all(document.getAnimations().map(({ finished }) => finished.catch(() => null))));
    await page.evaluate(axeSource);
    const results = await page.evaluate(() =>
      (globalThis as unknown as { axe: typeof axe }).axe.run(document, { resultTypes: ['violations'], preload: false }),
    );
    for (const { id, nodes } of results.violations)
      found.push(`${colorScheme}: ${id}: ${nodes[0]!.html.slice(0, 200)}. ${nodes[0]!.failureSummary}`);
  }
  return found;
}

/** Why the focus is not visible; null when it is. */
function focusProblem(page: Page): Promise<string | null> {
  return page.evaluate(() => {
    const focused = document.activeElement as HTMLElement | null;
    if (focused === document.body || focused === null) return 'the focus is lost';
    const hasRing = (element: Element | null): boolean =>
      element !== null && getComputedStyle(element).outlineStyle !== 'none';
    // A radio button may be drawn by its label; the calendar button in a date field is the browser's.
    const isCalendar = focused.matches('[type=date]:not(:focus)');
    if (!hasRing(focused) && !hasRing(focused.closest('label')) && !isCalendar)
      return `${focused.outerHTML} has no focus ring`;
    const { top, bottom, left, right } = focused.getBoundingClientRect();
    const isVisible = bottom > 0 && top < innerHeight && right > 0 && left < innerWidth;
    return isVisible ? null : `${focused.outerHTML} is outside the viewport`;
  });
}

// More than any view has before its table.
const TABS_MAX = 60;

/** Presses Tab until the target has the focus, which must be visible at every stop. */
async function tabTo(page: Page, target: Locator, key = 'Tab'): Promise<void> {
  for (let tabs = 0; tabs < TABS_MAX; tabs++) {
    await page.keyboard.press(key);
    expect(await focusProblem(page)).toBeNull();
    if (await target.evaluateAll((all) => all.includes(document.activeElement as HTMLElement))) return;
  }
  throw new Error(`${target} is not reached by ${TABS_MAX} tabs`);
}

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
for (const [name, options] of [
  ['on a desktop in English', {}],
  ['on a desktop in German', { locale: 'de-DE' }],
  ['on a phone in English', PHONE],
  ['on a phone in German', { ...PHONE, locale: 'de-DE' }],
] as const) {
  test.describe(name, () => {
    test.use(options);

    test('axe finds nothing on any view, in light or dark', async ({ page, demo }) => {
      const title = page.getByRole('heading', { level: 1 });
      const batch = (await fetchBatches(demo, lastDays(90))).at(-1)!;
      await page.goto(demo.url);
      await expect(title).toBeVisible();
      expect(await violations(page), 'sign-in').toEqual([]);
      await openSignedIn(page, demo);
      await expect(page.locator('[data-chart=crop]').first()).toBeVisible();
      expect(await violations(page), 'today').toEqual([]);
      await goSignedIn(page, demo, '/analysis');
      await expect(page.locator('[data-chart=rates] svg').first()).toBeVisible();
      expect(await violations(page), 'analysis').toEqual([]);
      await page.locator('details > summary').first().click();
      await page.locator('[aria-expanded]:visible').first().click();
      expect(await violations(page), 'analysis with an open menu and a chart as a table').toEqual([]);
      await goSignedIn(page, demo, '/batches');
      await expect(page.getByText(batch.batch_name).first()).toBeVisible();
      expect(await violations(page), 'table').toEqual([]);
      await goSignedIn(page, demo, `/batches/${batch.batch_id}`);
      await expect(title).toHaveText(batch.batch_name);
      expect(await violations(page), 'batch').toEqual([]);
      await goSignedIn(page, demo, '/analysis?from=2020-01-01&to=2020-01-31');
      await expect(page.getByRole('main').getByRole('heading', { level: 2 })).toHaveCount(1);
      expect(await violations(page), 'empty period').toEqual([]);
    });
  });
}

test('the keyboard alone signs in, filters, sorts, opens a batch and comes back', async ({ page, demo }) => {
  await page.goto(demo.url);
  await expect(page.getByLabel('Client ID')).toBeFocused();
  await page.keyboard.type(demo.clientId);
  await tabTo(page, page.getByLabel('Client secret'));
  await page.keyboard.type(demo.clientSecret);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { level: 1 })).toBeFocused();
  await loaded(page);

  await page.keyboard.press('/');
  await expect(page.getByRole('searchbox')).toBeFocused();
  await loaded(page);
  const crop = page.getByRole('search').getByRole('button', { name: /^Crop/ });
  await tabTo(page, crop);
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  await expect(page.getByRole('checkbox').first()).toBeFocused();
  await page.keyboard.press('Space');
  await expect.poll(() => new URL(page.url()).searchParams.getAll('crop').length).toBe(1);
  await page.keyboard.press('Escape');
  await expect(crop).toHaveAttribute('aria-expanded', 'false');
  await expect(crop).toBeFocused();

  const sort = page.getByRole('button', { name: 'Germination rate' });
  await tabTo(page, sort);
  await page.keyboard.press('Enter');
  const header = page.getByRole('columnheader', { name: 'Germination rate' });
  await expect(header).toHaveAttribute('aria-sort', 'ascending');
  await expect(sort).toBeFocused();

  await tabTo(page, grid(page).locator('tbody a'));
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  expect(await focusProblem(page)).toBeNull();
  const name = await page.locator(':focus').innerText();
  await page.keyboard.press('Enter');
  await expect(heading(page, name)).toBeFocused();
  await page.goBack();
  await expect(heading(page, 'Batches')).toBeFocused();
});

test('the first Tab offers to skip to the content', async ({ page, demo }) => {
  await page.goto(demo.url);
  await page.getByLabel('Keep me signed in').check();
  await signIn(page, demo);
  await loaded(page);
  await page.reload();
  await loaded(page);
  await page.keyboard.press('Tab');
  await expect(link(page, 'Skip to content')).toBeFocused();
  expect(await focusProblem(page)).toBeNull();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('main')).toBeFocused();
  expect(new URL(page.url()).hash).toBe('');

  // In the table, to the first row.
  await page.goto(`${demo.url}/batches`);
  await expect(grid(page).getByRole('link').first()).toBeVisible();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect(grid(page).getByRole('link').first()).toBeFocused();
});

test.describe('on a phone', () => {
  test.use(PHONE);

  test('every link and button is at least 24 pixels high', async ({ page, demo }) => {
    for (const path of ['/', '/batches', '/analysis']) {
      await openSignedIn(page, demo, path);
      await expect(page.getByRole('main').getByRole('link').first()).toBeVisible();
      const small = await page.locator('a[href], button, select, summary').evaluateAll((all) =>
        all.filter((node) => node.checkVisibility() && node.matches(':not(.skip, svg a)') && node.getBoundingClientRect().height < 24).map((node) => node.outerHTML.slice(0, 100)),
      );
      expect(small, path).toEqual([]);
    }
  });
});
