"""A scripted service, for failures that the real one cannot be made to show."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from batchscan import Client
from scripted_service import FakeClock, ScriptedService


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def scripted() -> Iterator[ScriptedService]:
    with ScriptedService() as running:
        yield running


@pytest.fixture
def connect(scripted: ScriptedService) -> Iterator[Callable[..., Client]]:
    """Makes a client of the scripted service."""
    with contextlib.ExitStack() as clients:

        def connect(**settings: Any) -> Client:
            return clients.enter_context(Client(scripted.url, "bs_scripted", scripted.client_secret, **settings))

        yield connect
