"""The services that the tests share. Each worker of pytest starts its own."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service import EXECUTABLE, Service, start_demo

# No traffic leaves this machine: no proxy, no telemetry.
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"
os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
# A developer's own settings must not affect the tests.
for _name in [name for name in os.environ if name.startswith("BATCHSCAN_") and name != "BATCHSCAN_EXE"]:
    del os.environ[_name]


def pytest_sessionstart() -> None:
    if not Path(EXECUTABLE).is_file():
        pytest.exit(f"{EXECUTABLE} not found; run `cargo build --release`, or set BATCHSCAN_EXE", returncode=1)


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    """Three pages of batches."""
    with start_demo("--batches", "2500") as running:
        yield running


@pytest.fixture(scope="session")
def failing_service() -> Iterator[Service]:
    """Four pages of batches. 30 % of the requests fail with 503."""
    with start_demo("--batches", "3500", "--fail-rate", "0.3") as running:
        yield running


@pytest.fixture(scope="session")
def v1_batches(service: Service) -> list[dict[str, Any]]:
    return service.v1()


@pytest.fixture(scope="session")
def v1_ids(v1_batches: list[dict[str, Any]]) -> list[str]:
    return [batch["batch_id"] for batch in v1_batches]
