// Takes the README's pictures (`npm run screenshots`). With ALL=1, every page on every morning, on desktop and phone, in light
// and dark, in both languages, into the folder of test results.
import { fetchBatches, serve, type Service } from './service';
import { lastDays } from './expected';
import { MORNINGS, nursery, type Morning } from './nursery';
import { goSignedIn, loaded, test, type Page } from './test';

const DESKTOP = { viewport: { width: 1440, height: 900 } };
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
const PAGES = ['today', 'batches', 'analysis', 'batch', 'offline'] as const;

interface Picture {
  name: string;
  morning: Morning;
  view: (typeof PAGES)[number];
  colorScheme: 'light' | 'dark';
  device: typeof DESKTOP;
  locale: string;
}

const README: Picture[] = [
  { name: 'today', morning: 'bad', view: 'today', colorScheme: 'light', device: DESKTOP, locale: 'en-GB' },
  { name: 'table-dark', morning: 'bad', view: 'batches', colorScheme: 'dark', device: DESKTOP, locale: 'en-GB' },
  { name: 'batch-phone', morning: 'bad', view: 'batch', colorScheme: 'light', device: PHONE, locale: 'en-GB' },
];
const ALL: Picture[] = MORNINGS.flatMap((morning) =>
  PAGES.flatMap((view) =>
    (['light', 'dark'] as const).flatMap((colorScheme) =>
      ['en-GB', 'de-DE'].flatMap((locale) =>
        ([['desktop', DESKTOP], ['phone', PHONE]] as const).map(([screen, device]) => ({
          ...{ name: [morning, view, screen, colorScheme, locale.slice(0, 2)].join('-'), morning, view, colorScheme, locale, device },
        })),
      ),
    ),
  ),
);
const isAll = process.env.ALL === '1';
const services = new Map<Morning, Promise<Service>>();

for (const picture of isAll ? ALL : README) {
  const { name, colorScheme, device, locale } = picture;
  test(name, async ({ browser }) => {
    const context = await browser.newContext({ ...device, colorScheme, locale, timezoneId: 'Europe/Berlin', reducedMotion: 'reduce' });
    const page = await context.newPage();
    await open(page, picture);
    const path = isAll ? `node_modules/.cache/screenshots/${name}.png` : `../docs/pictures/${name}.png`;
    await page.screenshot({ path, fullPage: isAll && picture.view !== 'batches' });
    await context.close();
  });
}

async function open(page: Page, { morning, view }: Picture): Promise<void> {
  const start = services.get(morning) ?? serve('Green Valley Nursery', nursery(morning));
  services.set(morning, start);
  const service = await start;
  const last = (await fetchBatches(service, lastDays(7))).findLast(({ comment }) => comment !== null)?.batch_id ?? 'unknown';
  const paths = { today: '/', batches: '/batches', analysis: '/analysis', batch: `/batches/${last}`, offline: '/' };
  await goSignedIn(page, service, paths[view]);
  if (view === 'batch') await page.getByRole('heading', { level: 2 }).first().waitFor();
  else await loaded(page);
  await page.waitForLoadState('networkidle');
  await page.getByText(/^(Comparing|Wird verglichen)/).waitFor({ state: 'detached' });
  if (view !== 'offline') return;
  await page.context().setOffline(true);
  await page.getByRole('button', { name: /^(Refresh|Aktualisieren)$/ }).click();
  await page.getByRole('button', { name: /^(Retry now|Jetzt erneut versuchen)$/ }).first().waitFor();
}
