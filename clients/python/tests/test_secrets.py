"""No error, repr or log contains a secret or a token."""

import html
import json
import logging
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

import batchscan
from batchscan import BadRequest, BadSettings, BatchscanError, Client, NotBatchscan, Redirected
from batchscan.secret import Secret, one_line
from scripted_service import TOKENS, FakeClock, Reply, ScriptedService, error, page
from test_retries import raw_server

SECRET = ScriptedService.client_secret
PACKAGE = str(Path(batchscan.__file__).parent)


def echo(status: int, secret: str, **headers: str) -> Reply:
    """Some frameworks quote rejected input."""
    return error(status, [{"type": "x", "loc": ["body", "x"], "msg": f"not {secret}", "input": secret}], **headers)


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 422, 429, 500, 503])
@pytest.mark.parametrize("endpoint", ["auth", "batches"])
def test_echoed_secrets_are_redacted_in_errors_logs_and_locals(scripted, connect, caplog, status, endpoint):
    caplog.set_level(logging.DEBUG)
    secret = SECRET if endpoint == "auth" else f"{TOKENS}1 {SECRET}"
    reply = echo(status, secret, Location=f"http://elsewhere.example.org/?{secret}", Content_Type=f"x/{secret}")
    getattr(scripted, endpoint).extend([reply] * 3)
    if status == 401 and endpoint == "batches":
        scripted.batches[1] = echo(status, f"{TOKENS}1 {TOKENS}2 {SECRET}")
    with pytest.raises(BatchscanError) as caught:
        list(connect(clock=FakeClock(), retry_for=5.0).batches())
    everything = [shown(caught.value), repr(vars(caught.value)), caplog.text, *package_locals(caught.tb)]
    for text in everything:
        assert SECRET not in text and TOKENS not in text


def test_the_rest_of_the_service_s_text_is_kept(scripted, connect):
    scripted.batches.extend([error(422, f"no {SECRET}, {TOKENS}1"), Reply(307, b"", {"Location": f"/{SECRET}/x"})])
    with pytest.raises(BadRequest) as caught:
        list(connect().batches())
    assert caught.value.detail == "no [redacted], [redacted]"
    with pytest.raises(Redirected) as redirected:
        list(connect().batches())
    assert redirected.value.target == "/[redacted]/x"


def utf16_escapes(text: str) -> str:
    units = text.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


ENCODINGS: list[Callable[[str], str]] = [
    str,
    str.upper,
    quote,
    quote_plus,
    lambda text: quote(text, safe="").lower(),
    lambda text: quote(quote(text, safe="")),
    lambda text: "".join(f"%{octet:02x}" for octet in text.encode()),
    html.escape,
    lambda text: "".join(f"&#{ord(char)};" for char in text),
    json.dumps,
    lambda text: json.dumps(json.dumps(text)),
    lambda text: json.dumps(text).replace("/", "\\/"),
    utf16_escapes,
    lambda text: text[:5] + utf16_escapes(text[5:]),
    lambda text: quote(json.dumps(text)),
    repr,
    ascii,
    lambda text: repr(text.encode()),
    lambda text: text.encode().decode("latin-1"),
]


@pytest.mark.parametrize("secret", [SECRET, "a\"b\\c/d é&<>'+% \U0001f600xyz", "%41%42%43%44", "with a line's end\n"])
@pytest.mark.parametrize("encode", ENCODINGS)
def test_a_secret_is_redacted_in_every_encoding(secret, encode):
    hidden = Secret(secret).redact(f"<{encode(secret)}>")
    assert "[redacted]" in hidden and not set(hidden) & {"x", "K", "k", "4", "w"}


def test_other_text_is_not_redacted():
    text = "100 % of a+b \\u0041 &amp; %41"
    assert Secret(SECRET).redact(text) == text


def test_text_that_cannot_be_decoded_is_redacted():
    assert Secret(SECRET).redact(f"&#{'9' * 5000};") == "[redacted]"


def test_data_is_not_redacted_but_quotations_in_errors_are(scripted, connect):
    # Where a long text is shortened.
    long = "." * 290 + SECRET
    scripted.batches.extend([page("a", comment=SECRET), page(SECRET, number_of_images=long)])
    client: Client = connect()
    assert next(client.batches()).comment == SECRET
    with pytest.raises(NotBatchscan, match=r"batch \[redacted\]: number_of_images: expected") as caught:
        list(client.batches())
    assert SECRET[:5] not in str(caught.value)


