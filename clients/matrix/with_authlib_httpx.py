"""Authlib's AsyncOAuth2Client, which stands on httpx."""

import asyncio

from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client

from service import (
    BATCHES_URL, CLIENT_ID, CLIENT_SECRET, TOKEN_URL, WRONG_SECRET, good_token, refusal, report, versions, walk,
)

CLIENT = ("Authlib on httpx", versions("authlib", "httpx"))


async def token_for(client: AsyncOAuth2Client) -> dict:
    return await client.fetch_token(TOKEN_URL, grant_type="client_credentials")


async def page_of(client: AsyncOAuth2Client, query: dict[str, str]) -> dict:
    response = await client.get(BATCHES_URL, params=query)
    return response.json()


# One loop for all, as a connection belongs to the loop that opened it.
run = asyncio.new_event_loop().run_until_complete

client = AsyncOAuth2Client(CLIENT_ID, CLIENT_SECRET)
report(*CLIENT, "token", good_token(run(token_for(client))))
report(*CLIENT, "paging", walk(lambda query: run(page_of(client, query))))
stranger = AsyncOAuth2Client(CLIENT_ID, WRONG_SECRET)
error = refusal(OAuthError, lambda: run(token_for(stranger)))
assert error.error == "invalid_client", error
report(*CLIENT, "wrong secret", f"raises OAuthError, `{error.error}`")
