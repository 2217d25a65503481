"""dlt's REST API source: once with the paginator that dlt guesses, once with the one that fits."""

from dlt.extract.exceptions import ResourceExtractionError
from dlt.sources.helpers.rest_client.auth import OAuth2ClientCredentials
from dlt.sources.helpers.rest_client.client import RESTClient
from dlt.sources.rest_api import rest_api_source
from requests import HTTPError

from service import CLIENT_ID, CLIENT_SECRET, TOKEN_URL, URL, WRONG_SECRET, all_of_v1, refusal, report, versions

GUESSING = ("dlt, its paginator guessed", versions("dlt"))
CONFIGURED = ("dlt, a cursor paginator", versions("dlt"))
CURSOR = {"type": "cursor", "cursor_path": "next_token", "cursor_param": "next_token"}


def ids_with(secret: str, **paginator: dict) -> list[str]:
    auth = {
        "type": "oauth2_client_credentials",
        "access_token_url": TOKEN_URL,
        "client_id": CLIENT_ID,
        "client_secret": secret,
    }
    client = {"base_url": f"{URL}/v2/", "auth": auth, **paginator}
    source = rest_api_source({"client": client, "resources": ["batches"]})
    return [batch["batch_id"] for batch in source.resources["batches"]]


def token_of_a_bare_client() -> str:
    auth = OAuth2ClientCredentials(
        access_token_url=TOKEN_URL, client_id=CLIENT_ID, client_secret=CLIENT_SECRET
    )
    response = RESTClient(base_url=URL, auth=auth).get("/v2/batches")
    assert response.status_code == 200 and auth.access_token, response.text
    return "bearer, sent with the first request"


def guessed_walk() -> str:
    """It may fail loudly or bring everything; whoever runs this program ends it should it go in circles."""
    try:
        return all_of_v1(ids_with(CLIENT_SECRET))
    except ResourceExtractionError as error:
        answer = error.__cause__.response
        assert answer.status_code == 422, error
        assert "next_token" in answer.json()["detail"][0]["msg"], answer.text
        return "fails on page 2: 422 that names `next_token`"


def wrong_secret(**paginator: dict) -> str:
    error = refusal(ResourceExtractionError, lambda: ids_with(WRONG_SECRET, **paginator))
    cause = error.__cause__
    assert isinstance(cause, HTTPError) and cause.response.status_code == 401, error
    return "raises ResourceExtractionError, 401"


for client, paginator in [(GUESSING, {}), (CONFIGURED, {"paginator": CURSOR})]:
    report(*client, "token", token_of_a_bare_client())
    paging = all_of_v1(ids_with(CLIENT_SECRET, **paginator)) if paginator else guessed_walk()
    report(*client, "paging", paging)
    report(*client, "wrong secret", wrong_secret(**paginator))
