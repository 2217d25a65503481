import { Database, type Service } from './service';
import {
  button,
  expect,
  goSignedIn,
  heading,
  link,
  loaded,
  message,
  openSignedIn,
  region,
  signIn,
  test,
} from './test';

async function serveTwoOrganisations(): Promise<{ first: Service; second: Service }> {
  const database = new Database();
  // Outside the default period, so that all batches are searched for it.
  const batch = { batch_creation_date: '2020-01-31T08:00:00Z' };
  const first = database.addOrganisation('First', [{ ...batch, batch_id: 'secret-1', batch_name: 'Secret tray' }]);
  const second = database.addOrganisation('Second', [{ ...batch, batch_id: 'other-1', batch_name: 'Other' }]);
  const service = await database.serve(first);
  return { first: service, second: { ...service, ...second } };
}

test('client ID and secret sign in to the start page, and the field has the focus', async ({ page, demo }) => {
  await page.goto(demo.url);
  await expect(page.getByLabel('Client ID')).toBeFocused();
  await signIn(page, demo);
  await loaded(page);
  await expect(region(page, 'Germination, last four weeks')).toBeVisible();
});

test('the requested URL is shown after signing in', async ({ page, demo }) => {
  await page.goto(`${demo.url}/batches?warnings=with`);
  await signIn(page, demo);
  await expect(heading(page, 'Batches')).toBeVisible();
  await expect(page).toHaveURL(`${demo.url}/batches?window=90d&warnings=with`);
});

test('the link of the demo signs in, and the secret is in neither URL nor history', async ({ page, context, demo }) => {
  await page.goto(demo.link);
  await loaded(page);
  await link(page, 'Batches').click();
  await expect(heading(page, 'Batches')).toBeVisible();
  const debug = await context.newCDPSession(page);
  const { entries } = await debug.send('Page.getNavigationHistory');
  const urls = entries.map(({ url }) => url).filter((url) => url !== 'about:blank');
  expect(urls).toEqual([`${demo.url}/`, `${demo.url}/batches?window=90d`]);
  await page.goBack();
  await loaded(page);
});

test('the link works in a tab that already shows the dashboard', async ({ page, demo }) => {
  await page.goto(demo.url);
  await expect(heading(page, 'Sign in')).toBeVisible();
  await page.goto(demo.link);
  await loaded(page);
  await expect(page).toHaveURL(`${demo.url}/`);
});

test('the secret is not in storage, cookies or the page, and scripts cannot read the cookie', async ({
  page,
  context,
  demo,
}) => {
  await page.goto(demo.url);
  await page.getByLabel('Keep me signed in').check();
  await signIn(page, demo);
  await loaded(page);
  const stored = await page.evaluate(() => [
    JSON.stringify({ ...localStorage, ...sessionStorage }),
    document.documentElement.outerHTML,
    ...[...document.querySelectorAll('input')].map((input) => input.value),
    location.href,
    JSON.stringify(history.state),
  ]);
  stored.push(JSON.stringify(await context.storageState({ indexedDB: true })));
  expect(stored.filter((text) => text.includes(demo.clientSecret))).toEqual([]);
  expect(await page.evaluate(() => document.cookie)).toBe('');
  const [cookie, ...others] = await context.cookies(`${demo.url}/session`);
  expect(cookie).toMatchObject({ name: 'batchscan_session', path: '/session', httpOnly: true, sameSite: 'Strict' });
  expect(cookie!.expires).toBeGreaterThan(Date.now() / 1000 + 80 * 86_400);
  expect(others).toEqual([]);
});

test('a reload, a new tab and a bookmark keep the session', async ({ page, context, demo }) => {
  await page.goto(demo.url);
  await signIn(page, demo);
  await loaded(page);
  await expect(page.getByRole('contentinfo')).toContainText('Green Valley Nursery');
  await page.reload();
  await loaded(page);
  const tab = await context.newPage();
  await tab.goto(`${demo.url}/batches?window=30d`);
  await expect(heading(tab, 'Batches')).toBeVisible();
  await loaded(tab);
  // Without "Keep me signed in", the cookie ends with the browser.
  expect((await context.cookies(`${demo.url}/session`))[0]!.expires).toBe(-1);
});

test('many tabs that renew at the same time stay signed in', async ({ page, context, demo }) => {
  await openSignedIn(page, demo);
  const tabs = await Promise.all(Array.from({ length: 4 }, () => context.newPage()));
  for (let round = 0; round < 3; round++) {
    await Promise.all(tabs.map((tab) => tab.goto(demo.url)));
    for (const tab of tabs) await loaded(tab);
  }
});

