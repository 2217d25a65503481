"""HTTP requests, and wrk to send them. Knows no server."""

import json
import signal
import subprocess
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

SCRIPT = Path(__file__).parent / "load/load.lua"
# Longer than a connection waits while other servers have their turns. That is slow, not wrong.
RESPONSE_TIMEOUT_SECS = 300
# More requests than one run of wrk sends, so that no two runs send the same one. Not a round number: when many requests
# take turns, a run then starts in the middle of the list.
COUNTER_STEP = 1_000_250
# Where the counter starts, as in load.lua: later than any batch.
COUNTER_START = datetime(2199, 1, 1, tzinfo=timezone.utc)
# Compressed pages differ a little in size.
MIN_SIZE_RATIO = 0.9
# Upper limit for the head of a response without a body.
MAX_HEAD_BYTES = 1024


class BenchError(Exception):
    """Ends the run: a server failed, or a response is wrong."""


def require(condition: object, message: str) -> None:
    if not condition:
        raise BenchError(message)


class Request(NamedTuple):
    """A request. The path may contain `{date}` or `{fraction}`: see load.lua."""

    path: str
    headers: tuple[tuple[str, str], ...] = ()
    method: str = "GET"
    body: str = ""

    def with_header(self, name: str, value: str) -> "Request":
        return self._replace(headers=(*self.headers, (name, value)))

    def fill(self, n: int) -> "Request":
        """Replaces the placeholder by the counter's value, as load.lua does."""
        date = (COUNTER_START + timedelta(microseconds=n)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return self._replace(path=self.path.replace("{date}", date).replace("{fraction}", f"{n % 1_000_000:06}"))

    def line(self) -> str:
        headers = (f"{name}: {value}" for name, value in self.headers)
        return "\t".join((self.method, self.path, self.body, *headers)) + "\n"


class Wrk:
    """Runs wrk. `folder` is for the files with the requests, `prefix` starts the command."""

    def __init__(self, folder: Path, prefix: list[str]):
        self.folder, self.prefix, self.next = folder, prefix, 0

    def reserve(self) -> int:
        """A counter value from which no other run counts."""
        self.next += COUNTER_STEP
        return self.next

    def start(self, port: int, requests: list[Request], connections: int, seconds: int) -> subprocess.Popen:
        """Sends the requests in turn, until the time is over or SIGINT arrives."""
        file = self.folder / f"requests-{port}.txt"
        file.write_text("".join(map(Request.line, requests)))
        command = ["wrk", "--threads", "1", "--connections", str(connections), "--duration", f"{seconds}s"]
        command += ["--latency", "--timeout", f"{RESPONSE_TIMEOUT_SECS}s", "--script", str(SCRIPT)]
        command += [f"http://127.0.0.1:{port}", "--", str(file), str(self.reserve())]
        return subprocess.Popen(self.prefix + command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, port: int, requests: list[Request], connections: int, seconds: int, min_bytes: int) -> dict:
        """Fails on any error, and on responses that are too small."""
        return read_result(self.start(port, requests, connections, seconds).communicate()[0], min_bytes)


def interrupt(wrk: subprocess.Popen) -> None:
    """Ends wrk. The signal may arrive at a thread that ignores it, so it is repeated."""
    while wrk.poll() is None:
        wrk.send_signal(signal.SIGINT)
        time.sleep(0.02)


def read_result(output: str, min_bytes: int) -> dict:
    """Rate and latency from wrk's output. `min_bytes` of 0 means that responses have no body."""
    line = next((line for line in output.splitlines() if line.startswith("result ")), None)
    require(line, f"wrk printed no result:\n{output}")
    result = json.loads(line.removeprefix("result "))
    count, size = result["requests"], result["bytes"]
    errors = {name: result[name] for name in ("status", "connect", "read", "write", "timeout") if result[name]}
    require(count and not errors, f"{count} requests, errors: {errors}")
    is_expected = size >= count * min_bytes * MIN_SIZE_RATIO if min_bytes else size <= count * MAX_HEAD_BYTES
    require(is_expected, f"{count} responses have {size} bytes; expected {min_bytes} each")
    return {
        "requests": count,
        "rate": count / result["duration_us"] * 1e6,
        "p50_ms": result["p50_us"] / 1e3,
        "p99_ms": result["p99_us"] / 1e3,
    }
