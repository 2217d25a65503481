// Narrow, low and dark screens.
import { lastDays, plusDays, today } from './expected';
import { nursery } from './nursery';
import { fetchBatches, serve } from './service';
import {
  button,
  expect,
  field,
  goSignedIn,
  grid,
  heading,
  link,
  message,
  openMenu,
  openSignedIn,
  region,
  test,
  type Page,
} from './test';

/** Controls that cannot be scrolled into view and clicked, and a page wider than the screen. */
async function layoutProblems(page: Page, within = page.locator('body')): Promise<string[]> {
  const { width } = page.viewportSize()!;
  return within.evaluate((within, width) => {
    const problems: string[] = [];
    const pageWidth = Math.max(document.documentElement.scrollWidth, document.body.scrollWidth);
    if (pageWidth > width) problems.push(`the page is ${pageWidth} px wide`);
    const controls = [...within.querySelectorAll<HTMLElement>('a[href], button, input, select, summary')].filter(
      // Dots in a chart may cover each other.
      (control) => control.checkVisibility() && !control.matches(':disabled, .skip, svg a'),
    );
    for (const control of controls) {
      control.scrollIntoView({ block: 'center', inline: 'end' });
      // A radio button may be drawn by its label.
      const target = control.matches('.visually-hidden') ? control.closest('label')! : control;
      const { left, right } = target.getBoundingClientRect();
      // A link may continue on the next line: the middle of both lines together is not part of it.
      const { left: start, top, width: wide, height } = target.getClientRects()[0]!;
      const hit = document.elementFromPoint(start + wide / 2, top + height / 2);
      const isHit = hit !== null && (target.contains(hit) || hit.closest('label')?.control === control);
      if (left < -1 || right > width + 1 || !isHit)
        problems.push(
          `${target.outerHTML.slice(0, 120)} at ${left} to ${right} px, under ${hit?.outerHTML.slice(0, 60)}`,
        );
    }
    scrollTo(0, 0);
    if (controls.length === 0) problems.push('no controls');
    return problems.slice(0, 10);
  }, width);
}

/** The brightness of the background, from 0 to 255. */
async function brightness(page: Page): Promise<number> {
  const colour = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const [red, green, blue] = colour.match(/\d+/g)!.map(Number) as [number, number, number];
  return (red + green + blue) / 3;
}

test('the table has 18 rows on a desktop, without a scroll box, and filters on one line', async ({ page, demo }) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  await openSignedIn(page, demo, '/batches');
  await expect(grid(page).getByRole('link').first()).toBeVisible();
  const { visible, boxes, wrapped } = await page.evaluate(() => {
    const rows = [...document.querySelectorAll('tr.batch')];
    return {
      visible: rows.filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length,
      boxes: [...document.querySelectorAll('main :not([popover])')].filter((node) => /auto|scroll/.test(getComputedStyle(node).overflowY)).length,
      wrapped: rows.filter((row) => row.getBoundingClientRect().height > 35).length,
    };
  });
  expect(visible).toBeGreaterThanOrEqual(18);
  expect([boxes, wrapped]).toEqual([0, 0]);
  expect((await page.getByRole('search').boundingBox())!.height).toBeLessThan(60);
  await page.mouse.wheel(0, 3_000);
  await expect(grid(page).getByRole('columnheader').first()).toBeInViewport();
});

test('the start page of a normal morning is at most 1.3 screens high on a desktop', async ({ page }) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  await openSignedIn(page, await serve('Normal', nursery('good')));
  await expect(region(page, 'Germination, last four weeks')).toBeVisible();
  expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBeLessThanOrEqual(1.3 * 900);
});

for (const locale of ['en-GB', 'en-US', 'de-DE']) {
  test.describe(`in ${locale}`, () => {
    test.use({ locale });

    test('the table is as wide as a small screen', async ({ page, demo }) => {
      // A search also shows the comments.
      for (const path of ['/batches', '/batches?warnings=all&q=house']) {
        await openSignedIn(page, demo, path);
        const hidden = await page.getByRole('grid').locator('..').evaluate((box) => box.scrollWidth - box.clientWidth);
        expect(hidden, path).toBe(0);
      }
    });
  });
}

