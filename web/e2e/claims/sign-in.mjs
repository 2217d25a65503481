// Claims about signing in and out, and where the secret is not.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { figures, goSignedIn, heading, loaded, openSignedIn, signIn } from '../dashboard.mjs';
import { claim } from '../harness.mjs';
import { newDatabase, serve } from '../service.mjs';

async function twoNurseries() {
  const database = newDatabase();
  const batch = { batch_id: 'secret-1', batch_name: 'Secret tray', batch_creation_date: '2020-01-31T08:00:00Z' };
  const rest = { number_of_images: 1, warnings: false };
  const first = await database.organisation('First', [{ ...batch, ...rest }]);
  const second = await database.organisation('Second', [{ ...batch, ...rest, batch_id: 'other-1', batch_name: 'Other' }]);
  return { ...(await serve(database)), first, second };
}

describe('signing in', { concurrency: 2 }, () => {
  claim('a client id and its secret sign in, to the overview', {}, async ({ page, service }) => {
    await page.goto(service.url);
    await heading(page, 'Sign in').waitFor();
    await signIn(page, service);
    await heading(page, 'Overview').waitFor();
    await loaded(page);
    assert.notEqual((await figures(page)).Batches.value, '0');
  });

  claim(
    'a wrong secret has its own calm message, and a right one then signs in',
    { troubles: [/status of 401/] },
    async ({ page, service }) => {
      await page.goto(service.url);
      await signIn(page, { ...service, clientSecret: 'not-the-secret' });
      await page.getByRole('alert').getByText('The client id and the secret do not match').waitFor();
      assert.equal(await page.getByLabel('Client id').inputValue(), service.clientId, 'The id need not be typed again');
      assert.equal(await page.getByLabel('Client secret').inputValue(), '');
      await signIn(page, service);
      await heading(page, 'Overview').waitFor();
    },
  );

  claim(
    'the link that the demo prints signs in, and leaves neither address nor history with the secret',
    {},
    async ({ page, context, service }) => {
      await page.goto(service.link);
      await heading(page, 'Overview').waitFor();
      await loaded(page);
      await page.getByRole('link', { name: 'Batches', exact: true }).click();
      await heading(page, 'Batches').waitFor();
      const debug = await context.newCDPSession(page);
      const { entries } = await debug.send('Page.getNavigationHistory');
      assert.deepEqual(
        entries.map(({ url }) => url).filter((url) => url !== 'about:blank'),
        [`${service.url}/`, `${service.url}/batches`],
      );
      await page.goBack();
      await heading(page, 'Overview').waitFor();
      assert.equal(page.url(), `${service.url}/`);
    },
  );

  claim('the secret is in no storage, no cookie and nowhere in the page', {}, async ({ page, context, service }) => {
    await page.goto(service.url);
    await page.getByLabel('Stay signed in').check();
    await signIn(page, service);
    await loaded(page);
    const places = await page.evaluate(() => {
      const fields = [...document.querySelectorAll('input')].map((input) => input.value);
      return [
        JSON.stringify({ ...localStorage }),
        JSON.stringify({ ...sessionStorage }),
        document.documentElement.outerHTML,
        ...fields,
        location.href,
        JSON.stringify(history.state),
      ];
    });
    const kept = JSON.stringify(await context.storageState({ indexedDB: true }));
    for (const place of [...places, kept]) assert.ok(!place.includes(service.clientSecret), place.slice(0, 500));
    assert.deepEqual(await context.cookies(), []);
  });

  claim('signed in stays signed in over a reload when asked to, and not otherwise', {}, async ({ page, service }) => {
    await page.goto(service.url);
    await signIn(page, service);
    await heading(page, 'Overview').waitFor();
    await page.reload();
    await heading(page, 'Sign in').waitFor();

    await page.getByLabel('Stay signed in').check();
    await signIn(page, service);
    await heading(page, 'Overview').waitFor();
    await page.reload();
    await heading(page, 'Overview').waitFor();
    await loaded(page);
  });

  claim('signing out shows the sign-in and forgets what was kept', {}, async ({ page, service }) => {
    await page.goto(service.url);
    await page.getByLabel('Stay signed in').check();
    await signIn(page, service);
    await loaded(page);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await heading(page, 'Sign in').waitFor();
    assert.deepEqual(await page.evaluate(() => ({ ...sessionStorage })), {});
    await page.reload();
    await heading(page, 'Sign in').waitFor();
    await page.goBack().catch(() => null);
    assert.equal(await page.getByRole('region', { name: 'Headline figures' }).count(), 0);
  });

  claim(
    'without a network the sign-in says so, and works when it is back',
    { troubles: [/ERR_INTERNET_DISCONNECTED/] },
    async ({ page, context, service }) => {
      await page.goto(service.url);
      await context.setOffline(true);
      await signIn(page, service);
      await page.getByRole('alert').getByText('cannot be reached').waitFor();
      await context.setOffline(false);
      await page.getByLabel('Client secret').fill(service.clientSecret);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await heading(page, 'Overview').waitFor();
    },
  );

  claim('the link also works in a tab that shows the dashboard already', {}, async ({ page, service }) => {
    await page.goto(service.url);
    await heading(page, 'Sign in').waitFor();
    await page.goto(service.link);
    await heading(page, 'Overview').waitFor();
    assert.equal(page.url(), `${service.url}/`);
  });

  claim(
    'a link with wrong credentials leaves who is signed in signed in, and says so',
    { troubles: [/status of 401/] },
    async ({ page, service }) => {
      await openSignedIn(page, service);
      await page.goto(`${service.url}/#sign-in=${service.clientId}:not-the-secret`);
      const said = page.getByText('The sign-in link did not work: the client id and the secret do not match.');
      await said.waitFor();
      assert.equal(page.url(), `${service.url}/`);
      await page.getByRole('button', { name: 'Dismiss' }).click();
      await said.waitFor({ state: 'hidden' });
      await page.getByRole('button', { name: 'Last 365 days' }).click();
      await loaded(page);
      await heading(page, 'Overview').waitFor();
    },
  );

  claim('nothing of one organisation is left when another signs in', { at: twoNurseries }, async ({ page, service }) => {
    // Outside the window, so that it is looked for in all of the organisation.
    await goSignedIn(page, { ...service, ...service.first }, '/batches/secret-1');
    await heading(page, 'Secret tray').waitFor();
    await goSignedIn(page, { ...service, ...service.second }, '/batches/secret-1');
    await page.getByText('There is no such batch').waitFor();
    assert.ok(!(await page.content()).includes('Secret tray'));
  });

  claim('of two sign-ins under way the later one holds', { at: twoNurseries }, async ({ page, service }) => {
    let letGo;
    const held = new Promise((resolve) => (letGo = resolve));
    await page.route('**/v2/auth', async (route) => {
      if (route.request().postData().includes(service.first.clientId)) await held;
      // The page may have given it up by then.
      await route.continue().catch(() => null);
    });
    await goSignedIn(page, { ...service, ...service.first }, '/batches/secret-1');
    await goSignedIn(page, { ...service, ...service.second }, '/batches/secret-1');
    await page.getByText('There is no such batch').waitFor();
    letGo();
    await page.getByRole('link', { name: 'Overview', exact: true }).click();
    await loaded(page);
    await page.goBack();
    await page.getByText('There is no such batch').waitFor();
    assert.ok(!(await page.content()).includes('Secret tray'));
  });

  claim('the place that was asked for is shown after signing in', {}, async ({ page, service }) => {
    await page.goto(`${service.url}/batches?warnings=with`);
    await signIn(page, service);
    await heading(page, 'Batches').waitFor();
    assert.equal(page.url(), `${service.url}/batches?warnings=with`);
  });
});
