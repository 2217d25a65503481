"""Decides when to retry and when to give up. Knows nothing about HTTP."""

import logging
import random
import time
from dataclasses import dataclass
from typing import Protocol

from batchscan.errors import BadSettings, ServiceUnavailable

#: Prevents a busy loop when a service sends `Retry-After: 0`.
WAIT_SECS_MIN = 0.1
#: The longest single wait. `time.sleep` fails for very large numbers.
WAIT_SECS_MAX = 86_400.0

log = logging.getLogger("batchscan")


class Clock(Protocol):
    """Time and randomness, which tests can set."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary point in the past."""
        ...

    def sleep(self, secs: float) -> None:
        """Waits."""
        ...

    def uniform(self, low: float, high: float) -> float:
        """A random number between the two."""
        ...


class SystemClock:
    """Real time and randomness."""

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, secs: float) -> None:
        time.sleep(secs)

    def uniform(self, low: float, high: float) -> float:
        return random.uniform(low, high)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """A page is not retried later than `retry_for` seconds after the first try."""

    retry_for: float
    wait: tuple[float, float]
    clock: Clock

    def __post_init__(self) -> None:
        low, high = self.wait
        if not (0 <= self.retry_for and 0 <= low <= high < float("inf")):
            raise BadSettings(
                f"retry_for={self.retry_for} or wait={self.wait} is out of range; "
                "give seconds, with the shorter wait first"
            )


class Retries:
    """The retries of one page."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._started = policy.clock.monotonic()
        self._tries = 0

    def wait(self, problem: str, retry_after: float | None) -> None:
        """Waits before the next try, for as long as the service requested. Raises if no time is left."""
        self._tries += 1
        spent = self._policy.clock.monotonic() - self._started
        left = max(0.0, self._policy.retry_for - spent)
        if retry_after is not None and retry_after > left:
            raise ServiceUnavailable(
                f"{problem}; the service asks to wait {retry_after:.0f} s, but only {left:.0f} s are left for retries: "
                f"try again later, or raise retry_for",
                retry_after,
            )
        # With jitter, so that clients that failed together do not retry together.
        pause = (
            self._policy.clock.uniform(*self._policy.wait) if retry_after is None else max(retry_after, WAIT_SECS_MIN)
        )
        if pause > left:
            raise ServiceUnavailable(
                f"{problem}; gave up after {self._tries} {'try' if self._tries == 1 else 'tries'} in {spent:.0f} s: "
                f"try again later, or raise retry_for",
                retry_after,
            )
        pause = min(pause, WAIT_SECS_MAX)
        log.info("%s; retrying in %.1f s", problem, pause)
        self._policy.clock.sleep(pause)
