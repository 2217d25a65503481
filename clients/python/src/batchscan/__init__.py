"""Reads the batches of a nursery from a batchscan service: typed, page by page, with retries.

    from batchscan import Client

    with Client.from_env() as client:
        for batch in client.batches(start=date(2026, 1, 1)):
            print(batch.batch_name, batch.avg_germination_rate)

| module       | owns                                            |
|--------------|-------------------------------------------------|
| `client`     | `Client`: pagination, changes                   |
| `batch`      | `Batch`: parsing and validation                 |
| `date_range` | the start and end of a query                    |
| `errors`     | all errors                                      |
| `frames`     | pandas and polars frames                        |
| `dlt`        | dlt sources (import it by name)                 |
| `responses`  | the meaning of each status, the form of a page  |
| `tokens`     | access tokens and their renewal                 |
| `retry`      | when to retry and when to give up               |
| `transport`  | one HTTP request and its response               |
| `secret`     | redaction of secrets                            |
"""

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as _installed_version

from batchscan.batch import Batch
from batchscan.client import Changes, Client, Page
from batchscan.errors import (
    BadRequest,
    BadSettings,
    BatchscanError,
    CredentialsRefused,
    CursorRepeated,
    NotBatchscan,
    PositionGone,
    Redirected,
    ServiceFailed,
    ServiceUnavailable,
    Unreachable,
    Untrusted,
)

try:
    __version__ = _installed_version("batchscan")
except PackageNotFoundError:  # the source tree, without an installation
    __version__ = "0"

__all__ = [
    "BadRequest",
    "BadSettings",
    "Batch",
    "BatchscanError",
    "Changes",
    "Client",
    "CredentialsRefused",
    "CursorRepeated",
    "NotBatchscan",
    "Page",
    "PositionGone",
    "Redirected",
    "ServiceFailed",
    "ServiceUnavailable",
    "Unreachable",
    "Untrusted",
    "__version__",
]
