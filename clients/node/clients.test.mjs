// OAuth libraries for Node, unmodified and with their defaults, against the service; and the M code for Excel.
//
// Each library gets a token, reads all pages of v2, and tries a wrong secret. The result is its row in docs/CLIENTS.md.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";

import powerQuery from "@microsoft/powerquery-parser";
import * as openid from "openid-client";
import { ClientCredentials } from "simple-oauth2";

const root = new URL("../../", import.meta.url);
const executable = process.env.BATCHSCAN_EXE || new URL("target/release/batchscan", root).pathname;
const table = readFileSync(new URL("docs/CLIENTS.md", root), "utf8").split("\n");
const wrongSecret = "not-a-valid-secret";
// Far more than the service has: a client that continues is in a loop.
const PAGES_MAX = 50;

let demo;
const service = {};

before(async () => {
  const options = { stdio: ["ignore", "pipe", "ignore"] };
  demo = spawn(executable, ["demo", "--listen", "127.0.0.1:0", "--batches", "2500"], options);
  for await (const line of createInterface(demo.stdout)) {
    const [, name, value] = /^(?:\s+client (id|secret)|listening (on))\s+(\S+)$/.exec(line)?.filter(Boolean) ?? [];
    if (name) service[name] = value;
    if (name === "on") break;
  }
  assert.ok(service.on, `${executable} did not start`);
  demo.stdout.resume();
});

after(async () => {
  demo.kill("SIGTERM");
  await once(demo, "exit");
});

test("openid-client", async () => {
  // The service has no discovery document, so the token endpoint is given.
  const configure = (secret) => {
    const server = { issuer: service.on, token_endpoint: `${service.on}/v2/auth` };
    const config = new openid.Configuration(server, service.id, secret);
    // The library's own switch for servers without TLS.
    openid.allowInsecureRequests(config);
    return config;
  };
  const config = configure(service.secret);
  const token = await openid.clientCredentialsGrant(config);
  const getPage = async (url) =>
    (await openid.fetchProtectedResource(config, token.access_token, url, "GET")).json();
  const paging = await readAll(getPage, token);
  await assert.rejects(openid.clientCredentialsGrant(configure(wrongSecret)), (error) => {
    assert.ok(error instanceof openid.ResponseBodyError);
    assert.deepEqual([error.status, error.error], [401, "invalid_client"]);
    return true;
  });
  documented("openid-client", token, paging, "throws ResponseBodyError, `invalid_client`, 401");
});

test("simple-oauth2", async () => {
  const getToken = (secret) =>
    new ClientCredentials({
      client: { id: service.id, secret },
      auth: { tokenHost: service.on, tokenPath: "/v2/auth" },
    }).getToken({});
  const { token } = await getToken(service.secret);
  const paging = await readAll((url) => fetchJson(url, token), token);
  await assert.rejects(getToken(wrongSecret), (error) => {
    assert.deepEqual([error.output?.statusCode, error.data.payload.error], [401, "invalid_client"]);
    return true;
  });
  documented("simple-oauth2", token, paging, "throws a Boom error, `invalid_client`, 401");
});

// Microsoft's parser. M has no engine outside of Microsoft's programs.
test("the code for Excel and Power BI is valid M", async () => {
  const { DefaultSettings, TaskUtils } = powerQuery;
  const page = readFileSync(new URL("docs/recipes/excel-power-bi.md", root), "utf8");
  const [, code] = /^```powerquery\n(.*?)^```$/ms.exec(page);
  const task = await TaskUtils.tryLexParse(DefaultSettings, code);
  assert.ok(TaskUtils.isParseStageOk(task), task.error?.message);
});

/** Reads v2 to the end. The batches must be those of v1, in the same order. */
async function readAll(getPage, token) {
  const ids = [];
  const url = new URL("/v2/batches", service.on);
  for (let pages = 1; pages <= PAGES_MAX; pages += 1) {
    const page = await getPage(url);
    ids.push(...page.data.map((batch) => batch.batch_id));
    if (page.next_token === null) {
      const batches = await fetchJson(`${service.on}/v1/batches`, token);
      assert.ok(pages > 1);
      assert.deepEqual(ids, batches.map((batch) => batch.batch_id));
      return `all ${ids.length} batches in order, in ${pages} pages`;
    }
    url.searchParams.set("next_token", page.next_token);
  }
  assert.fail(`no end after ${PAGES_MAX} pages`);
}

async function fetchJson(url, token) {
  const response = await fetch(url, { headers: { authorization: `Bearer ${token.access_token}` } });
  return response.json();
}

function documented(client, token, paging, wrongSecretResult) {
  const manifest = new URL(`node_modules/${client}/package.json`, import.meta.url);
  const { version } = JSON.parse(readFileSync(manifest, "utf8"));
  assert.equal(token.token_type, "bearer");
  const tokenResult = `bearer, for ${token.expires_in} s`;
  const row = `| ${client} | ${version} | ${tokenResult} | ${paging} | ${wrongSecretResult} |`;
  assert.ok(table.includes(row), `docs/CLIENTS.md differs. Replace the row of ${client}:\n${row}`);
}
