// Takes the README's pictures of the dashboard: `npm run pictures -- DIR`. With --all, every view in light and dark, on a
// desk and on a phone, for looking at. Asserts nothing. The demo's batches end today, but the window does not hang on it:
// it is the last spring, when a nursery is busiest, as long as the demo's year holds all of it.
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { drawn, goSignedIn, heading, loaded } from './dashboard.mjs';
import { lastDays, plusDays, today } from './expected.mjs';
import { endAll, launched, READER, STEP_MS_MAX } from './harness.mjs';
import { batchesOf, demo } from './service.mjs';

const DESK = { viewport: { width: 1280, height: 860 } };
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

const { values, positionals } = parseArgs({
  options: { all: { type: 'boolean', default: false } },
  allowPositionals: true,
});
if (positionals.length !== 1) {
  console.error('Usage: npm run pictures -- DIR [--all]');
  process.exit(2);
}
const folder = resolve(positionals[0]);

try {
  await mkdir(folder, { recursive: true });
  const service = await demo({ seed: 1 });
  const views = await viewsOf(service);
  for (const { name, view, scheme, device } of values.all ? allPictures(views) : readmePictures()) {
    await take(service, views[view], { scheme, device, path: join(folder, `${name}.png`) });
  }
} finally {
  await endAll();
}

function readmePictures() {
  return [
    { name: 'overview', view: 'overview', scheme: 'light', device: DESK },
    { name: 'table-dark', view: 'table', scheme: 'dark', device: DESK },
    { name: 'batch-phone', view: 'batch', scheme: 'light', device: PHONE },
  ];
}

function allPictures(views) {
  const looks = ['light', 'dark'].flatMap((scheme) =>
    [
      ['desk', DESK],
      ['phone', PHONE],
    ].map(([at, device]) => ({ scheme, at, device })),
  );
  return Object.keys(views).flatMap((view) =>
    looks.map(({ scheme, at, device }) => ({ name: `${view}-${at}-${scheme}`, view, scheme, device })),
  );
}

/** Where each view is, and what to wait for. */
async function viewsOf(service) {
  const window = season();
  const query = `?from=${window.from}&to=${window.to}`;
  const batches = await batchesOf(service, window);
  const batch = batches.findLast(({ warnings, comment }) => warnings && comment !== null) ?? batches.at(-1);
  return {
    'sign-in': { path: '/', isOut: true, ready: (page) => heading(page, 'Sign in').waitFor() },
    overview: { path: `/${query}`, ready: (page) => loaded(page).then(() => drawAll(page)) },
    table: { path: `/batches${query}`, ready: loaded },
    batch: { path: `/batches/${batch.batch_id}${query}`, ready: (page) => heading(page, batch.batch_name).waitFor() },
    'empty-window': {
      path: '/?from=2020-01-01&to=2020-01-31',
      ready: (page) => page.getByRole('heading', { name: 'Nothing was scanned in this window' }).waitFor(),
    },
    'unknown-batch': {
      path: `/batches/unknown${query}`,
      ready: (page) => page.getByRole('heading', { name: 'There is no such batch' }).waitFor(),
    },
  };
}

function season() {
  const year = today().slice(0, 4);
  const spring = { from: `${year}-03-01`, to: `${year}-05-31` };
  return spring.to < today() ? spring : lastDays(90, plusDays(today(), -7));
}

async function drawAll(page) {
  for (const name of ['rates', 'distribution', 'uniformity', 'activity']) await drawn(page, name);
  await page.evaluate(() => scrollTo(0, 0));
}

async function take(service, view, { scheme, device, path }) {
  const context = await (
    await launched()
  ).newContext({ ...READER, ...device, colorScheme: scheme, deviceScaleFactor: 1, reducedMotion: 'reduce' });
  context.setDefaultTimeout(STEP_MS_MAX);
  const page = await context.newPage();
  if (view.isOut) await page.goto(service.url + view.path);
  else await goSignedIn(page, service, view.path);
  await view.ready(page);
  // The README shows what a screen shows; for looking at, the whole page.
  await page.screenshot({ path, fullPage: values.all });
  await context.close();
}
