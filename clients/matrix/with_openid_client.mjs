// openid-client, its Configuration made by hand: the service has a token endpoint and nothing to discover.

import assert from "node:assert/strict";

import * as openid from "openid-client";

import { clientId, clientSecret, goodToken, refusal, reporter, url, walk, wrongSecret } from "./service.mjs";

const report = reporter("openid-client");

function configuration(secret) {
  const server = { issuer: url, token_endpoint: `${url}/v2/auth` };
  const config = new openid.Configuration(server, clientId, secret);
  // The library's own switch for servers without TLS, such as this one on loopback.
  openid.allowInsecureRequests(config);
  return config;
}

const config = configuration(clientSecret);
const token = await openid.clientCredentialsGrant(config);
report("token", goodToken(token));

const getPage = async (address) =>
  (await openid.fetchProtectedResource(config, token.access_token, address, "GET")).json();
report("paging", await walk(getPage));

const error = await refusal(() => openid.clientCredentialsGrant(configuration(wrongSecret)));
assert.ok(error instanceof openid.ResponseBodyError, error);
assert.deepEqual([error.status, error.error], [401, "invalid_client"]);
report("wrong secret", "throws ResponseBodyError, `invalid_client`, 401");
