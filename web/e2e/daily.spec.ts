// A page that stays open: new batches, outages, days and weeks.
import { today } from './expected';
import { Database, type Service } from './service';
import { batchCount, button, expect, openSignedIn, region, signIn, test } from './test';

const batch = (batch_id: string, day: string) => ({ batch_id, batch_creation_date: `${day}T08:00:00Z` });

async function serveOne(): Promise<{ database: Database; service: Service }> {
  const database = new Database();
  const service = await database.serve(database.addOrganisation('Daily', [batch('a', today())]));
  return { database, service };
}

test.use({ allowedErrors: /status of (401|503)|ERR_(CONNECTION|EMPTY|SOCKET|INCOMPLETE)/ });

test('new batches appear by themselves', async ({ page }) => {
  const { database, service } = await serveOne();
  await page.clock.install();
  await openSignedIn(page, service, '/analysis');
  expect(await batchCount(page)).toBe(1);
  database.importBatches('Daily', [batch('b', today())]);
  await page.clock.runFor(61_000);
  await expect.poll(() => batchCount(page)).toBe(2);
});

test('when the service is unreachable, the page shows the age of its batches, and recovers', async ({ page }) => {
  const { database, service } = await serveOne();
  await page.clock.install();
  await openSignedIn(page, service, '/analysis');
  await service.stop('SIGKILL');
  await page.clock.runFor(61_000);
  await expect(region(page, 'Loading')).toContainText('The connection is lost. Showing data from 1 minute ago.');
  expect(await batchCount(page)).toBe(1);
  await page.clock.runFor(10 * 60_000);
  await expect(region(page, 'Loading')).toContainText(/Showing data from \d\d minutes ago/);
  database.importBatches('Daily', [batch('b', today())]);
  await service.restart();
  await page.clock.runFor(31_000);
  await expect.poll(() => batchCount(page)).toBe(2);
  await expect(button(page, 'Refresh')).toBeVisible();
});

test('a page that is open for ten days, with restarts, shows current batches', async ({ page }) => {
  const { database, service } = await serveOne();
  const start = Date.now();
  await page.clock.install({ time: start });
  await page.goto(`${service.url}/analysis`);
  await page.getByLabel('Keep me signed in').check();
  await signIn(page, service);
  await expect.poll(() => batchCount(page)).toBe(1);
  for (let day = 1; day <= 10; day++) {
    if (day % 3 === 0) {
      await service.stop('SIGTERM');
      await page.clock.fastForward(12 * 3_600_000);
      await page.clock.runFor(61_000);
      await service.restart();
      await page.clock.fastForward(12 * 3_600_000);
    } else await page.clock.fastForward(24 * 3_600_000);
    const date = new Date(start + day * 86_400_000).toISOString().slice(0, 10);
    database.importBatches('Daily', [batch(`day-${day}`, date)]);
    await page.clock.runFor(125_000);
    await expect.poll(() => batchCount(page), { message: `day ${day}` }).toBe(1 + day);
  }
  await expect(page.getByRole('dialog')).toHaveCount(0);
});
