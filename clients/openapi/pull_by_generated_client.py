"""Pulls everything through a client that was generated from the service's own OpenAPI document.

The generated package `batchscan_generated` is in the folder that is given. Holds what came against v1, typed.
"""

import datetime
import os
import sys
from importlib.metadata import version

sys.path.insert(0, sys.argv[1])

from batchscan_generated import AuthenticatedClient, Client
from batchscan_generated.api.batches import list_batches, list_batches_v1
from batchscan_generated.api.tokens import get_token
from batchscan_generated.models import BatchPage, InvalidQuery, Token, TokenError, TokenRequest

URL = os.environ["BATCHSCAN_URL"]
CREDENTIALS = {
    "client_id": os.environ["BATCHSCAN_CLIENT_ID"],
    "client_secret": os.environ["BATCHSCAN_CLIENT_SECRET"],
    "grant_type": "client_credentials",
}
# Far above what a walk takes here: a client that reads on is going in circles.
PAGES_LIMIT = 50


def main() -> None:
    client = signed_in()
    everything = list_batches_v1.sync(client=client)
    pages = walk(client)
    batches = [batch for page in pages for batch in page.data]
    assert len(pages) > 1, "one page holds it all, so that nothing was shown of paging"
    assert batches == everything, f"{len(batches)} batches where v1 has {len(everything)}, or others"
    typed(batches)
    windowed(client, batches)
    refused(client)
    generator = version("openapi-python-client")
    print(f"openapi-python-client {generator}: {len(batches)} batches in {len(pages)} pages, the same as v1")


def signed_in() -> AuthenticatedClient:
    client = Client(base_url=URL, raise_on_unexpected_status=True)
    token = get_token.sync(client=client, body=TokenRequest(**CREDENTIALS))
    assert isinstance(token, Token) and token.token_type == "bearer", token
    wrong = TokenRequest(**{**CREDENTIALS, "client_secret": "not-the-secret-of-anyone"})
    refusal = get_token.sync(client=client, body=wrong)
    assert isinstance(refusal, TokenError) and refusal.error == "invalid_client", refusal
    return AuthenticatedClient(base_url=URL, token=token.access_token, raise_on_unexpected_status=True)


def walk(client: AuthenticatedClient) -> list[BatchPage]:
    pages = [list_batches.sync(client=client)]
    while pages[-1].next_token is not None:
        assert len(pages) < PAGES_LIMIT, f"no end after {PAGES_LIMIT} pages"
        pages.append(list_batches.sync(client=client, next_token=pages[-1].next_token))
    return pages


def typed(batches: list) -> None:
    """Dates are dates, decimals are exact texts, what has no value is None."""
    for batch in batches:
        assert batch.batch_creation_date.utcoffset() == datetime.timedelta(0), batch
        assert batch.avg_germination_rate is None or isinstance(batch.avg_germination_rate, str), batch
        assert isinstance(batch.number_of_images, int) and isinstance(batch.warnings, bool), batch
    assert any(batch.comment is None for batch in batches), "nothing was shown of null"


def windowed(client: AuthenticatedClient, batches: list) -> None:
    """A window as the generated client writes dates: with an offset, escaped."""
    start, end = batches[100].batch_creation_date, batches[200].batch_creation_date
    page = list_batches.sync_detailed(client=client, start_date=start, end_date=end)
    expected = [batch for batch in batches if start <= batch.batch_creation_date <= end]
    assert page.parsed.data == expected, len(page.parsed.data)
    etag = page.headers["etag"]
    again = list_batches.sync_detailed(client=client, start_date=start, end_date=end, if_none_match=etag)
    assert again.status_code == 304, again.status_code


def refused(client: AuthenticatedClient) -> None:
    """A refusal is typed as well."""
    naive = list_batches.sync(client=client, start_date=datetime.datetime(2026, 1, 31))
    assert isinstance(naive, InvalidQuery), naive
    assert [fault.type_ for fault in naive.detail] == ["timezone_aware"], naive
    assert naive.detail[0].loc == ["query", "start_date"], naive


main()
