"""httpx-auth's OAuth2ClientCredentials, which gets its token when the first request needs it."""

import httpx
from httpx_auth import InvalidGrantRequest, OAuth2ClientCredentials

from service import (
    BATCHES_URL, CLIENT_ID, CLIENT_SECRET, TOKEN_URL, WRONG_SECRET, refusal, report, versions, walk,
)

CLIENT = ("httpx-auth", versions("httpx-auth", "httpx"))


def client_with(secret: str) -> httpx.Client:
    return httpx.Client(auth=OAuth2ClientCredentials(TOKEN_URL, client_id=CLIENT_ID, client_secret=secret))


client = client_with(CLIENT_SECRET)
response = client.get(BATCHES_URL)
assert response.status_code == 200, response.text
assert response.request.headers["Authorization"].startswith("Bearer "), response.request.headers
report(*CLIENT, "token", "bearer, sent with the first request")
report(*CLIENT, "paging", walk(lambda query: client.get(BATCHES_URL, params=query).json()))
error = refusal(InvalidGrantRequest, lambda: client_with(WRONG_SECRET).get(BATCHES_URL))
assert str(error).startswith("invalid_client: "), error
report(*CLIENT, "wrong secret", "raises InvalidGrantRequest, `invalid_client`")
