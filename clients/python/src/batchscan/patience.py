"""When to try again, and when to give up. Sleeps; knows nothing of HTTP."""

import logging
import random
import time
from dataclasses import dataclass
from typing import Protocol

from batchscan.errors import BadSettings, ServiceUnavailable

#: A service that asks for no wait at all must not be asked in a busy loop.
WAIT_SECS_MIN = 0.1
#: Whoever has more time than that asks again after a day. The system cannot sleep for any number of seconds.
WAIT_SECS_MAX = 86_400.0

log = logging.getLogger("batchscan")


class Clock(Protocol):
    """Time and chance, so that a test can set both."""

    def monotonic(self) -> float:
        """Seconds since some moment in the past."""

    def sleep(self, secs: float) -> None:
        """Waits."""

    def between(self, low: float, high: float) -> float:
        """A number from the range, another one each time."""


class SystemClock:
    """The time that is, and real chance."""

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, secs: float) -> None:
        time.sleep(secs)

    def between(self, low: float, high: float) -> float:
        return random.uniform(low, high)


@dataclass(frozen=True, slots=True)
class Rules:
    """The caller's rules: no try of a page begins later than `retry_for` seconds after the first."""

    retry_for: float
    wait: tuple[float, float]
    clock: Clock

    def __post_init__(self) -> None:
        low, high = self.wait
        if not (0 <= self.retry_for and 0 <= low <= high < float("inf")):
            raise BadSettings(
                f"retry_for={self.retry_for} and wait={self.wait} cannot be kept; "
                "give seconds, and the shorter wait first"
            )


class Patience:
    """The patience that is left for one page."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._began = rules.clock.monotonic()
        self._tries = 0

    def wait(self, trouble: str, asked: float | None) -> None:
        """Waits before the next try, for as long as the service asked; raises if there is no time for one."""
        self._tries += 1
        spent = self._rules.clock.monotonic() - self._began
        left = max(0.0, self._rules.retry_for - spent)
        if asked is not None and asked > left:
            raise ServiceUnavailable(
                f"{trouble}; it asks to wait {asked:.0f} s, longer than the {left:.0f} s that are left for trying "
                f"again: come back later, or raise retry_for",
                retry_after=asked,
            )
        # With jitter: clients that failed together must not come back together.
        pause = self._rules.clock.between(*self._rules.wait) if asked is None else max(asked, WAIT_SECS_MIN)
        if pause > left:
            raise ServiceUnavailable(
                f"{trouble}; gave up after {self._tries} {'try' if self._tries == 1 else 'tries'} in {spent:.0f} s: "
                f"come back later, or raise retry_for",
                retry_after=asked,
            )
        pause = min(pause, WAIT_SECS_MAX)
        log.info("%s; trying again in %.1f s", trouble, pause)
        self._rules.clock.sleep(pause)
