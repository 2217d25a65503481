import type { Period } from '../src/data/period';
import { expectFigures, expectFiguresOf, lastDays, plusDays, query, today } from './expected';
import { fetchBatches } from './service';
import { choosePreset, expect, field, loaded, openMenu, openSignedIn, test, type Page } from './test';

/** The menu must be open. */
const expectPeriod = async (page: Page, { from, to }: Period): Promise<void> => {
  await expect(field(page, 'From')).toHaveValue(from);
  await expect(field(page, 'To')).toHaveValue(to);
};
const search = (page: Page): string => new URL(page.url()).search;

test('the default period is the last 90 days', async ({ page, demo }) => {
  await openSignedIn(page, demo, '/analysis');
  await openMenu(page, 'Period');
  await expectPeriod(page, lastDays(90));
  await expectFiguresOf(page, demo, lastDays(90));
});

test('invalid dates are removed from the URL', async ({ page, demo }) => {
  const invalid = ['?from=2026-03-09&to=2026-03-02', '?from=yesterday&to=today', '?from=1900-01-01&to=2026-01-01'];
  for (const dates of [...invalid, '?from=2026-03-02']) {
    await openSignedIn(page, demo, `/batches${dates}&warnings=with`);
    expect(search(page), dates).toBe('?window=90d&warnings=with');
  }
});

test('From after To is reported, and setting To fixes it', async ({ page, demo }) => {
  const period = { from: plusDays(today(), -200), to: plusDays(today(), -180) };
  await openSignedIn(page, demo, `/analysis${query(period)}`);
  const later = { from: plusDays(today(), -50), to: plusDays(today(), -40) };
  await openMenu(page, 'Period');
  await field(page, 'From').fill(later.from);
  await expect(page.getByRole('alert')).toContainText('“From” is after “To”');
  expect(search(page)).toBe(query(period));
  await field(page, 'To').fill(later.to);
  await expect.poll(() => search(page)).toBe(query(later));
  await expect(page.getByRole('alert')).toHaveCount(0);
  await field(page, 'To').fill('');
  await field(page, 'From').focus();
  await expectPeriod(page, later);
  await loaded(page);
  await expectFiguresOf(page, demo, later);
});

test('each preset sets its period', async ({ page, demo }) => {
  await openSignedIn(page, demo, '/analysis');
  const presets = { Today: 1, '7 days': 7, '30 days': 30, Year: 365, '90 days': 90 };
  for (const [name, days] of Object.entries(presets)) {
    await choosePreset(page, name);
    await expect(page.getByRole('button', { name: `Period ${name}` })).toBeVisible();
    await loaded(page);
    // Nothing may be scanned on one day.
    const batches = await fetchBatches(demo, lastDays(days));
    if (batches.length > 0) await expectFigures(page, batches);
  }
});

test('the page opens with the preset used last, unless the address has a period', async ({ page, demo }) => {
  await openSignedIn(page, demo, '/analysis');
  expect(search(page)).toBe('?window=90d');
  await choosePreset(page, '7 days');
  await page.goto(`${demo.url}/batches`);
  await expect.poll(() => search(page)).toBe('?window=7d');
  await page.goto(`${demo.url}/batches?window=30d`);
  await expect(page.getByRole('button', { name: 'Period 30 days' })).toBeVisible();
});
