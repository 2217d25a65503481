// The service as every Node program of this folder sees it: where it is, who may ask, and what v1 says is there.
//
// Owns what is claimed and how it is reported. Uses Node alone, so that no client is its own judge.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { inspect } from "node:util";

export const url = process.env.BATCHSCAN_URL;
export const clientId = process.env.BATCHSCAN_CLIENT_ID;
export const clientSecret = process.env.BATCHSCAN_CLIENT_SECRET;
export const wrongSecret = "not-the-secret-of-anyone";

// Far above what a walk takes here: a client that reads on is going in circles.
const PAGES_LIMIT = 50;

/** A client whose claims are reported one line each, as they hold. */
export function reporter(client) {
  const manifest = new URL(`node_modules/${client}/package.json`, import.meta.url);
  const { version } = JSON.parse(readFileSync(manifest, "utf8"));
  return (claim, outcome) => console.log(JSON.stringify({ client, version, claim, outcome }));
}

/** A token as the library hands it out: one that names its kind and its life. */
export function goodToken(token) {
  assert.ok(token.access_token);
  assert.equal(token.token_type, "bearer");
  assert.equal(token.expires_in, 3600);
  return "bearer, for 3600 s";
}

/** Reads v2 to its end, and holds what came against v1. */
export async function walk(getPage) {
  const ids = [];
  const address = new URL("/v2/batches", url);
  for (let pages = 1; pages <= PAGES_LIMIT; pages += 1) {
    const page = await getPage(address);
    ids.push(...page.data.map((batch) => batch.batch_id));
    if (page.next_token === null) {
      assert.ok(pages > 1, "one page holds it all, so that nothing was shown of paging");
      assert.deepEqual(ids, await idsOfV1());
      return `all ${ids.length} batches in order, in ${pages} pages`;
    }
    address.searchParams.set("next_token", page.next_token);
  }
  assert.fail(`no end after ${PAGES_LIMIT} pages`);
}

/** The error that a library throws; handing out anything at all is a failure. */
export async function refusal(ask) {
  let handed;
  try {
    handed = await ask();
  } catch (error) {
    return error;
  }
  assert.fail(`a wrong secret was answered with ${inspect(handed)}`);
}

async function idsOfV1() {
  const form = { grant_type: "client_credentials", client_id: clientId, client_secret: clientSecret };
  const answer = await fetch(`${url}/v1/auth`, { method: "POST", body: new URLSearchParams(form) });
  const { access_token: token } = await answer.json();
  const batches = await fetch(`${url}/v1/batches`, { headers: { authorization: `Bearer ${token}` } });
  return (await batches.json()).map((batch) => batch.batch_id);
}
