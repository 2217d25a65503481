"""Other people's OAuth libraries, unmodified and with their defaults, against the service.

Each gets a token, reads all pages of v2, and tries a wrong secret. The result is its row in docs/CLIENTS.md.
"""

import asyncio
import json
import subprocess
from collections.abc import Callable
from importlib.metadata import version
from itertools import islice
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from dlt.extract.exceptions import ResourceExtractionError
from dlt.sources.helpers.rest_client.auth import OAuth2ClientCredentials as DltCredentials
from dlt.sources.helpers.rest_client.client import RESTClient
from dlt.sources.rest_api import rest_api_source
from httpx_auth import InvalidGrantRequest, OAuth2ClientCredentials
from oauthlib.oauth2 import BackendApplicationClient, InvalidClientError
from requests_oauthlib import OAuth2Session

from service import ROOT

WRONG_SECRET = "not-a-valid-secret"
# Far more than the service has: a client that continues is in a loop.
PAGES_MAX = 50
# The first table of the page, without the line below the header.
TABLE = [row for row in (ROOT / "docs/CLIENTS.md").read_text().split("\n\n")[2].splitlines() if row.startswith("| ")]


def test_authlib_on_requests(service, v1_ids):
    def connect(secret: str) -> tuple[AuthlibSession, dict[str, Any]]:
        session = AuthlibSession(service.client_id, secret)
        return session, session.fetch_token(f"{service.url}/v2/auth", grant_type="client_credentials")

    session, token = connect(service.client_secret)
    paging = read_all(lambda query: session.get(f"{service.url}/v2/batches", params=query).json(), v1_ids)
    with pytest.raises(OAuthError) as caught:
        connect(WRONG_SECRET)
    assert caught.value.error == "invalid_client"
    documented(
        "Authlib on requests", ["authlib", "requests"], describe(token), paging, "raises OAuthError, `invalid_client`"
    )


def test_authlib_on_httpx(service, v1_ids):
    async def get_token(client: AsyncOAuth2Client) -> dict[str, Any]:
        return await client.fetch_token(f"{service.url}/v2/auth", grant_type="client_credentials")

    async def get_page(client: AsyncOAuth2Client, query: dict[str, str]) -> Any:
        return (await client.get(f"{service.url}/v2/batches", params=query)).json()

    with asyncio.Runner() as runner:
        client = AsyncOAuth2Client(service.client_id, service.client_secret)
        token = runner.run(get_token(client))
        paging = read_all(lambda query: runner.run(get_page(client, query)), v1_ids)
        with pytest.raises(OAuthError) as caught:
            runner.run(get_token(AsyncOAuth2Client(service.client_id, WRONG_SECRET)))
    assert caught.value.error == "invalid_client"
    documented("Authlib on httpx", ["authlib", "httpx"], describe(token), paging, "raises OAuthError, `invalid_client`")


def test_requests_oauthlib(service, v1_ids, monkeypatch):
    # The library's own switch for servers without TLS.
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")

    def connect(secret: str) -> tuple[OAuth2Session, dict[str, Any]]:
        session = OAuth2Session(client=BackendApplicationClient(client_id=service.client_id))
        token = session.fetch_token(f"{service.url}/v2/auth", client_id=service.client_id, client_secret=secret)
        return session, token

    session, token = connect(service.client_secret)
    paging = read_all(lambda query: session.get(f"{service.url}/v2/batches", params=query).json(), v1_ids)
    with pytest.raises(InvalidClientError) as caught:
        connect(WRONG_SECRET)
    wrong_secret = f"raises InvalidClientError, `{caught.value.error}`, {caught.value.status_code}"
    documented("requests-oauthlib", ["requests-oauthlib", "oauthlib"], describe(token), paging, wrong_secret)


def test_httpx_auth(service, v1_ids):
    def connect(secret: str) -> httpx.Client:
        auth = OAuth2ClientCredentials(f"{service.url}/v2/auth", client_id=service.client_id, client_secret=secret)
        return httpx.Client(auth=auth, base_url=service.url)

    client = connect(service.client_secret)
    response = client.get("/v2/batches")
    assert response.status_code == 200 and response.request.headers["Authorization"].startswith("Bearer ")
    paging = read_all(lambda query: client.get("/v2/batches", params=query).json(), v1_ids)
    with pytest.raises(InvalidGrantRequest, match="^invalid_client: "):
        connect(WRONG_SECRET).get("/v2/batches")
    token, wrong_secret = "bearer, sent with the first request", "raises InvalidGrantRequest, `invalid_client`"
    documented("httpx-auth", ["httpx-auth", "httpx"], token, paging, wrong_secret)


CURSOR = {"type": "cursor", "cursor_path": "next_token", "cursor_param": "next_token"}


