"""Authlib's OAuth2Session, which stands on requests."""

from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session

from service import (
    BATCHES_URL, CLIENT_ID, CLIENT_SECRET, TOKEN_URL, WRONG_SECRET, good_token, refusal, report, versions, walk,
)

CLIENT = ("Authlib on requests", versions("authlib", "requests"))


def session_with(secret: str) -> tuple[OAuth2Session, dict]:
    session = OAuth2Session(CLIENT_ID, secret)
    return session, session.fetch_token(TOKEN_URL, grant_type="client_credentials")


session, token = session_with(CLIENT_SECRET)
report(*CLIENT, "token", good_token(token))
report(*CLIENT, "paging", walk(lambda query: session.get(BATCHES_URL, params=query).json()))
error = refusal(OAuthError, lambda: session_with(WRONG_SECRET))
assert error.error == "invalid_client", error
report(*CLIENT, "wrong secret", f"raises OAuthError, `{error.error}`")
