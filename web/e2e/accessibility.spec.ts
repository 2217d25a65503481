// Keyboard and screen reader.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Locator } from '@playwright/test';
import type axe from 'axe-core';
import { lastDays } from './expected';
import { fetchBatches } from './service';
import {
  drawn,
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
    await expect(page.locator('html')).toHaveAttribute('data-theme', colorScheme);
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
      await openSignedIn(page, demo, '/?warnings=all');
      await drawn(page);
      expect(await violations(page), 'overview').toEqual([]);
      await page.locator('details > summary').first().click();
      await page.locator('[aria-expanded]:visible').first().click();
      expect(await violations(page), 'overview with an open menu and a chart as a table').toEqual([]);
      const day = batch.batch_creation_date.slice(0, 10);
      await openSignedIn(page, demo, `/?from=${day}&to=${day}`);
      await expect(page.getByRole('rowheader').filter({ hasText: batch.batch_name })).toBeVisible();
      expect(await violations(page), 'overview of a day').toEqual([]);
      await goSignedIn(page, demo, '/batches');
      await expect(page.getByText(batch.batch_name).first()).toBeVisible();
      expect(await violations(page), 'table').toEqual([]);
      await goSignedIn(page, demo, `/batches/${batch.batch_id}?warnings=all`);
      await expect(title).toHaveText(batch.batch_name);
      expect(await violations(page), 'batch').toEqual([]);
      await goSignedIn(page, demo, '/?from=2020-01-01&to=2020-01-31');
      await expect(page.getByRole('main').getByRole('heading', { level: 2 })).toHaveCount(1);
      expect(await violations(page), 'empty period').toEqual([]);
    });
  });
}

test('the keyboard alone signs in, filters, sorts, opens a batch and comes back', async ({ page, demo }) => {
  await page.goto(demo.url);
  await expect(heading(page, 'Sign in')).toBeVisible();
  await tabTo(page, page.getByLabel('Client ID'));
  await page.keyboard.type(demo.clientId);
  await tabTo(page, page.getByLabel('Client secret'));
  await page.keyboard.type(demo.clientSecret);
  await page.keyboard.press('Enter');
  await expect(heading(page, 'Overview')).toBeFocused();
  await loaded(page);

  const crop = page.getByRole('button', { name: /^Crop/ });
  await tabTo(page, crop, 'Shift+Tab');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  await expect(page.getByRole('checkbox').first()).toBeFocused();
  await page.keyboard.press('Space');
  await expect.poll(() => new URL(page.url()).searchParams.getAll('crop').length).toBe(1);
  await page.keyboard.press('Escape');
  await expect(crop).toHaveAttribute('aria-expanded', 'false');
  await expect(crop).toBeFocused();

  await tabTo(page, link(page, 'Batches'), 'Shift+Tab');
  await page.keyboard.press('Enter');
  await expect(heading(page, 'Batches')).toBeFocused();

  const sort = page.getByRole('button', { name: 'Germination rate' });
  await tabTo(page, sort);
  await page.keyboard.press('Enter');
  const header = page.getByRole('columnheader', { name: 'Germination rate' });
  await expect(header).toHaveAttribute('aria-sort', 'descending');
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
  await expect(heading(page, 'Overview')).toBeVisible();
  await page.reload();
  await loaded(page);
  await page.keyboard.press('Tab');
  await expect(link(page, 'Skip to content')).toBeFocused();
  expect(await focusProblem(page)).toBeNull();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('main')).toBeFocused();
  expect(new URL(page.url()).hash).toBe('');
});
