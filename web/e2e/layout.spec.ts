// Narrow, low and dark screens.
import { lastDays } from './expected';
import { fetchBatches } from './service';
import {
  button,
  drawn,
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

const CHARTS = ['rates', 'comparison', 'distribution', 'uniformity', 'activity'];

/** Controls that cannot be scrolled into view and clicked, and a page wider than the screen. */
async function layoutProblems(page: Page, within = page.locator('body')): Promise<string[]> {
  const { width } = page.viewportSize()!;
  return within.evaluate((within, width) => {
    const problems: string[] = [];
    const pageWidth = Math.max(document.documentElement.scrollWidth, document.body.scrollWidth);
    if (pageWidth > width) problems.push(`the page is ${pageWidth} px wide`);
    const controls = [...within.querySelectorAll<HTMLElement>('a[href], button, input, select, summary')].filter(
      (control) => control.checkVisibility() && !control.matches(':disabled, .skip'),
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

interface Appearance {
  brightness: number;
  images: string[];
}

/** The brightness of the background, and the images of the charts. */
async function appearance(page: Page): Promise<Appearance> {
  const images: string[] = [];
  for (const name of CHARTS) images.push(await drawn(page, name));
  const colour = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const [red, green, blue] = colour.match(/\d+/g)!.map(Number) as [number, number, number];
  return { brightness: (red + green + blue) / 3, images };
}

async function expectDark(page: Page, light: Appearance): Promise<void> {
  expect(light.brightness).toBeGreaterThan(200);
  await expect(async () => {
    const dark = await appearance(page);
    expect(dark.brightness).toBeLessThan(60);
    for (const [at, image] of dark.images.entries()) expect(image !== light.images[at], CHARTS[at]).toBe(true);
  }).toPass({ timeout: 120_000 });
}

test('the table ends above the footer at any window height', async ({ page, demo }) => {
  await openSignedIn(page, demo, '/batches');
  for (const height of [500, 700, 840, 1100]) {
    await page.setViewportSize({ width: 1280, height });
    const table = (await grid(page).locator('..').boundingBox())!;
    const footer = (await page.getByRole('contentinfo').boundingBox())!;
    expect(table.y + table.height, `${height} px`).toBeLessThanOrEqual(footer.y);
  }
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
    await openSignedIn(page, demo, '/?warnings=all');
    await drawn(page);
    expect(await layoutProblems(page), 'overview').toEqual([]);
    await page.getByRole('button', { name: /Filters/ }).tap();
    expect(await layoutProblems(page), 'overview with open filters').toEqual([]);
    expect(await layoutProblems(page, await openMenu(page, 'Crop')), 'crop menu').toEqual([]);
    await page.keyboard.press('Escape');
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
    await expect(field(page, 'From')).toBeHidden();
    await field(page, 'Search').fill('no such batch');
    await expect(message(page, 'No batches match your filters')).toBeVisible();
  });

  test('unusual batches come first, and a preset closes the filters', async ({ page, demo }) => {
    await openSignedIn(page, demo);
    const top = async (name: string): Promise<number> => (await region(page, name).boundingBox())!.y;
    expect(await top('Unusual batches')).toBeLessThan(await top('Key figures'));
    const filters = page.getByRole('button', { name: /Filters/ });
    await filters.tap();
    await button(page, 'Last 30 days').tap();
    await expect(filters).toHaveText(/Last 30 days/);
    await expect(filters).toHaveAttribute('aria-expanded', 'false');
    await expect(filters).toBeFocused();
    await button(page, 'Yesterday').tap();
    await expect(filters).toHaveText(/Yesterday/);
  });
});

test.describe('in German', () => {
  test.use({ locale: 'de-DE' });

  test('column names have at most two lines, inside their columns', async ({ page, demo }) => {
    await openSignedIn(page, demo, '/batches');
    const problems = await page.locator('th').evaluateAll((all) =>
      all
        .filter((th) => {
          const [box, text] = [th, th.querySelector('span')!].map((node) => node.getBoundingClientRect());
          return text!.height > 36 || text!.left < box!.left || text!.right > box!.right - 2;
        })
        .map((th) => th.textContent),
    );
    expect(problems).toEqual([]);
  });

  test('the key figures fit on a phone', async ({ page, demo }) => {
    await page.setViewportSize({ width: 360, height: 740 });
    await openSignedIn(page, demo);
    const figures = region(page, 'Kennzahlen').locator('dl > div');
    await expect(figures.nth(1)).toContainText('vorher');
    await expect(figures.nth(2)).toContainText(/üblich/i);
    expect(await figures.evaluateAll((all) => all.filter((node) => node.scrollWidth > node.clientWidth))).toEqual([]);
  });
});

test.describe('dark mode', () => {
  test.use({ colorScheme: 'light' });

  test('follows the system, charts included', async ({ page, demo }) => {
    await openSignedIn(page, demo);
    const light = await appearance(page);
    await page.emulateMedia({ colorScheme: 'dark' });
    await expectDark(page, light);
  });

  test('can be switched on, charts included, and is remembered', async ({ page, demo }) => {
    await openSignedIn(page, demo);
    const light = await appearance(page);
    await button(page, 'Switch to dark').click();
    await expectDark(page, light);
    await openSignedIn(page, demo, '/?warnings=all');
    await expectDark(page, light);
    await button(page, 'Switch to light').click();
    await expect.poll(async () => (await appearance(page)).brightness).toBe(light.brightness);
  });
});
