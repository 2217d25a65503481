import { defineConfig } from '@playwright/test';

const args = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-proxy-server',
  '--disable-background-networking',
];
// No name resolves, so that nothing can leave the machine.
args.push('--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1');

export default defineConfig({
  testDir: 'e2e',
  outputDir: 'node_modules/.cache/playwright',
  workers: 2,
  // These only end a test that hangs: a test waits for the page, never for a time.
  timeout: 600_000,
  expect: { timeout: 120_000 },
  reporter: 'list',
  use: {
    actionTimeout: 120_000,
    locale: 'en-GB',
    timezoneId: 'UTC',
    viewport: { width: 1280, height: 860 },
    launchOptions: { executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args },
    screenshot: 'only-on-failure',
  },
  projects: [
    { name: 'tests', testIgnore: ['performance.spec.ts', 'screenshots.spec.ts'] },
    // Measures times, so it runs alone, and again when another program had the processor.
    { name: 'performance', testMatch: 'performance.spec.ts', dependencies: ['tests'], retries: 4 },
    { name: 'screenshots', testMatch: 'screenshots.spec.ts' },
  ],
});
