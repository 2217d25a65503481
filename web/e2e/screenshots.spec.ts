// Takes the README's pictures (`npm run screenshots`). With ALL=1, every view on desktop and phone, in light and dark,
// into the folder of test results.
import { lastDays, plusDays, query, today } from './expected';
import { fetchBatches, startDemo } from './service';
import { drawn, goSignedIn, heading, loaded, message, test, type Page } from './test';

const DESKTOP = { viewport: { width: 1280, height: 860 } };
const TALL = { viewport: { width: 1280, height: 1240 } };
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

const all = ['sign-in', 'overview', 'table', 'batch', 'empty-period', 'unknown-batch'].flatMap((view) =>
  (['light', 'dark'] as const).flatMap((colorScheme) => [
    { name: `${view}-desktop-${colorScheme}`, view, colorScheme, device: DESKTOP },
    { name: `${view}-phone-${colorScheme}`, view, colorScheme, device: PHONE },
  ]),
);
const readme = [
  { name: 'overview', view: 'overview', colorScheme: 'light' as const, device: TALL },
  { name: 'table-dark', view: 'table', colorScheme: 'dark' as const, device: DESKTOP },
  { name: 'batch-phone', view: 'batch', colorScheme: 'light' as const, device: PHONE },
];
const isAll = process.env.ALL === '1';

for (const { name, view, colorScheme, device } of isAll ? all : readme) {
  test(name, async ({ browser }) => {
    const context = await browser.newContext({ ...device, colorScheme, reducedMotion: 'reduce', locale: 'en-GB' });
    const page = await context.newPage();
    await open(page, view);
    const path = isAll ? `node_modules/.cache/screenshots/${name}.png` : `../docs/pictures/${name}.png`;
    await page.screenshot({ path, fullPage: isAll });
    await context.close();
  });
}

async function open(page: Page, view: string): Promise<void> {
  const service = await (demo ??= startDemo({ seed: 1 }));
  const period = season();
  const batches = await fetchBatches(service, period);
  const batch = batches.filter(({ warnings, comment }) => warnings && comment !== null).at(-1) ?? batches.at(-1)!;
  switch (view) {
    case 'sign-in':
      await page.goto(service.url);
      return heading(page, 'Sign in').waitFor();
    case 'overview':
      await goSignedIn(page, service, `/${query(period)}`);
      await loaded(page);
      for (const chart of ['rates', 'comparison', 'distribution', 'uniformity', 'activity']) await drawn(page, chart);
      return page.evaluate(() => scrollTo(0, 0));
    case 'table':
      await goSignedIn(page, service, `/batches${query(period)}`);
      return loaded(page);
    case 'batch':
      await goSignedIn(page, service, `/batches/${batch.batch_id}${query(period)}`);
      await heading(page, batch.batch_name).waitFor();
      return page.getByText(/usual range/).first().waitFor();
    case 'empty-period':
      await goSignedIn(page, service, '/?from=2020-01-01&to=2020-01-31');
      return message(page, 'No batches in this period').waitFor();
    default:
      await goSignedIn(page, service, `/batches/unknown${query(period)}`);
      return message(page, 'Batch not found').waitFor();
  }
}

let demo: ReturnType<typeof startDemo> | undefined;

/** The last spring, when a nursery is busiest, if it is over. */
function season(): { from: string; to: string } {
  const year = today().slice(0, 4);
  const spring = { from: `${year}-03-01`, to: `${year}-05-31` };
  return spring.to < today() ? spring : lastDays(90, plusDays(today(), -7));
}
