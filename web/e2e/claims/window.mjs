// Claims about the window of days: presets, dates, dragging, and the figures that follow from it.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { chart, drawn, field, figures, loaded, openSignedIn } from '../dashboard.mjs';
import { changes, headline, lastDays, plusDays, today, windowBefore } from '../expected.mjs';
import { claim, eventually } from '../harness.mjs';
import { batchesOf } from '../service.mjs';

const DAYS = 90;
const ends = async (page) => ({
  from: await field(page, 'From').inputValue(),
  to: await field(page, 'To').inputValue(),
});
const query = ({ from, to }) => `?from=${from}&to=${to}`;

/** The headline figures of a window become those of the interface's own batches. */
async function agrees(page, service, window) {
  const expected = headline(await batchesOf(service, window));
  await eventually(async () => {
    const { Batches, Images, 'Germination rate': germination } = await figures(page);
    assert.deepEqual(
      [Batches.value, Images.value, germination.value],
      [expected.batches, expected.images, expected.germination],
    );
  });
}

describe('the window', { concurrency: 2 }, () => {
  claim(
    'the first window is the last ninety days, in UTC, with the figures of the interface',
    {},
    async ({ page, service }) => {
      await openSignedIn(page, service);
      assert.deepEqual(await ends(page), lastDays(DAYS));
      await agrees(page, service, lastDays(DAYS));
    },
  );

  claim('the figures are compared with those of the window before', {}, async ({ page, service }) => {
    const window = lastDays(30, plusDays(today(), -100));
    await openSignedIn(page, service, `/${query(window)}`);
    await agrees(page, service, window);
    const expected = changes(await batchesOf(service, window), await batchesOf(service, windowBefore(window)));
    await eventually(async () => {
      const { Batches, Images, 'Germination rate': germination } = await figures(page);
      assert.deepEqual({ batches: Batches.change, images: Images.change, germination: germination.change }, expected);
    });
  });

  claim('a window before that holds nothing is said to, and not compared with', {}, async ({ page, service }) => {
    const [first] = await batchesOf(service, { from: '1900-01-01', to: today() });
    const day = first.batch_creation_date.slice(0, 10);
    await openSignedIn(page, service, `/${query({ from: day, to: plusDays(day, 9) })}`);
    await page.getByText('Nothing was scanned in the window before.', { exact: true }).waitFor();
    const shown = Object.values(await figures(page));
    assert.deepEqual(
      shown.map(({ change }) => change),
      shown.map(() => ''),
    );
  });

  claim(
    'dates in the address that make no window are said to, and leave the address',
    {},
    async ({ page, service }) => {
      const said = page.getByText('The dates in this address make no window; the last 90 days are shown.');
      const broken = ['?from=2026-03-09&to=2026-03-02', '?from=yesterday&to=today', '?from=1900-01-01&to=2026-01-01'];
      for (const dates of [...broken, '?from=2026-03-02']) {
        await openSignedIn(page, service, `/${dates}&warnings=with`);
        await said.waitFor();
        assert.equal(new URL(page.url()).search, '?warnings=with', dates);
        assert.deepEqual(await ends(page), lastDays(DAYS));
      }
      await page.getByRole('button', { name: 'Dismiss' }).click();
      await said.waitFor({ state: 'hidden' });
    },
  );

  claim('From after To is refused with a word, and To then completes the window', {}, async ({ page, service }) => {
    const window = { from: plusDays(today(), -200), to: plusDays(today(), -180) };
    await openSignedIn(page, service, `/${query(window)}`);
    const later = { from: plusDays(today(), -50), to: plusDays(today(), -40) };
    await field(page, 'From').fill(later.from);
    await page.getByRole('alert').getByText('From is after To').waitFor();
    assert.equal(new URL(page.url()).search, query(window));
    await field(page, 'To').fill(later.to);
    await eventually(() => assert.equal(new URL(page.url()).search, query(later)));
    assert.equal(await page.getByRole('alert').count(), 0);
    await field(page, 'To').fill('');
    await field(page, 'Search').focus();
    await eventually(async () => assert.deepEqual(await ends(page), later));
  });

  claim('each preset sets the window it names', {}, async ({ page, service }) => {
    await openSignedIn(page, service);
    const year = today().slice(0, 4);
    const presets = {
      'Last 7 days': lastDays(7),
      'Last 30 days': lastDays(30),
      'Last 365 days': lastDays(365),
      'This year': { from: `${year}-01-01`, to: today() },
      'Last year': { from: `${year - 1}-01-01`, to: `${year - 1}-12-31` },
      'Last 90 days': lastDays(DAYS),
    };
    for (const [name, window] of Object.entries(presets)) {
      await page.getByRole('button', { name, exact: true }).click();
      assert.deepEqual(await ends(page), window, name);
      assert.equal(await page.getByRole('button', { name, exact: true }).getAttribute('aria-pressed'), 'true');
      await loaded(page);
      await agrees(page, service, window);
    }
  });

  claim('From and To set the window, and it is in the address', {}, async ({ page, service }) => {
    await openSignedIn(page, service);
    const window = { from: plusDays(today(), -200), to: plusDays(today(), -180) };
    await field(page, 'From').fill(window.from);
    await field(page, 'To').fill(window.to);
    assert.equal(new URL(page.url()).search, query(window));
    await loaded(page);
    await agrees(page, service, window);
  });

  claim('dragging over the rates chart narrows the window to the days under it', {}, async ({ page, service }) => {
    await openSignedIn(page, service);
    await drawn(page);
    const box = await chart(page, 'rates').boundingBox();
    const y = box.y + box.height / 2;
    await page.mouse.move(box.x + box.width * 0.4, y);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, y, { steps: 5 });
    await page.mouse.up();
    const whole = lastDays(DAYS);
    const window = await eventually(async () => {
      const narrowed = await ends(page);
      assert.notDeepEqual(narrowed, whole);
      return narrowed;
    });
    // A fifth of the chart, which has its axis beside the days; both ends are in the middle of it.
    const length = (Date.parse(window.to) - Date.parse(window.from)) / 86_400_000 + 1;
    assert.ok(length >= DAYS * 0.19 && length <= DAYS * 0.27, `${length} days`);
    assert.ok(window.from > plusDays(whole.from, 25) && window.to < plusDays(whole.to, -25), JSON.stringify(window));
    assert.equal(new URL(page.url()).search, query(window));
    await agrees(page, service, window);
    await page.goBack();
    await agrees(page, service, whole);
  });
});
