import { expect, openSignedIn, test } from './test';

test.use({ allowedErrors: /Content Security Policy|^policy: / });

test('the Content-Security-Policy blocks other origins, inline scripts and inline styles', async ({ page, demo }) => {
  const logged: string[] = [];
  page.on('console', (message) => logged.push(message.text()));
  await openSignedIn(page, demo);
  const results = await page.evaluate(async () => {
    const request = await fetch('http://127.0.0.1:9/').then(
      () => 'sent',
      () => 'blocked',
    );
    document.body.append(
      Object.assign(document.createElement('script'), { textContent: "document.title = 'script ran'" }),
    );
    const styled = document.createElement('p');
    styled.innerHTML = '<b style="position: fixed">!</b>';
    document.body.append(styled);
    return [request, document.title, getComputedStyle(styled.firstElementChild!).position];
  });
  expect(results).toEqual(['blocked', expect.stringMatching(/Today · Green Valley Nursery$/), 'static']);
  for (const directive of ['connect-src', 'script-src-elem', 'style-src-attr'])
    await expect.poll(() => logged.some((text) => text.startsWith(`policy: ${directive}`)), directive).toBe(true);
});
