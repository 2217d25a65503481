import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// The same as in batchscan-server, so that violations show in `npm run preview`.
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
  "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// The service behind `npm run dev`. The default is the address of `batchscan demo`.
// The Host header stays: a session is only for pages of the same address.
const service = { target: process.env.BATCHSCAN_URL ?? 'http://127.0.0.1:8080', changeOrigin: false };
const proxy = { '/v1': service, '/v2': service, '/session': service, '/docs': service };

export default defineConfig({
  plugins: [svelte()],
  build: {
    target: 'es2022',
    // The policy forbids inline scripts and data: fonts and styles.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy },
  preview: { proxy, headers: { 'content-security-policy': CONTENT_SECURITY_POLICY } },
});
