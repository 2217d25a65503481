"""Starts the batchscan executable for the tests, and reads v1 without any client library."""

import contextlib
import json
import os
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

ROOT = Path(__file__).parent.parent
EXECUTABLE = os.environ.get("BATCHSCAN_EXE") or str(ROOT / "target/release/batchscan")

_START_SECS_MAX = 300
# Longer than the service's own limit for draining connections (30 s).
_STOP_SECS_MAX = 300


@dataclass(frozen=True)
class Service:
    """A running service and its credentials."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)

    def client(self, **settings: Any) -> Any:
        from batchscan import Client  # here, because race.py runs without the package

        return Client(self.url, self.client_id, self.client_secret, **settings)

    def environment(self, home: Path) -> dict[str, str]:
        """For programs that read the service: its URL and credentials, and a home without a developer's settings."""
        return {
            **os.environ,
            "BATCHSCAN_URL": self.url,
            "BATCHSCAN_CLIENT_ID": self.client_id,
            "BATCHSCAN_CLIENT_SECRET": self.client_secret,
            "HOME": str(home),
            "DLT_DATA_DIR": str(home / "dlt"),
            "PYTHONPATH": str(ROOT / "clients/python/src"),
        }

    def v1(self, **query: str) -> list[dict[str, Any]]:
        """The batches of `GET /v1/batches`."""
        return json.loads(self.v1_body(**query))

    def v1_body(self, **query: str) -> bytes:
        form = {"grant_type": "client_credentials", "client_id": self.client_id, "client_secret": self.client_secret}
        token = json.loads(_read(f"{self.url}/v1/auth", data=urlencode(form).encode()))["access_token"]
        return _read(f"{self.url}/v1/batches?{urlencode(query)}", headers={"Authorization": f"Bearer {token}"})


@contextlib.contextmanager
def start_demo(*arguments: str) -> Iterator[Service]:
    """Runs `batchscan demo`. It must exit with 0 after SIGTERM."""
    with _start([EXECUTABLE, "demo", "--listen", "127.0.0.1:0", *arguments]) as service:
        yield service


@contextlib.contextmanager
def start_service(folder: Path, known: Service | None = None) -> Iterator[Service]:
    """Runs `batchscan serve` with the database in a folder: a new one, or one that has the credentials of `known`."""
    if known is None:
        run(folder, "org", "add", "Nursery")
        credential = json.loads(run(folder, "credential", "issue", "--org", "Nursery", "--json"))
    else:
        credential = {"client_id": known.client_id, "client_secret": known.client_secret}
    command = [EXECUTABLE, "serve", "--listen", "127.0.0.1:0", "--database", _database(folder)]
    with _start(command, **credential) as service:
        yield service


@contextlib.contextmanager
def start_operator_api(folder: Path, *flags: str) -> Iterator[Service]:
    """Runs `batchscan serve` with the operator API. The URL is the API's, and the secret is a token with these flags."""
    run(folder, "org", "add", "Nursery")
    issued = json.loads(run(folder, "operator", "token", "issue", "--json", *flags))
    command = [EXECUTABLE, "serve", "--listen", "127.0.0.1:0", "--database", _database(folder)]
    command += ["--operator-listen", "127.0.0.1:0"]
    with _start(command, "operator API on ", client_id=issued["id"], client_secret=issued["token"]) as service:
        yield service


def import_batches(folder: Path, batches: list[dict[str, Any]]) -> None:
    """Imports into the database in a folder."""
    lines = "".join(json.dumps(batch) + "\n" for batch in batches)
    run(folder, "import", "--org", "Nursery", "--format", "ndjson", "-", stdin=lines)


def run(folder: Path, *arguments: str, stdin: str = "") -> str:
    """Runs a command on the database in a folder."""
    command = [EXECUTABLE, *arguments, "--database", _database(folder)]
    return subprocess.run(command, input=stdin, check=True, stdout=subprocess.PIPE, text=True, timeout=300).stdout


def _database(folder: Path) -> str:
    return f"sqlite:{folder / 'batchscan.db'}"


@contextlib.contextmanager
def _start(command: list[str], start_of_url: str = "listening on ", **credential: str) -> Iterator[Service]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield _read_credentials(process, start_of_url, credential)
        finally:
            process.terminate()
            try:
                status = process.wait(_STOP_SECS_MAX)
            finally:
                process.kill()
        assert status == 0, f"{command} exited with {status} after SIGTERM"


def _read_credentials(process: "subprocess.Popen[str]", start_of_url: str, known: dict[str, str]) -> Service:
    labels = {"client id": "client_id", "client secret": "client_secret"}
    values = dict(known)
    timeout = threading.Timer(_START_SECS_MAX, process.kill)
    timeout.start()
    try:
        for line in process.stdout or ():
            values |= {name: line.split()[-1] for label, name in labels.items() if line.strip().startswith(label + " ")}
            if line.startswith(start_of_url):
                return Service(url=line.split()[-1], **values)
    finally:
        timeout.cancel()
    raise RuntimeError(f"the service did not start: {process.args!r}")


def _read(url: str, **request: Any) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, **request), timeout=300) as response:
        body: bytes = response.read()
        return body
