"""What the organisation must contain, and whether a list of batches matches it. Knows nothing about HTTP."""

import json
import threading
import time
from bisect import bisect_left, bisect_right

# A standby may be 2 s behind and still be read from (decision 041). With time for a busy machine, a batch must be visible
# this long after it was acknowledged.
VISIBLE_AFTER_SECS = 20
DECODER = json.JSONDecoder()

# The place of a batch in the order: creation date without its `Z`, so that text sorts like time, then id.
Position = tuple[str, str]
# Start and end, both inclusive.
DateRange = tuple[str, str]


class Wrong(Exception):
    """A response with the wrong content."""


class Added:
    """A batch that is imported during the run."""

    def __init__(self):
        self.sent_at, self.acknowledged_at = time.monotonic(), None

    def must_be_visible(self, now: float) -> bool:
        return self.acknowledged_at is not None and self.acknowledged_at + VISIBLE_AFTER_SECS < now


class Expected:
    """The base, which never changes, and what was added."""

    def __init__(self, imported: str):
        """Starts with the JSON array that was imported."""
        batches = []
        at = 1
        while imported[at - 1] != "]":
            batch, end = DECODER.raw_decode(imported, at)
            # The text in responses, to the byte.
            batches.append((position_of(batch), imported[at:end]))
            at = end + 1
        self.base = sorted(batches)
        self.dates = [position[0] for position, _ in self.base]
        self.added: dict[Position, Added] = {}
        self.lock = threading.Lock()

    def range(self, seed: int, batches: int) -> DateRange:
        """A range that starts at a batch of the base and ends some batches later; `seed` chooses the batch."""
        first = seed % max(len(self.base) - batches, 1)
        return self.dates[first], self.dates[min(first + batches, len(self.base) - 1)]

    def send(self, position: Position):
        """An import is about to send a batch: from now on it may be visible."""
        with self.lock:
            self.added.setdefault(position, Added())

    def acknowledge(self, position: Position):
        """An import was acknowledged: soon its batch must be visible."""
        self.added[position].acknowledged_at = time.monotonic()

    def acknowledged(self) -> list[Position]:
        with self.lock:
            return [position for position, added in self.added.items() if added.acknowledged_at is not None]

    def has_changed_since(self, then: float) -> bool:
        """Whether a batch that was sent after an instant must be visible now."""
        now = time.monotonic()
        with self.lock:
            return any(added.sent_at > then and added.must_be_visible(now) for added in self.added.values())

    def verifier(self, date_range: DateRange | None = None, now: float | None = None) -> "Verifier":
        """Verifies a list that was requested at an instant."""
        now = time.monotonic() if now is None else now
        with self.lock:
            visible = {position for position, added in self.added.items() if added.must_be_visible(now)}
        return Verifier(self, date_range, visible)

    def final_verifier(self) -> "Verifier":
        """Verifies a list that must contain everything that was ever acknowledged."""
        return Verifier(self, None, set(self.acknowledged()))


class Verifier:
    """Verifies batches one after the other: every batch of the base exactly once, in order and to the byte, everything that
    must be visible, and nothing that was never sent."""

    def __init__(self, expected: Expected, date_range: DateRange | None, required: set[Position]):
        self.expected, self.date_range = expected, date_range
        self.required = {position for position in required if self.in_range(position)}
        start, end = date_range or ("", "~")
        self.next, self.end_of_base = bisect_left(expected.dates, start), bisect_right(expected.dates, end)
        self.last: Position = ("", "")

    def in_range(self, position: Position) -> bool:
        return self.date_range is None or self.date_range[0] <= position[0] <= self.date_range[1]

    def array(self, text: str, at: int = 0) -> int:
        """Verifies all batches of the array at a place of a text. Returns the place of its end."""
        if not text.startswith("[", at):
            raise Wrong(f"not an array: {text[at : at + 100]}")
        at += 1
        if text.startswith("]", at):
            return at + 1
        while True:
            at = self.batch(text, at)
            if text.startswith("]", at):
                return at + 1
            if not text.startswith(",", at):
                raise Wrong(f"not an array: {text[at : at + 100]}")
            at += 1

    def list(self, text: str):
        """Verifies a whole list of v1."""
        if self.array(text) != len(text):
            raise Wrong("text after the array")
        self.end()

    def batch(self, text: str, at: int) -> int:
        expected_next = self.expected.base[self.next] if self.next < self.end_of_base else None
        if expected_next and text.startswith(expected_next[1], at):
            position, at = expected_next[0], at + len(expected_next[1])
            self.next += 1
        else:
            position, at = self.added_batch(text, at, expected_next and expected_next[0])
        if position <= self.last:
            raise Wrong(f"{position} came after {self.last}")
        self.last = position
        return at

    def added_batch(self, text: str, at: int, expected_next: Position | None) -> tuple[Position, int]:
        try:
            batch, at = DECODER.raw_decode(text, at)
            position = position_of(batch)
        except (ValueError, KeyError, TypeError) as error:
            raise Wrong(f"not a batch: {text[at : at + 100]}") from error
        if position not in self.expected.added:
            raise Wrong(f"{position} came instead of {expected_next}")
        if not self.in_range(position):
            raise Wrong(f"{position} is outside the date range")
        if expected_next and expected_next < position:
            raise Wrong(f"{position} came before {expected_next}")
        self.required.discard(position)
        return position, at

    def end(self):
        """The list is complete: nothing may be missing."""
        if self.next < self.end_of_base:
            missing, first = self.end_of_base - self.next, self.expected.base[self.next][0]
            raise Wrong(f"{missing} batches are missing, from {first} on")
        if self.required:
            raise Wrong(f"{min(self.required)} was acknowledged and is missing")


def position_of(batch: dict) -> Position:
    return batch["batch_creation_date"].removesuffix("Z"), batch["batch_id"]
