"""Read what tray scanners measured: every batch of a nursery, typed, paged and retried.

    from batchscan import Client

    with Client.from_env() as client:
        for batch in client.batches(start=date(2026, 1, 1)):
            print(batch.batch_name, batch.avg_germination_rate)

| module      | owns                                                           |
|-------------|----------------------------------------------------------------|
| `client`    | `Client`: the walk over the pages                              |
| `batch`     | `Batch`: one tray scan session, read from its JSON             |
| `window`    | what may be said as start and end                              |
| `errors`    | what can go wrong, and whether trying again can help           |
| `frames`    | batches as a pandas or polars frame                            |
| `dlt`       | batches as a dlt source (import it by name)                    |
| `answers`   | what each status means, and what a page looks like             |
| `access`    | tokens: when to get one, when it is too old                    |
| `patience`  | when to try again, and when to give up                         |
| `transport` | one request and its answer                                     |
| `secret`    | text that is never shown                                       |
"""

from batchscan.batch import Batch
from batchscan.client import Client, Page
from batchscan.errors import (
    BadRequest,
    BadSettings,
    BatchscanError,
    CredentialsRefused,
    CursorRepeated,
    NotBatchscan,
    Redirected,
    ServiceFailed,
    ServiceUnavailable,
    Unreachable,
    Untrusted,
)

__all__ = [
    "BadRequest",
    "BadSettings",
    "Batch",
    "BatchscanError",
    "Client",
    "CredentialsRefused",
    "CursorRepeated",
    "NotBatchscan",
    "Page",
    "Redirected",
    "ServiceFailed",
    "ServiceUnavailable",
    "Unreachable",
    "Untrusted",
]