@pytest.mark.parametrize(
    ("name", "settings"), [("dlt, paginator detected", {}), ("dlt, cursor paginator", {"paginator": CURSOR})]
)
def test_dlt(service, v1_ids, name, settings):
    def read_ids(secret: str) -> list[str]:
        auth = {
            "type": "oauth2_client_credentials",
            "access_token_url": f"{service.url}/v2/auth",
            "client_id": service.client_id,
            "client_secret": secret,
        }
        client = {"base_url": f"{service.url}/v2/", "auth": auth, **settings}
        source = rest_api_source({"client": client, "resources": ["batches"]})
        return [batch["batch_id"] for batch in islice(source.resources["batches"], 2 * len(v1_ids))]

    auth = DltCredentials(
        access_token_url=f"{service.url}/v2/auth", client_id=service.client_id, client_secret=service.client_secret
    )
    response = RESTClient(base_url=service.url, auth=auth).get("/v2/batches")
    assert response.status_code == 200 and auth.access_token
    if settings:
        assert read_ids(service.client_secret) == v1_ids
        paging = f"all {len(v1_ids)} batches in order"
    else:
        with pytest.raises(ResourceExtractionError) as caught:
            read_ids(service.client_secret)
        response = caught.value.__cause__.response
        assert response.status_code == 422 and "next_token" in response.json()["detail"][0]["msg"]
        paging = "fails on page 2: 422 that names `next_token`"
    with pytest.raises(ResourceExtractionError) as caught:
        read_ids(WRONG_SECRET)
    assert caught.value.__cause__.response.status_code == 401
    token = "bearer, sent with the first request"
    documented(name, ["dlt"], token, paging, "raises ResourceExtractionError, 401")


def test_curl(service, v1_ids):
    def curl(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["curl", "--silent", "--fail", *arguments], capture_output=True, text=True, timeout=300)

    def by_form(secret: str) -> subprocess.CompletedProcess[str]:
        form = {"grant_type": "client_credentials", "client_id": service.client_id, "client_secret": secret}
        return curl(f"{service.url}/v2/auth", "--data", urlencode(form))

    def by_basic(secret: str) -> subprocess.CompletedProcess[str]:
        return curl(
            f"{service.url}/v2/auth", "-u", f"{service.client_id}:{secret}", "-d", "grant_type=client_credentials"
        )

    for get_token in (by_form, by_basic):
        rejected = get_token(WRONG_SECRET)
        assert (rejected.returncode, rejected.stdout) == (22, "")
        token = json.loads(get_token(service.client_secret).stdout)
        bearer = f"Authorization: Bearer {token['access_token']}"
        paging = read_all(
            lambda query: json.loads(curl("-H", bearer, f"{service.url}/v2/batches?{urlencode(query)}").stdout), v1_ids
        )
    wrong_secret = "exits with 22 under `--fail`, prints nothing"
    documented("curl", [], f"{describe(token)}; by form fields and by `-u`", paging, wrong_secret)


def test_the_table_lists_the_tested_clients():
    in_python = ["Authlib on httpx", "Authlib on requests", "httpx-auth", "requests-oauthlib", "curl"]
    in_dlt = ["dlt, cursor paginator", "dlt, paginator detected"]
    elsewhere = ["oauth2 (Rust)", "openid-client", "simple-oauth2"]
    names = [row.removeprefix("| ").split(" | ")[0] for row in TABLE]
    assert names == ["client", *sorted(in_python + in_dlt + elsewhere, key=str.lower)]


def describe(token: dict[str, Any]) -> str:
    assert token["access_token"] and token["token_type"] == "bearer"
    return f"bearer, for {token['expires_in']} s"


def read_all(get_page: Callable[[dict[str, str]], Any], v1_ids: list[str]) -> str:
    """Reads v2 to the end. The batches must be those of v1, in the same order."""
    ids: list[str] = []
    query: dict[str, str] = {}
    for pages in range(1, PAGES_MAX + 1):
        page = get_page(query)
        ids += [batch["batch_id"] for batch in page["data"]]
        if page["next_token"] is None:
            assert pages > 1 and ids == v1_ids
            return f"all {len(ids)} batches in order, in {pages} pages"
        query = {"next_token": page["next_token"]}
    raise AssertionError(f"no end after {PAGES_MAX} pages")


def documented(client: str, packages: list[str], token: str, paging: str, wrong_secret: str) -> None:
    versions = [version(name) if i == 0 else f"{name} {version(name)}" for i, name in enumerate(packages)]
    row = f"| {client} | {', '.join(versions) or 'any'} | {token} | {paging} | {wrong_secret} |"
    assert row in TABLE, f"docs/CLIENTS.md differs. Replace the row of {client}:\n{row}"
