// The test function of all specs. A test fails when its page sends a request to another origin, violates the
// Content-Security-Policy, or logs an unexpected error.
import { test as base, expect, type Locator, type Page } from '@playwright/test';
import type { Credentials } from '../src/data/url';
import { startDemo, type Demo, type Service } from './service';

export { expect, type Page };

interface Fixtures {
  /** Errors that the browser may log: it logs every status of 400 and above, and every failed connection. */
  allowedErrors: RegExp | null;
}

export const test = base.extend<Fixtures, { demo: Demo }>({
  allowedErrors: [null, { option: true }],
  demo: [
    async ({}, use) => {
      await use(await startDemo());
    },
    { scope: 'worker' },
  ],
  context: async ({ context, allowedErrors }, use) => {
    const errors: string[] = [];
    const origins = new Set<string>();
    context.on('request', (request) => {
      if (!request.url().startsWith('data:')) origins.add(new URL(request.url()).origin);
    });
    context.on('weberror', (error) => errors.push(`${error.error().message} ${error.error().stack}`));
    context.on('console', (message) => {
      const isError = message.type() === 'error' || message.type() === 'warning';
      if (isError && !allowedErrors?.test(message.text())) errors.push(message.text());
    });
    await context.addInitScript(() => {
      addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sourceFile, lineNumber }) =>
        console.error(`policy: ${violatedDirective} ${blockedURI} ${sourceFile}:${lineNumber}`),
      );
    });
    await use(context);
    expect(errors, 'logged errors').toEqual([]);
    expect([...origins].slice(1), 'requests to other origins').toEqual([]);
  },
});

// The dashboard by the names that users and screen readers get.

/** Opens a path with the fragment that signs in. */
export async function goSignedIn(page: Page, service: Service, path = '/'): Promise<void> {
  await page.goto(`${service.url}${path}#sign-in=${service.clientId}:${service.clientSecret}`);
}

/** Opens a path and waits for the batches. */
export async function openSignedIn(page: Page, service: Service, path = '/'): Promise<void> {
  await goSignedIn(page, service, path);
  await loaded(page);
}

export async function signIn(page: Page, { clientId, clientSecret }: Credentials): Promise<void> {
  await page.getByLabel('Client ID').fill(clientId);
  await page.getByLabel('Client secret').fill(clientSecret);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Waits until the whole period is loaded. */
export async function loaded(page: Page): Promise<void> {
  await expect(page.getByRole('button', { name: /^(Refresh|Aktualisieren)$/ }).first()).toBeVisible();
}

export const heading = (page: Page, name: string): Locator =>
  page.getByRole('heading', { level: 1, name, exact: true });
export const message = (page: Page, name: string): Locator => page.getByRole('heading', { level: 2, name });
export const link = (page: Page, name: string): Locator => page.getByRole('link', { name, exact: true });
export const button = (page: Page, name: string): Locator => page.getByRole('button', { name, exact: true });
export const region = (page: Page, name: string): Locator => page.getByRole('region', { name });
export const grid = (page: Page): Locator => page.getByRole('grid', { name: 'Batches' });
/** A field of the filters. */
export const field = (page: Page, name: string): Locator => page.getByRole('search').getByLabel(name, { exact: true });
export const warnings = (page: Page): Locator => page.getByRole('combobox', { name: 'Show' });
export const chart = (page: Page, name: string): Locator => page.locator(`[data-chart="${name}"]`);
export const cards = (page: Page): Locator => page.getByRole('list', { name: 'Batches that need a look' }).locator('> li');

/** The key figures of the analysis: label to value, as displayed. */
export async function keyFigures(page: Page): Promise<Record<string, string>> {
  const texts = await region(page, 'Key figures')
    .locator('dl > div')
    .evaluateAll((all) => all.map((figure) => [...figure.children].map((part) => part.textContent.trim())));
  return Object.fromEntries(texts.map(([label, value]) => [label!, value!]));
}

export async function batchCount(page: Page): Promise<number> {
  return Number((await keyFigures(page))['Batches']?.replace(/\D/g, '') ?? NaN);
}

/** Chooses a preset in the menu of the period. */
export async function choosePreset(page: Page, name: string): Promise<void> {
  await (await openMenu(page, 'Period')).getByRole('button', { name, exact: true }).click();
}

/** Waits until the table has that many rows, visible or not. */
export async function expectRows(page: Page, count: number): Promise<void> {
  await expect(grid(page)).toHaveAttribute('aria-rowcount', `${count + 1}`);
}

/** Opens a menu and returns its panel. */
export async function openMenu(page: Page, name: 'Crop' | 'Scanned by' | 'Columns' | 'Period'): Promise<Locator> {
  const opener = page.getByRole('button', { name: new RegExp(`^${name}`), expanded: false });
  const id = await opener.getAttribute('aria-controls');
  await opener.click();
  return page.locator(`[id="${id}"]`);
}
