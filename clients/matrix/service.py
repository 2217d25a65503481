"""The service as every Python program of this folder sees it: where it is, who may ask, and what v1 says is there.

Owns what is claimed and how it is reported. Uses the standard library alone, so that no client is its own judge.
"""

import json
import os
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import Any

URL = os.environ["BATCHSCAN_URL"]
TOKEN_URL = f"{URL}/v2/auth"
BATCHES_URL = f"{URL}/v2/batches"
CLIENT_ID = os.environ["BATCHSCAN_CLIENT_ID"]
CLIENT_SECRET = os.environ["BATCHSCAN_CLIENT_SECRET"]
WRONG_SECRET = "not-the-secret-of-anyone"

# Far above what a walk takes here: a client that reads on is going in circles.
PAGES_LIMIT = 50


def versions(*packages: str) -> str:
    """The first package's version, then the names and versions of those it stands on."""
    first, *others = packages
    return ", ".join([version(first), *(f"{other} {version(other)}" for other in others)])


def report(client: str, version: str, claim: str, outcome: str) -> None:
    """Says in one line that a claim held, and how."""
    line = {"client": client, "version": version, "claim": claim, "outcome": outcome}
    print(json.dumps(line), flush=True)


def good_token(token: dict[str, Any]) -> str:
    """A token as the library hands it out: one that names its kind and its life."""
    assert token["access_token"], token
    assert token["token_type"] == "bearer", token
    assert token["expires_in"] == 3600, token
    return "bearer, for 3600 s"


def walk(get_page: Callable[[dict[str, str]], dict[str, Any]]) -> str:
    """Reads v2 to its end, and holds what came against v1."""
    ids: list[str] = []
    query: dict[str, str] = {}
    for pages in range(1, PAGES_LIMIT + 1):
        page = get_page(query)
        ids.extend(batch["batch_id"] for batch in page["data"])
        if page["next_token"] is None:
            assert pages > 1, "one page holds it all, so that nothing was shown of paging"
            return f"{all_of_v1(ids)}, in {pages} pages"
        query = {"next_token": page["next_token"]}
    raise AssertionError(f"no end after {PAGES_LIMIT} pages")


def all_of_v1(ids: Iterable[str]) -> str:
    """Requires exactly the batches of v1, in its order."""
    found, expected = list(ids), ids_of_v1()
    assert found == expected, f"{len(found)} batches where v1 has {len(expected)}, or in another order"
    return f"all {len(found)} batches in order"


def refusal(error_class: type[Exception], ask: Callable[[], Any]) -> Any:
    """The error that a library raises; handing out anything at all is a failure."""
    try:
        handed = ask()
    except error_class as error:
        return error
    raise AssertionError(f"a wrong secret was answered with {handed!r}")


def ids_of_v1() -> list[str]:
    form = {"grant_type": "client_credentials", "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
    body = urllib.parse.urlencode(form).encode()
    with urllib.request.urlopen(f"{URL}/v1/auth", body, timeout=20) as response:
        token = json.load(response)["access_token"]
    request = urllib.request.Request(f"{URL}/v1/batches", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return [batch["batch_id"] for batch in json.load(response)]
