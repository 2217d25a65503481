// The dashboard as a reader meets it: where things are, by the names that people and screen readers get. Asserts
// nothing but that a page is there.

/** Goes to a place of the dashboard with the fragment that signs in, as the demo's link has it. */
export async function goSignedIn(page, service, path = '/') {
  await page.goto(`${service.url}${path}#sign-in=${service.clientId}:${service.clientSecret}`);
}

/** Goes there and waits for the batches. */
export async function openSignedIn(page, service, path = '/') {
  await goSignedIn(page, service, path);
  await loaded(page);
}

export async function signIn(page, { clientId, clientSecret }) {
  await page.getByLabel('Client id').fill(clientId);
  await page.getByLabel('Client secret').fill(clientSecret);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Waits until the whole window has come. */
export async function loaded(page) {
  await page.getByRole('button', { name: 'Reload' }).waitFor();
}

/** The headline figures: label to value and comparison, as written. */
export async function figures(page) {
  const figure = page.getByRole('region', { name: 'Headline figures' }).locator('dl > div');
  const texts = await figure.evaluateAll((all) =>
    all.map((one) => [...one.querySelectorAll('dt, dd')].map((part) => part.textContent.trim().replace(/\s+/g, ' '))),
  );
  return Object.fromEntries(texts.map(([label, value, change]) => [label, { value, change }]));
}

/** How many rows the table holds, in sight or not. */
export async function rowCount(page) {
  return Number(await page.getByRole('grid', { name: 'Batches' }).getAttribute('aria-rowcount')) - 1;
}

/** The fields among the filters; charts have labels too, and some begin with the same word. */
export const field = (page, name) => page.getByRole('search').getByLabel(name, { exact: true });

export const warnings = (page) => page.getByRole('combobox', { name: 'Warnings' });

/** Opens a menu and gives its panel. @param {'Crop' | 'Scanned by' | 'Columns'} name */
export async function openMenu(page, name) {
  const button = page.getByRole('button', { name: new RegExp(`^${name}`) });
  await button.click();
  return page.locator(`[id="${await button.getAttribute('aria-controls')}"]`);
}

/** The heading of a screen. */
export const heading = (page, name) => page.getByRole('heading', { level: 1, name, exact: true });

export const chart = (page, name) => page.locator(`[data-chart="${name}"]`);

/** Brings a chart into sight and waits until it is drawn; gives its picture. */
export async function drawn(page, name = 'rates') {
  await chart(page, name).scrollIntoViewIfNeeded();
  const picture = await page.waitForFunction((name) => {
    const canvas = document.querySelector(`[data-chart="${name}"] canvas`);
    if (canvas === null) return false;
    const blank = Object.assign(document.createElement('canvas'), { width: canvas.width, height: canvas.height });
    const picture = canvas.toDataURL();
    return picture !== blank.toDataURL() && picture;
  }, name);
  return picture.jsonValue();
}
