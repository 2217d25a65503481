// Claims about what goes wrong: a sign-in that expires, a service that dies or is busy, a reader who has had enough,
// nothing to show.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { figures, goSignedIn, heading, loaded, openSignedIn, signIn } from '../dashboard.mjs';
import { count, plusDays, today } from '../expected.mjs';
import { claim, eventually } from '../harness.mjs';
import { demo, newDatabase, serve } from '../service.mjs';

const BATCHES = 600;
const CUT_OFF = [
  /ERR_CONNECTION_REFUSED/,
  /ERR_CONNECTION_RESET/,
  /ERR_EMPTY_RESPONSE/,
  /ERR_SOCKET_NOT_CONNECTED/,
  /ERR_CONNECTION_CLOSED/,
  /ERR_INCOMPLETE_CHUNKED_ENCODING/,
];

let stored = null;
/** A database whose last ninety days come in sixty pages, so that there is a middle to be interrupted in. */
async function store() {
  const database = newDatabase();
  const batches = Array.from({ length: BATCHES }, (_, at) => ({
    batch_id: `b-${at}`,
    batch_name: `Batch ${at}`,
    batch_creation_date: `${plusDays(today(), -Math.floor(at / 10))}T08:00:00Z`,
    crop_type: at % 2 === 0 ? 'Basil' : 'Leek',
    number_of_images: 2,
    warnings: at % 50 === 0,
    avg_germination_rate: '90.00',
  }));
  return { database, credential: await database.organisation('Many pages', batches) };
}

/** A service over it that can die and come back at the same address. */
async function manyPages(flags = []) {
  const { database, credential } = await (stored ??= store());
  const all = ['--page-size', '10', ...flags];
  const service = await serve(database, { flags: all });
  return { ...service, ...credential, again: () => serve(database, { flags: all, port: service.port }) };
}

async function emptyNursery() {
  const database = newDatabase();
  const credential = await database.organisation('Empty', []);
  return { ...(await serve(database)), ...credential };
}

/** Makes every answer take that long more, as a thin line does; gives what ends it. */
async function slow(context, page, latencyMs) {
  const debug = await context.newCDPSession(page);
  const line = { offline: false, downloadThroughput: -1, uploadThroughput: -1 };
  const take = (latency) => debug.send('Network.emulateNetworkConditions', { ...line, latency });
  await take(latencyMs);
  return () => take(0);
}

const status = (page) => page.getByRole('region', { name: 'Loading' });
const part = async (page) => Number((await figures(page)).Batches.value.replace(/\D/g, ''));

async function openHalfway(page, service) {
  await goSignedIn(page, service);
  await eventually(async () => assert.ok((await part(page)) >= 50));
}

/** The seconds of the countdown; NaN when there is none. */
const countdown = async (page) => Number(/(\d+) sec/.exec(await page.locator('body').innerText())?.[1] ?? NaN);

async function countsDown(page) {
  const first = await eventually(async () => {
    const secs = await countdown(page);
    assert.ok(secs > 0, 'There is a countdown');
    return secs;
  });
  await eventually(async () => assert.notEqual(await countdown(page), first));
}