test.describe('on a phone', () => {
  test.use({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });

  test('no view scrolls sideways, and every control can be reached', async ({ page, demo }) => {
    const [batch] = await fetchBatches(demo, lastDays(90));
    await page.goto(demo.url);
    await expect(heading(page, 'Sign in')).toBeVisible();
    expect(await layoutProblems(page), 'sign-in').toEqual([]);
    await openSignedIn(page, demo);
    await expect(region(page, 'Germination, last four weeks')).toBeVisible();
    expect(await layoutProblems(page), 'today').toEqual([]);
    await link(page, 'Analysis').tap();
    await expect(region(page, 'Size and uniformity')).toBeVisible();
    expect(await layoutProblems(page), 'analysis').toEqual([]);
    await page.getByRole('button', { name: /Filters/ }).tap();
    expect(await layoutProblems(page), 'analysis with open filters').toEqual([]);
    for (const menu of ['Crop', 'Period'] as const) {
      expect(await layoutProblems(page, await openMenu(page, menu)), menu).toEqual([]);
      await page.keyboard.press('Escape');
    }
    await link(page, 'Batches').tap();
    await expect(heading(page, 'Batches')).toBeVisible();
    await expect(page.getByRole('listitem').filter({ hasText: 'Germination' }).first()).toBeVisible();
    expect(await layoutProblems(page), 'cards').toEqual([]);
    await goSignedIn(page, demo, `/batches/${batch!.batch_id}?warnings=all`);
    await expect(heading(page, batch!.batch_name)).toBeVisible();
    expect(await layoutProblems(page), 'batch').toEqual([]);
    await button(page, 'Sign out').tap();
    await expect(heading(page, 'Sign in')).toBeVisible();
  });

  test('the search is not behind the filters', async ({ page, demo }) => {
    await openSignedIn(page, demo, '/batches');
    await expect(page.getByRole('button', { name: /^Period/ })).toBeHidden();
    await field(page, 'Search').fill('no such batch');
    await expect(message(page, 'No matches for “no such batch”.')).toBeVisible();
  });

  test('nothing moves while a page loads', async ({ page, demo }) => {
    await page.addInitScript(() => {
      const shifts = ((globalThis as unknown as { shifts: number[] }).shifts = []);
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) (shifts as number[]).push((entry as unknown as { value: number }).value);
      }).observe({ type: 'layout-shift', buffered: true });
    });
    const [batch] = await fetchBatches(demo, lastDays(30));
    for (const path of ['/', '/batches', '/analysis', `/batches/${batch!.batch_id}`]) {
      await goSignedIn(page, demo, path);
      await page.waitForLoadState('networkidle');
      const shifts = await page.evaluate(() => (globalThis as unknown as { shifts: number[] }).shifts);
      expect(shifts.reduce((sum, shift) => sum + shift, 0), path).toBeLessThan(0.05);
      await page.goto('about:blank');
    }
  });
});

test.describe('in German', () => {
  // An unknown batch.
  test.use({ locale: 'de-DE', allowedErrors: /404/ });

  test('long buttons and long words do not scroll a phone sideways', async ({ page }) => {
    await page.setViewportSize({ width: 360, height: 740 });
    const batches = Array.from({ length: 1_200 }, (_, at) => ({ batch_id: `b-${at}`, batch_name: 'Gurke', batch_creation_date: `${plusDays(today(), -30)}T00:00:00Z` }));
    const service = await serve('Long', [...batches, { batch_id: 'new', batch_creation_date: `${today()}T00:00:00Z` }]);
    await goSignedIn(page, service, '/batches?window=7d&q=gurken');
    await expect(button(page, 'In den letzten 365 Tagen suchen (1.200 Chargen)')).toBeVisible();
    expect(await layoutProblems(page)).toEqual([]);
    const word = 'Donaudampfschiff'.repeat(6);
    for (const path of [`/batches?q=${word}`, `/analysis?q=${word}`, `/batches/${word}`]) {
      await goSignedIn(page, service, path);
      await expect(page.getByText(`Keine Treffer für „${word}“`).or(page.getByText('Charge nicht gefunden'))).toBeVisible();
      expect(await layoutProblems(page), path).toEqual([]);
    }
  });

  test('column names have at most two lines, inside their columns', async ({ page, demo }) => {
    await openSignedIn(page, demo, '/batches');
    const problems = await page.locator('th').evaluateAll((all) =>
      all
        .filter((th) => {
          const range = document.createRange();
          range.selectNodeContents(th.querySelector('button')!);
          const [box, text] = [th, range].map((node) => node.getBoundingClientRect());
          return text!.height > 36 || text!.left < box!.left || text!.right > box!.right - 2;
        })
        .map((th) => th.textContent),
    );
    expect(problems).toEqual([]);
  });
});

test.describe('dark mode', () => {
  test.use({ colorScheme: 'light' });

  test('follows the system', async ({ page, demo }) => {
    await openSignedIn(page, demo);
    expect(await brightness(page)).toBeGreaterThan(200);
    await page.emulateMedia({ colorScheme: 'dark' });
    await expect.poll(() => brightness(page)).toBeLessThan(60);
    await page.emulateMedia({ colorScheme: 'light' });
    await expect.poll(() => brightness(page)).toBeGreaterThan(200);
  });
});
