// Claims about what the content security policy keeps out, even if something in the page wanted it.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { openSignedIn } from '../dashboard.mjs';
import { claim, eventually } from '../harness.mjs';

describe('the policy', () => {
  claim(
    'nothing in the page can ask another origin, run an inline script or bring a style',
    { troubles: [/Content Security Policy/, /^policy: /] },
    async ({ page, service }) => {
      const said = [];
      page.on('console', (message) => said.push(message.text()));
      await openSignedIn(page, service);
      const got = await page.evaluate(async () => {
        const asked = await fetch('http://127.0.0.1:9/').then(
          () => 'asked',
          () => 'kept from asking',
        );
        const script = Object.assign(document.createElement('script'), { textContent: 'globalThis.ran = true' });
        document.body.append(script);
        const styled = document.createElement('p');
        styled.innerHTML = '<b style="position: fixed">!</b>';
        document.body.append(styled);
        return [asked, globalThis.ran ?? 'not run', getComputedStyle(styled.firstChild).position];
      });
      assert.deepEqual(got, ['kept from asking', 'not run', 'static']);
      // The same words fail every other claim that they turn up in.
      for (const kept of ['connect-src', 'script-src-elem', 'style-src-attr'])
        await eventually(() =>
          assert.ok(
            said.some((text) => text.startsWith(`policy: ${kept}`)),
            said.join('\n'),
          ),
        );
    },
  );
});
