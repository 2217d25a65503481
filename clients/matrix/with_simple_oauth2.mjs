// simple-oauth2 for the token, and fetch for the pages, as the library leaves requests to its user.

import assert from "node:assert/strict";

import { ClientCredentials } from "simple-oauth2";

import { clientId, clientSecret, goodToken, refusal, reporter, url, walk, wrongSecret } from "./service.mjs";

const report = reporter("simple-oauth2");

function clientWith(secret) {
  return new ClientCredentials({
    client: { id: clientId, secret },
    auth: { tokenHost: url, tokenPath: "/v2/auth" },
  });
}

const { token } = await clientWith(clientSecret).getToken({});
report("token", goodToken(token));

const headers = { authorization: `Bearer ${token.access_token}` };
report("paging", await walk(async (address) => (await fetch(address, { headers })).json()));

const error = await refusal(() => clientWith(wrongSecret).getToken({}));
assert.equal(error.output?.statusCode, 401, error);
assert.equal(error.data.payload.error, "invalid_client");
report("wrong secret", "throws a Boom error, `invalid_client`, 401");
