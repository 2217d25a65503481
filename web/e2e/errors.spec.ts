// Expired sessions, an unavailable or unreachable service, and empty states.
import { plusDays, today } from './expected';
import { serve, startDemo, type Service } from './service';
import {
  batchCount,
  button,
  choosePreset,
  expect,
  expectRows,
  goSignedIn,
  heading,
  link,
  loaded,
  message,
  openSignedIn,
  region,
  signIn,
  test,
  type Page,
} from './test';

const BATCHES = 600;

/** A service with sixty pages, so that a load can be interrupted. */
function serveManyPages(...options: string[]): Promise<Service> {
  const batches = Array.from({ length: BATCHES }, (_, at) => ({
    batch_id: `b-${at}`,
    batch_creation_date: `${plusDays(today(), -Math.floor(at / 10))}T08:00:00Z`,
    crop_type: at % 2 === 0 ? 'Basil' : 'Leek',
    warnings: at % 50 === 0,
  }));
  return serve('Many pages', batches, '--page-size', '10', ...options);
}

/** Delays every response. Returns a function that ends it. */
async function slowDown(page: Page, latencyMs: number): Promise<() => Promise<unknown>> {
  const debug = await page.context().newCDPSession(page);
  const setLatency = (latency: number): Promise<unknown> =>
    debug.send('Network.emulateNetworkConditions', {
      offline: false,
      downloadThroughput: -1,
      uploadThroughput: -1,
      latency,
    });
  await setLatency(latencyMs);
  return () => setLatency(0);
}

async function openHalfway(page: Page, service: Service): Promise<void> {
  await goSignedIn(page, service, '/analysis');
  await expect.poll(() => batchCount(page)).toBeGreaterThanOrEqual(50);
}

const status = (page: Page) => region(page, 'Loading');

test('an empty organisation has its own message', async ({ page }) => {
  const service = await serve('Empty', []);
  await page.goto(service.url);
  await signIn(page, service);
  await expect(message(page, 'No batches in the last 365 days')).toBeVisible();
  await expect(page.getByText('Ask the person who gave you access')).toBeVisible();
  await expect(button(page, 'Refresh')).toHaveCount(1);
  await link(page, 'Batches').click();
  await expect(heading(page, 'Batches')).toBeVisible();
  await link(page, 'Look for earlier batches').click();
  await expect(message(page, 'No batches yet')).toBeVisible();
});

test('batches that are older than a year can be found', async ({ page }) => {
  const service = await serve('Older', [{ batch_id: 'a', batch_creation_date: `${plusDays(today(), -500)}T08:00:00Z` }]);
  await openSignedIn(page, service);
  await link(page, 'Look for earlier batches').click();
  await expectRows(page, 1);
});

test('an empty period shows when the latest batch was scanned, and opens that day', async ({ page }) => {
  const days = [plusDays(today(), -40), plusDays(today(), -50)];
  const service = await serve('Old', days.map((day) => ({ batch_id: day, batch_creation_date: `${day}T08:00:00Z` })));
  await openSignedIn(page, service);
  await expect(message(page, 'No batches in this period')).toBeVisible();
  await expect(page.getByText('The latest batch was scanned on')).toBeVisible();
  await link(page, 'Show that day').click();
  await expectRows(page, 1);
});

test.describe('with errors', () => {
  test.use({ allowedErrors: /status of (401|503)|ERR_(CONNECTION|EMPTY|SOCKET|INCOMPLETE)/ });

  test('an expired token is renewed while pages load', async ({ page }) => {
    const service = await serveManyPages('--token-ttl', '6s');
    await slowDown(page, 200);
    await goSignedIn(page, service, '/analysis?warnings=without');
    await expect.poll(() => batchCount(page)).toBe(BATCHES - BATCHES / 50);
    await expect(page.getByRole('dialog')).toHaveCount(0);
  });

  test('a session that ended opens a sign-in dialog, and loading then continues', async ({ page, context }) => {
    const service = await serveManyPages('--token-ttl', '6s');
    const restoreSpeed = await slowDown(page, 200);
    await goSignedIn(page, service, '/analysis?warnings=without');
    await expect.poll(() => batchCount(page)).toBeGreaterThan(0);
    await context.clearCookies();
    const dialog = page.getByRole('dialog');
    await expect(dialog.getByRole('heading', { name: 'Sign in again' })).toBeVisible();
    const partial = await batchCount(page);
    expect(partial).toBeLessThan(BATCHES);

    await page.keyboard.press('Escape');
    await expect(dialog).toHaveCount(0);
    expect(await batchCount(page)).toBe(partial);
    await button(page, 'Sign in again').click();
    await expect(dialog.getByLabel('Client ID')).toHaveValue(service.clientId);
    await expect(dialog.getByLabel('Client secret')).toBeFocused();
    await restoreSpeed();
    await dialog.getByLabel('Client secret').fill(service.clientSecret);
    await dialog.getByRole('button', { name: 'Sign in' }).click();
    await expect(dialog).toHaveCount(0);
    await expect.poll(() => batchCount(page)).toBe(BATCHES - BATCHES / 50);
    await expect(page).toHaveURL(`${service.url}/analysis?window=90d&warnings=without`);
  });

  test('loading continues after the service was down', async ({ page }) => {
    const service = await serveManyPages();
    const restoreSpeed = await slowDown(page, 60);
    await openHalfway(page, service);
    await service.stop('SIGKILL');
    await expect(status(page).getByText('The connection is lost')).toBeVisible();
    await expect(page.getByText('This page retries automatically.').first()).toBeVisible();
    expect(await batchCount(page)).toBeLessThan(BATCHES);
    await service.restart();
    await restoreSpeed();
    await loaded(page);
    expect(await batchCount(page)).toBe(BATCHES);
  });

  test('an unreachable service is reported, and the page recovers by itself', async ({ page }) => {
    const service = await serveManyPages();
    await openSignedIn(page, service, '/analysis?from=2020-01-01&to=2020-01-31');
    await service.stop('SIGKILL');
    await choosePreset(page, '90 days');
    await expect(message(page, 'The service is unreachable')).toBeVisible();
    await expect(page.getByText('This page retries automatically.').first()).toBeVisible();
    await service.restart();
    await loaded(page);
    expect(await batchCount(page)).toBe(BATCHES);
  });

  test('an unavailable service (503) is reported, and "Retry now" retries', async ({ page }) => {
    const service = await startDemo({ batches: 50, failRate: 1 });
    await page.goto(service.link);
    await expect(message(page, 'The service is unavailable')).toBeVisible();
    await expect(page.getByRole('main')).not.toContainText(/503|error|null|undefined/i);
    await expect(page.getByText('This page retries automatically.').first()).toBeVisible();
    // Sooner than the timer, if the machine is not busy.
    await expect(async () => {
      const request = page.waitForRequest(/\/v2\/batches/, { timeout: 2_500 });
      await button(page, 'Retry now').first().click();
      await request;
    }).toPass({ timeout: 120_000 });
  });

  test('a service that fails every other time is loaded completely', async ({ page }) => {
    const service = await startDemo({ failRate: 0.5 });
    await goSignedIn(page, service, `/analysis?from=${plusDays(today(), -364)}&to=${today()}`);
    const retry = button(page, 'Retry now').first();
    // It retries by itself; the click saves time.
    await page.addLocatorHandler(retry, () => retry.click({ timeout: 500 }).catch(() => {}), { noWaitAfter: true });
    await button(page, 'Refresh').click({ trial: true });
    await expect.poll(() => batchCount(page)).toBeGreaterThan(2_900);
  });
});
