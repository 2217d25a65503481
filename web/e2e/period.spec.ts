import type { Period } from '../src/data/period';
import { dayCount, expectCompared, expectFigures, expectFiguresOf, lastDays, plusDays, previous, query, today } from './expected';
import { fetchBatches, serve } from './service';
import { button, chart, drawn, expect, field, keyFigures, loaded, openSignedIn, test, type Page } from './test';

const expectPeriod = async (page: Page, { from, to }: Period): Promise<void> => {
  await expect(field(page, 'From')).toHaveValue(from);
  await expect(field(page, 'To')).toHaveValue(to);
};
const search = (page: Page): string => new URL(page.url()).search;

test('the default period is the last 90 days', async ({ page, demo }) => {
  await openSignedIn(page, demo);
  await expectPeriod(page, lastDays(90));
  await expectFiguresOf(page, demo, lastDays(90));
});

test('the counts are compared with the previous period, and the rates with what is usual', async ({ page, demo }) => {
  const period = lastDays(30, plusDays(today(), -100));
  await openSignedIn(page, demo, `/${query(period)}`);
  await expectFiguresOf(page, demo, period);
  await expectCompared(page, await fetchBatches(demo, previous(period)));
});

test('this year is compared with the same days of last year', async ({ page }) => {
  const year = Number(today().slice(0, 4));
  const batches = (count: number, year: number) =>
    Array.from({ length: count }, (_, at) => ({
      batch_id: `${year}-${at}`,
      batch_creation_date: `${year}-01-01T00:00:00.${100 + at}Z`,
    }));
  const service = await serve('Years', [...batches(12, year), ...batches(1, year - 1)]);
  await openSignedIn(page, service, '/?window=this-year');
  await expect(page.getByText(/^Before: the previous period, 1 Jan/)).toBeVisible();
  expect((await keyFigures(page))['Batches']).toEqual({ value: '12', compared: '1 before' });
});

test('a day is compared with the same weekday a week earlier', async ({ page, demo }) => {
  await openSignedIn(page, demo, `/${query({ from: '2026-03-09', to: '2026-03-09' })}`);
  await expect(page.getByText(/the day a week earlier, Monday,? 2 Mar 2026\./)).toBeVisible();
});

test('the previous period may be empty', async ({ page, demo }) => {
  const [first] = await fetchBatches(demo, { from: '1900-01-01', to: today() });
  const day = first!.batch_creation_date.slice(0, 10);
  await openSignedIn(page, demo, `/${query({ from: day, to: plusDays(day, 9) })}`);
  await expect.poll(async () => (await keyFigures(page))['Batches']?.compared).toBe('0 before');
});

test('invalid dates are reported and removed from the URL', async ({ page, demo }) => {
  const notice = page.getByText('The dates in this link are invalid. They were ignored.');
  const invalid = ['?from=2026-03-09&to=2026-03-02', '?from=yesterday&to=today', '?from=1900-01-01&to=2026-01-01'];
  for (const dates of [...invalid, '?from=2026-03-02']) {
    await openSignedIn(page, demo, `/${dates}&warnings=with`);
    await expect(notice).toBeVisible();
    expect(search(page), dates).toBe('?window=90d&warnings=with');
    await expectPeriod(page, lastDays(90));
  }
  await button(page, 'Dismiss').click();
  await expect(notice).toBeHidden();
});

test('From after To is reported, and setting To fixes it', async ({ page, demo }) => {
  const period = { from: plusDays(today(), -200), to: plusDays(today(), -180) };
  await openSignedIn(page, demo, `/${query(period)}`);
  const later = { from: plusDays(today(), -50), to: plusDays(today(), -40) };
  await field(page, 'From').fill(later.from);
  await expect(page.getByRole('alert')).toContainText('“From” is after “To”');
  expect(search(page)).toBe(query(period));
  await field(page, 'To').fill(later.to);
  await expect.poll(() => search(page)).toBe(query(later));
  await expect(page.getByRole('alert')).toHaveCount(0);
  await field(page, 'To').fill('');
  await field(page, 'Search').focus();
  await expectPeriod(page, later);
});

test('each preset sets its period', async ({ page, demo }) => {
  await openSignedIn(page, demo);
  const year = Number(today().slice(0, 4));
  const thisWeek = lastDays(((new Date(today()).getUTCDay() + 6) % 7) + 1);
  const month = `${today().slice(0, 8)}01`;
  const lastMonth = plusDays(month, -1);
  const presets = {
    Yesterday: lastDays(1, plusDays(today(), -1)),
    'This week': thisWeek,
    'Last week': lastDays(7, plusDays(thisWeek.from, -1)),
    'Since Friday': lastDays(((new Date(today()).getUTCDay() + 2) % 7) + 1),
    'This month': { from: month, to: today() },
    'Last month': { from: `${lastMonth.slice(0, 8)}01`, to: lastMonth },
    'Last 30 days': lastDays(30),
    'Last 365 days': lastDays(365),
    'This year': { from: `${year}-01-01`, to: today() },
    'Last year': { from: `${year - 1}-01-01`, to: `${year - 1}-12-31` },
    'Last 90 days': lastDays(90),
  };
  for (const [name, period] of Object.entries(presets)) {
    await button(page, name).click();
    await expectPeriod(page, period);
    await expect(button(page, name)).toHaveAttribute('aria-pressed', 'true');
    await loaded(page);
    // Nothing may be scanned on one day.
    const batches = await fetchBatches(demo, period);
    if (batches.length > 0) await expectFigures(page, batches);
  }
});

test('the page opens with the preset used last, unless the address has a period', async ({ page, demo }) => {
  await openSignedIn(page, demo);
  expect(search(page)).toBe('?window=90d');
  await button(page, 'This month').click();
  await page.goto(demo.url);
  await expect.poll(() => search(page)).toBe('?window=this-month');
  await page.goto(`${demo.url}/?window=30d`);
  await expectPeriod(page, lastDays(30));
});

test('From and To set the period and the URL', async ({ page, demo }) => {
  await openSignedIn(page, demo);
  const period = { from: plusDays(today(), -200), to: plusDays(today(), -180) };
  await field(page, 'From').fill(period.from);
  await field(page, 'To').fill(period.to);
  await expect.poll(() => search(page)).toBe(query(period));
  await loaded(page);
  await expectFiguresOf(page, demo, period);
});

test('dragging over the rates chart zooms to the dates', async ({ page, demo }) => {
  await openSignedIn(page, demo);
  await drawn(page);
  await chart(page, 'rates').scrollIntoViewIfNeeded();
  const box = (await chart(page, 'rates').boundingBox())!;
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * 0.4, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, y, { steps: 5 });
  await page.mouse.up();
  const whole = lastDays(90);
  await expect(field(page, 'From')).not.toHaveValue(whole.from);
  const period = { from: await field(page, 'From').inputValue(), to: await field(page, 'To').inputValue() };
  // A fifth of the chart, which also contains the axis.
  expect(dayCount(period)).toBeGreaterThanOrEqual(90 * 0.19);
  expect(dayCount(period)).toBeLessThanOrEqual(90 * 0.27);
  expect(period.from > plusDays(whole.from, 25) && period.to < plusDays(whole.to, -25)).toBe(true);
  expect(search(page)).toBe(query(period));
  await expectFiguresOf(page, demo, period);
  await page.goBack();
  await expectFiguresOf(page, demo, whole);
});
