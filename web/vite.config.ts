// How the dashboard is built, served for development, and previewed under the service's own headers.
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// What the service sends with every page. `preview` sends it too, so that a breach shows before release.
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
  "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// The service that answers /v1 and /v2 while developing: BATCHSCAN_URL, else `batchscan demo`'s default address.
const env = (globalThis as { process?: { env: Record<string, string | undefined> } }).process?.env ?? {};
const service = env.BATCHSCAN_URL ?? 'http://127.0.0.1:8080';
const proxy = { '/v1': service, '/v2': service, '/docs': service };

export default defineConfig({
  plugins: [svelte()],
  build: {
    target: 'es2022',
    // The policy allows no inline script and no data: font or style, so nothing is inlined.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy },
  preview: { proxy, headers: { 'content-security-policy': CONTENT_SECURITY_POLICY } },
});