def test_a_url_in_an_error_has_no_cursor(scripted, connect, monkeypatch):
    monkeypatch.setattr("batchscan.client._PAGE_BODY_MAX_BYTES", 100)
    scripted.batches.extend([page(next_token=SECRET), page("a")])
    with pytest.raises(NotBatchscan, match="/v2/batches returned more than"):
        list(connect().batches())


def test_an_invalid_response_is_redacted():
    with raw_server(f"no HTTP, {SECRET}\r\n".encode()) as url:
        client = Client(url, "bs_x", SECRET, retry_for=0)
        # As after a first response. Before it, the server's text is not quoted at all.
        client._transport._reached = True
        with pytest.raises(BatchscanError, match=r"failed: no HTTP, \[redacted\]") as caught:
            list(client.batches())
    assert SECRET not in shown(caught.value)


@pytest.mark.parametrize("control", [*range(0x2028, 0x202F), *range(0x2066, 0x206A), 0x200F, 0xD800], ids=hex)
def test_control_characters_become_spaces(control):
    assert one_line(f"a{chr(control)}b") == "a b"


def test_a_detail_becomes_one_line(scripted, connect):
    scripted.batches.append(error(422, "not\u202e\u2067 like\u2028this\ud800"))
    with pytest.raises(BadRequest, match=r"\(not like this\)"):
        list(connect().batches())


@pytest.mark.parametrize("name", ["client_id", "client_secret"])
def test_credentials_that_are_not_valid_text_are_rejected_and_not_quoted(name):
    credentials: dict[str, Any] = {"client_id": "bs_x", "client_secret": SECRET, name: f"{SECRET}\udcff"}
    with pytest.raises(BadSettings, match=f"{name} is not valid text") as caught:
        Client("http://127.0.0.1:9", **credentials)
    assert SECRET not in shown(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_no_exception_of_a_library_is_chained(scripted):
    client = Client("http://127.0.0.1:9", "bs_x", SECRET)
    with pytest.raises(BatchscanError) as caught:
        list(client.batches())
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_no_repr_contains_the_secret(scripted, connect):
    scripted.batches.append(page("a"))
    client: Client = connect()
    list(client.batches())
    assert repr(client) == f"Client(url='{scripted.url}', client_id='bs_scripted')"
    for part in (client, client._tokens, client._transport):
        assert SECRET not in repr(vars(part)) and TOKENS not in repr(vars(part))


def test_a_client_cannot_be_pickled():
    with pytest.raises(TypeError):
        pickle.dumps(Client("http://127.0.0.1:9", "bs_x", SECRET))


def test_a_password_in_the_url_is_rejected_and_not_quoted():
    with pytest.raises(BadSettings, match="user name or password") as caught:
        Client(f"https://bs_x:{SECRET}@scans.example.org", "bs_x", SECRET)
    assert SECRET not in shown(caught.value)


def test_netrc_is_ignored(scripted, connect, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password something")
    monkeypatch.setenv("NETRC", str(netrc))
    scripted.batches.append(page("a"))
    list(connect().batches())
    assert [request.headers.get("Authorization") for request in scripted.requests] == [None, f"Bearer {TOKENS}1"]


def test_settings_come_from_the_environment(scripted, monkeypatch):
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
    assert scripted.requests_to("/v2/auth")[0].form["client_secret"] == "from-the-environment"


@pytest.mark.parametrize(
    "url",
    ["", "scans.example.org", "ftp://x", "http://", "http://x?y=1", "http://x:99999", "http://[x", "http://x/\ud800"],
)
def test_an_invalid_url_is_rejected(url):
    with pytest.raises(BadSettings, match="is not a valid URL"):
        Client(url, "bs_x", SECRET)


@pytest.mark.parametrize(("client_id", "secret", "name"), [("", "s", "client_id"), ("i", "", "client_secret")])
def test_empty_credentials_are_rejected(client_id, secret, name):
    with pytest.raises(BadSettings, match=f"{name} is empty"):
        Client("http://127.0.0.1:9", client_id, secret)


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error) + json.dumps(str(error))


def package_locals(tb: TracebackType) -> list[str]:
    """The local variables that error trackers show."""
    frames = [frame for frame, _ in traceback.walk_tb(tb) if frame.f_code.co_filename.startswith(PACKAGE)]
    assert frames
    return [repr(frame.f_locals) for frame in frames]