test('signing out ends the session at the service', async ({ page, context, demo }) => {
  await page.goto(demo.url);
  await page.getByLabel('Keep me signed in').check();
  await signIn(page, demo);
  await loaded(page);
  const cookies = await context.cookies(`${demo.url}/session`);
  await button(page, 'Sign out').click();
  await expect(heading(page, 'Sign in')).toBeVisible();
  await expect.poll(() => context.cookies(`${demo.url}/session`)).toEqual([]);
  await context.addCookies(cookies);
  expect((await context.request.post(`${demo.url}/session/token`)).status()).toBe(401);
  await page.reload();
  await expect(heading(page, 'Sign in')).toBeVisible();
  await page.goBack().catch(() => null);
  await expect(region(page, 'Germination')).toHaveCount(0);
});

test('signing out is for all tabs', async ({ page, context, demo }) => {
  await openSignedIn(page, demo);
  const other = await context.newPage();
  await openSignedIn(other, demo, '/batches');
  await button(page, 'Sign out').click();
  await expect(heading(other, 'Sign in')).toBeVisible();
  expect(new URL(other.url()).pathname).toBe('/');
});

test.describe('with two organisations', () => {
  test.use({ allowedErrors: /404/ });

  test('nothing of one organisation is left when another signs in', async ({ page }) => {
    const { first, second } = await serveTwoOrganisations();
    await goSignedIn(page, first, '/batches/secret-1');
    await expect(heading(page, 'Secret tray')).toBeVisible();
    await goSignedIn(page, second, '/batches/secret-1');
    await expect(message(page, 'Batch not found')).toBeVisible();
    expect(await page.content()).not.toContain('Secret tray');
  });

  test('the later of two concurrent sign-ins wins', async ({ page }) => {
    const { first, second } = await serveTwoOrganisations();
    let release = (): void => {};
    const delay = new Promise<void>((resolve) => (release = resolve));
    await page.route('**/session', async (route) => {
      if (route.request().postData()?.includes(first.clientId)) await delay;
      // The page may have aborted the request.
      await route.continue().catch(() => null);
    });
    await goSignedIn(page, first, '/batches/secret-1');
    await goSignedIn(page, second, '/batches/secret-1');
    await expect(message(page, 'Batch not found')).toBeVisible();
    release();
    await link(page, 'Today').click();
    await loaded(page);
    await page.goBack();
    await expect(message(page, 'Batch not found')).toBeVisible();
    expect(await page.content()).not.toContain('Secret tray');
  });
});

test.describe('failures', () => {
  test.use({ allowedErrors: /status of 401|ERR_INTERNET_DISCONNECTED/ });

  test('a link for a grower signs in once, and the session stays', async ({ page, context }) => {
    const database = new Database();
    const service = await database.serve(database.addOrganisation('Nursery', []));
    const link = database.signInLink(service);
    await page.goto(link);
    await expect(page.getByRole('contentinfo')).toContainText('Nursery');
    expect(page.url()).not.toContain('sign-in-link');
    await page.reload();
    await expect(page.getByRole('contentinfo')).toContainText('Nursery');
    await context.clearCookies();
    await page.goto('about:blank');
    await page.goto(link);
    await expect(page.getByText('This sign-in link was already used or has expired.')).toBeVisible();
  });

  test('a wrong secret is reported, and the right one then signs in', async ({ page, demo }) => {
    await page.goto(demo.url);
    await signIn(page, { ...demo, clientSecret: 'not-the-secret' });
    await expect(page.getByRole('alert')).toContainText('Wrong user name or password');
    await expect(page.getByLabel('Client ID')).toHaveValue(demo.clientId);
    await expect(page.getByLabel('Client secret')).toHaveValue('');
    await signIn(page, demo);
    await loaded(page);
  });

  test('a link with wrong credentials is reported, and the user stays signed in', async ({ page, demo }) => {
    await openSignedIn(page, demo);
    await page.goto(`${demo.url}/#sign-in=${demo.clientId}:not-the-secret`);
    const notice = page.getByText('Sign-in link failed. Wrong user name or password.');
    await expect(notice).toBeVisible();
    await expect(page).toHaveURL(`${demo.url}/`);
    await button(page, 'Dismiss').click();
    await expect(notice).toBeHidden();
    await button(page, 'Refresh').click();
    await loaded(page);
  });

  test('a sign-in without a network is reported, and works when it is back', async ({ page, context, demo }) => {
    await page.goto(demo.url);
    await expect(heading(page, 'Sign in')).toBeVisible();
    await context.setOffline(true);
    await signIn(page, demo);
    await expect(page.getByRole('alert')).toContainText('unreachable');
    await context.setOffline(false);
    await signIn(page, demo);
    await loaded(page);
  });
});
