"""A real service for the tests: the executable that BATCHSCAN_EXE names, one for all tests that only read."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import pytest
from scripted_service import ScriptedService

from batchscan import Client

# Nothing in these tests leaves this machine: not through a proxy, and not to those who count dlt's users.
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"
os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"

_START_SECS_MAX = 30


@dataclass(frozen=True)
class Service:
    """A running service, and the credentials to read it."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)

    def client(self, **settings: Any) -> Client:
        return Client(self.url, self.client_id, self.client_secret, **settings)

    def v1(self, **query: str) -> list[dict[str, Any]]:
        """What v1 answers, read without the package under test."""
        form = {"grant_type": "client_credentials", "client_id": self.client_id, "client_secret": self.client_secret}
        token = _json(urllib.request.Request(f"{self.url}/v1/auth", urlencode(form).encode()))["access_token"]
        address = f"{self.url}/v1/batches?{urlencode(query)}"
        batches: list[dict[str, Any]] = _json(
            urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
        )
        return batches


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    """Three pages of batches."""
    with demo("--batches", "2500") as running:
        yield running


@pytest.fixture(scope="session")
def failing_service() -> Iterator[Service]:
    """Two pages of batches, and every other request fails with 503."""
    with demo("--batches", "1500", "--fail-rate", "0.5") as running:
        yield running


@pytest.fixture(scope="session")
def v1_batches(service: Service) -> list[dict[str, Any]]:
    return service.v1()


@pytest.fixture
def scripted() -> Iterator[ScriptedService]:
    """A server of this process, for the faults that a real service cannot be made to show."""
    with ScriptedService() as running:
        yield running


@pytest.fixture
def scripted_client(scripted: ScriptedService) -> Iterator[Callable[..., Client]]:
    with contextlib.ExitStack() as opened:

        def connect(**settings: Any) -> Client:
            return opened.enter_context(Client(scripted.url, "bs_scripted", scripted.client_secret, **settings))

        yield connect


@contextlib.contextmanager
def demo(*arguments: str) -> Iterator[Service]:
    executable = os.environ.get("BATCHSCAN_EXE")
    if not executable:
        pytest.fail("BATCHSCAN_EXE is not set: these tests need the batchscan executable", pytrace=False)
    command = [executable, "demo", "--listen", "127.0.0.1:0", *arguments]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            yield _announced(process)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=_START_SECS_MAX)


def _announced(process: "subprocess.Popen[str]") -> Service:
    assert process.stdout is not None
    told: dict[str, str] = {}
    watchdog = threading.Timer(_START_SECS_MAX, process.kill)
    watchdog.start()
    for line in process.stdout:
        for label in ("URL", "client id", "client secret"):
            if line.strip().startswith(label + " "):
                told[label] = line.split()[-1]
        if line.startswith("listening on"):
            watchdog.cancel()
            return Service(told["URL"], told["client id"], told["client secret"])
    watchdog.cancel()
    pytest.fail(f"the service did not start: {process.args!r}", pytrace=False)


def _json(request: urllib.request.Request) -> Any:
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)
