"""requests-oauthlib, with oauthlib's BackendApplicationClient."""

import os

from oauthlib.oauth2 import BackendApplicationClient, InvalidClientError
from requests_oauthlib import OAuth2Session

from service import (
    BATCHES_URL, CLIENT_ID, CLIENT_SECRET, TOKEN_URL, WRONG_SECRET, good_token, refusal, report, versions, walk,
)

# oauthlib's own switch for servers without TLS, such as this one on loopback.
os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"

CLIENT = ("requests-oauthlib", versions("requests-oauthlib", "oauthlib"))


def session_with(secret: str) -> tuple[OAuth2Session, dict]:
    session = OAuth2Session(client=BackendApplicationClient(client_id=CLIENT_ID))
    return session, session.fetch_token(token_url=TOKEN_URL, client_id=CLIENT_ID, client_secret=secret)


session, token = session_with(CLIENT_SECRET)
report(*CLIENT, "token", good_token(token))
report(*CLIENT, "paging", walk(lambda query: session.get(BATCHES_URL, params=query).json()))
error = refusal(InvalidClientError, lambda: session_with(WRONG_SECRET))
report(*CLIENT, "wrong secret", f"raises InvalidClientError, `{error.error}`, {error.status_code}")
