"""The secret and the token appear in no error, no repr and no log, whatever the service does with them."""

import json
import logging
import pickle
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from scripted_service import TOKENS, Reply, ScriptedService, SetClock, fault, page

import batchscan
from batchscan import BadSettings, BatchscanError, Client

SECRET = ScriptedService.client_secret
PACKAGE = str(Path(batchscan.__file__).parent)


def echo(status: int, secret: str, **headers: str) -> Reply:
    """What frameworks send that show the caller's input."""
    return fault(status, [{"type": "x", "loc": ["body", "x"], "msg": f"not {secret}", "input": secret}], **headers)


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 422, 429, 500, 503])
@pytest.mark.parametrize("endpoint", ["auth", "batches"])
def test_what_a_service_echoes_is_not_repeated(
    scripted: ScriptedService, scripted_client: Any, caplog: pytest.LogCaptureFixture, status: int, endpoint: str
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = SECRET if endpoint == "auth" else f"{TOKENS}1"
    reply = echo(status, secret, Location=f"http://elsewhere.example.org/?{secret}", Content_Type=f"x/{secret}")
    getattr(scripted, endpoint).extend([reply] * 3)
    if status == 401 and endpoint == "batches":
        scripted.batches[1] = echo(status, f"{TOKENS}2")
    with pytest.raises(BatchscanError) as caught:
        list(scripted_client(clock=SetClock(), retry_for=5.0).batches())
    everything = [shown(caught.value), repr(vars(caught.value)), caplog.text, *package_locals(caught.tb)]
    for text in everything:
        assert SECRET not in text and TOKENS not in text


def test_no_library_s_exception_with_the_request_in_it_is_chained(scripted: ScriptedService) -> None:
    client = Client("http://127.0.0.1:9", "bs_x", SECRET)
    with pytest.raises(BatchscanError) as caught:
        list(client.batches())
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_no_repr_holds_the_secret(scripted: ScriptedService, scripted_client: Any) -> None:
    scripted.batches.append(page("a"))
    client: Client = scripted_client()
    list(client.batches())
    assert repr(client) == f"Client(url='{scripted.url}', client_id='bs_scripted')"
    for part in (client, client._access, client._transport):
        assert SECRET not in repr(vars(part)) and TOKENS not in repr(vars(part))


def test_a_client_is_not_pickled_with_its_secret() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Client("http://127.0.0.1:9", "bs_x", SECRET))


def test_a_password_in_the_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(BadSettings, match="user name or password") as caught:
        Client(f"https://bs_x:{SECRET}@scans.example.org", "bs_x", SECRET)
    assert SECRET not in shown(caught.value)


def test_a_netrc_entry_goes_nowhere(
    scripted: ScriptedService, scripted_client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password something")
    monkeypatch.setenv("NETRC", str(netrc))
    scripted.batches.append(page("a"))
    list(scripted_client().batches())
    assert [request.headers.get("Authorization") for request in scripted.seen] == [None, f"Bearer {TOKENS}1"]


def test_settings_come_from_the_environment(scripted: ScriptedService, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BATCHSCAN_URL", "BATCHSCAN_CLIENT_ID", "BATCHSCAN_CLIENT_SECRET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BATCHSCAN_URL", scripted.url + "/")
    with pytest.raises(BadSettings, match="BATCHSCAN_CLIENT_ID and BATCHSCAN_CLIENT_SECRET not set"):
        Client.from_env()
    monkeypatch.setenv("BATCHSCAN_CLIENT_ID", "bs_env")
    monkeypatch.setenv("BATCHSCAN_CLIENT_SECRET", "from-the-environment")
    scripted.batches.append(page("a"))
    with Client.from_env(retry_for=1.0) as client:
        list(client.batches())
    assert client.url == scripted.url
    assert scripted.asked("/v2/auth")[0].form["client_secret"] == "from-the-environment"


@pytest.mark.parametrize(
    "url", ["", "scans.example.org", "ftp://x", "http://", "http://x?y=1", "http://x:99999", "http://[x"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(BadSettings, match="is not a service's address"):
        Client(url, "bs_x", SECRET)


@pytest.mark.parametrize(("client_id", "secret", "name"), [("", "s", "client_id"), ("i", "", "client_secret")])
def test_empty_credentials_are_refused(client_id: str, secret: str, name: str) -> None:
    with pytest.raises(BadSettings, match=f"{name} is empty"):
        Client("http://127.0.0.1:9", client_id, secret)


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error) + json.dumps(str(error))


def package_locals(tb: TracebackType) -> list[str]:
    """What error trackers show of the frames of this package."""
    frames = [frame for frame, _ in traceback.walk_tb(tb) if frame.f_code.co_filename.startswith(PACKAGE)]
    assert frames
    return [repr(frame.f_locals) for frame in frames]