describe('trouble', { concurrency: 3 }, () => {
  claim(
    'an expired token asks for a sign-in over the view, Esc puts it off, and loading then goes on',
    { at: () => manyPages(['--token-ttl', '6s']), troubles: [/status of 401/] },
    async ({ page, context, service }) => {
      const fast = await slow(context, page, 200);
      await goSignedIn(page, service, '/?warnings=without');
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('heading', { name: 'Sign in again' }).waitFor();
      const had = await part(page);
      assert.ok(had > 0 && had < BATCHES, `${had} batches`);

      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });
      assert.equal(await part(page), had, 'What had come stays');
      await page.getByRole('button', { name: 'Sign in again' }).click();
      assert.equal(await dialog.getByLabel('Client id').inputValue(), service.clientId);
      await fast();
      await dialog.getByLabel('Client secret').fill(service.clientSecret);
      await dialog.getByRole('button', { name: 'Sign in' }).click();
      await dialog.waitFor({ state: 'detached' });
      await eventually(async () => assert.equal(await part(page), BATCHES - BATCHES / 50));
      assert.equal(page.url(), `${service.url}/?warnings=without`, 'The view stays');
      await heading(page, 'Overview').waitFor();
    },
  );

  claim(
    'a service that dies and comes back is waited for in plain words, and loading then goes on',
    { at: manyPages, troubles: CUT_OFF },
    async ({ page, context, service }) => {
      const fast = await slow(context, page, 60);
      await openHalfway(page, service);
      await service.stop('SIGKILL');
      await status(page).getByText('The connection is down').waitFor();
      await countsDown(page);
      const had = await part(page);
      assert.ok(had < BATCHES, 'What came before is still there, and not all of it had come');
      await service.again();
      await fast();
      await loaded(page);
      assert.equal(await part(page), BATCHES);
    },
  );

  claim(
    'a service that is down when asked for the first time says so, and "Try now" goes on when it is up',
    { at: manyPages, troubles: CUT_OFF },
    async ({ page, service }) => {
      await openSignedIn(page, service, '/?from=2020-01-01&to=2020-01-31');
      await service.stop('SIGKILL');
      await page.getByRole('button', { name: 'Last 90 days' }).click();
      await page.getByRole('heading', { name: 'The service cannot be reached' }).waitFor();
      await service.again();
      await page.getByRole('button', { name: 'Try now' }).first().click();
      await loaded(page);
      assert.equal(await part(page), BATCHES);
    },
  );

  claim(
    'a busy service (503) is told in plain words, with a countdown, and "Try now" tries at once',
    { at: () => demo({ batches: 50, failRate: 1 }), troubles: [/status of 503/] },
    async ({ page, service }) => {
      await page.goto(service.link);
      await page.getByRole('heading', { name: 'The service is not available at the moment' }).waitFor();
      assert.ok(!/503|error|null|undefined/i.test(await page.getByRole('main').innerText()));
      await countsDown(page);
      // Early in a wait, so that the next request is the button's and not the clock's.
      await eventually(async () => assert.ok((await countdown(page)) >= 3));
      const asked = page.waitForRequest(/\/v2\/batches/, { timeout: 2_500 });
      await page.getByRole('button', { name: 'Try now' }).first().click();
      await asked;
    },
  );

  claim(
    'a service that is busy every other time is loaded in the end',
    { at: () => demo({ batches: 3000, failRate: 0.5 }), troubles: [/status of 503/] },
    async ({ page, service }) => {
      await goSignedIn(page, service, `/?from=${plusDays(today(), -364)}&to=${today()}`);
      const again = page.getByRole('button', { name: 'Try now' }).first();
      // Sooner or later by itself; the reader of this one has no patience.
      await page.addLocatorHandler(again, () => again.click({ timeout: 500 }).catch(() => null), { noWaitAfter: true });
      await page.getByRole('button', { name: 'Reload' }).click({ trial: true, timeout: 20_000 });
      await eventually(async () => assert.ok((await part(page)) > 2_900));
    },
  );

  claim(
    'cancelling keeps what has come, says that it is a part, and the rest can be loaded',
    { at: manyPages },
    async ({ page, context, service }) => {
      const fast = await slow(context, page, 60);
      await openHalfway(page, service);
      await status(page).getByRole('button', { name: 'Cancel' }).click();
      await status(page).getByText('This is a part').first().waitFor();
      const had = await part(page);
      assert.ok(had >= 50 && had < BATCHES, `${had} batches`);
      assert.match(await status(page).innerText(), new RegExp(`${count(had)} batches`));
      await fast();
      await page.getByRole('button', { name: 'Load the rest' }).click();
      await loaded(page);
      assert.equal(await part(page), BATCHES);
    },
  );

  claim('an organisation without batches gets a screen of its own', { at: emptyNursery }, async ({ page, service }) => {
    await page.goto(service.url);
    await signIn(page, service);
    await page.getByRole('heading', { name: 'There are no batches yet' }).waitFor();
    await page.getByRole('link', { name: 'Batches', exact: true }).click();
    await heading(page, 'Batches').waitFor();
    await page.getByRole('heading', { name: 'There are no batches yet' }).waitFor();
  });

  claim('a window without batches says when the first one was', {}, async ({ page, service }) => {
    await openSignedIn(page, service, '/?from=2020-01-01&to=2020-01-31');
    await page.getByRole('heading', { name: 'Nothing was scanned in this window' }).waitFor();
    await page.getByText(/first batch was scanned on/).waitFor();
  });
});
