// What every claim runs in: one Chromium for all, a fresh context for each, and a watch over it. A claim fails, whatever
// it asserts, when its page asks any origin but the service's own, breaks the content security policy, or logs an
// error that was not foretold.
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { demo, stopAll } from './service.mjs';

/**
 * @typedef {import('playwright-core').Page} Page
 * @typedef {import('./service.mjs').Service} Service
 * @typedef {import('playwright-core').BrowserContext} Context
 * @typedef {import('node:test').TestContext} Test
 * @typedef {{ page: Page, context: Context, service: Service, t: Test }} Visit
 */

/** How long a step may take: the machine may be busy, and nothing here takes a tenth of it when it is not. */
export const STEP_MS_MAX = 10_000;
const CLAIM_MS_MAX = 45_000;

const FAILURES = join(tmpdir(), 'batchscan-e2e-failures');

// Days are UTC wherever the reader is: this one is half a day ahead.
export const READER = { locale: 'en-GB', timezoneId: 'Pacific/Auckland', viewport: { width: 1280, height: 860 } };

/** @type {Promise<import('playwright-core').Browser> | null} */
let browser = null;
export const launched = () => (browser ??= launch());

/** Ends the browser and every service. */
export async function endAll() {
  await (await browser)?.close();
  await stopAll();
}

let shared = null;
/**
 * The demo nursery that claims share, for none of them changes anything in it.
 * @returns {Promise<Service & { link: string }>}
 */
export const nursery = () => (shared ??= demo());

/**
 * Registers one claim. `at` starts a service of the claim's own; without it the nursery is shared. `troubles` are the
 * errors that the browser may log: it logs every answer of 400 and above, and every connection that fails.
 * @param {string} claim
 * @param {{ at?: () => Promise<Service>, troubles?: RegExp[], reader?: object, timeout?: number }} options
 * @param {(visit: Visit) => Promise<void>} body
 */
export function claim(claim, options, body) {
  const { at = nursery, troubles = [], reader = {}, timeout = CLAIM_MS_MAX } = options;
  test(claim, { timeout }, async (t) => {
    const service = await at();
    const context = await (await launched()).newContext({ ...READER, ...reader });
    t.after(async () => {
      await context.close();
      if (at !== nursery) await service.stop();
    });
    context.setDefaultTimeout(STEP_MS_MAX);
    const seen = await watch(context, new URL(service.url).origin, troubles);
    const page = await context.newPage();
    try {
      await body({ page, context, service, t });
    } catch (error) {
      await keepPicture(page, claim);
      throw error;
    }
    assert.deepEqual(seen, [], 'What the page must not do');
  });
}

/** Repeats assertions until they hold, or fails with the last reason. */
export async function eventually(check, limitMs = STEP_MS_MAX) {
  const end = Date.now() + limitMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
      await sleep(25);
    }
  }
}

function launch() {
  const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--no-proxy-server'];
  args.push('--disable-background-networking', '--disable-component-update', '--disable-sync');
  // Not a name in the world resolves: what the watch cannot see cannot get out either.
  args.push('--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1');
  return chromium.launch({ executablePath: '/usr/bin/chromium', args, timeout: 30_000 });
}

async function watch(context, origin, troubles) {
  const seen = [];
  const isOwn = (url) => new URL(url).origin === origin || url.startsWith('data:');
  context.on('request', (request) => isOwn(request.url()) || seen.push(`asked ${request.url()}`));
  context.on('weberror', (error) => seen.push(`threw ${error.error().stack}`));
  context.on('console', (message) => {
    const isBad = message.type() === 'error' || message.type() === 'warning';
    if (isBad && !troubles.some((known) => known.test(message.text()))) seen.push(`logged ${message.text()}`);
  });
  // Sent by the debugger, so that the policy it watches does not stop it.
  await context.addInitScript(() => {
    addEventListener('securitypolicyviolation', (event) => {
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`);
    });
  });
  return seen;
}

async function keepPicture(page, claim) {
  await mkdir(FAILURES, { recursive: true });
  const path = join(FAILURES, `${claim.replace(/[^a-z0-9]+/gi, '-').slice(0, 80)}.png`);
  const taken = await page.screenshot({ path, timeout: 3_000 }).then(
    () => true,
    () => false,
  );
  if (taken) console.error(`The page as it was: ${path}, at ${page.url()}`);
}
