"""A batch: one tray scan session, read from its JSON. Knows nothing of HTTP.

What the interface promises is checked once, here; after that the types are the proof.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from typing import Final, Literal, TypeVar

from batchscan.errors import NotBatchscan
from batchscan.secret import is_text, one_line

#: What a frame or a table makes of a field.
Kind = Literal["text", "instant", "integer", "decimal", "boolean"]

#: The fields in the interface's order.
KINDS: Final[Mapping[str, Kind]] = {
    "batch_id": "text",
    "batch_name": "text",
    "batch_creation_date": "instant",
    "crop_type": "text",
    "number_of_images": "integer",
    "total_cells_per_tray": "integer",
    "avg_germinated_seedlings": "decimal",
    "avg_non_germinated_seedlings": "decimal",
    "avg_germination_rate": "decimal",
    "avg_usable_seedlings": "decimal",
    "avg_non_usable_cells": "decimal",
    "avg_usable_seedling_rate": "decimal",
    "avg_coefficient_of_variation": "decimal",
    "avg_median_seedling_size_mm2": "decimal",
    "scanned_by_email": "text",
    "analysis_link": "text",
    "comment": "text",
    "warnings": "boolean",
}
#: The fields that always have a value.
REQUIRED: Final = frozenset({"batch_id", "batch_name", "batch_creation_date", "number_of_images", "warnings"})

# 36 digits before the point are what a 128-bit decimal holds, and more than any tray has.
_DECIMAL = re.compile(r"-?[0-9]{1,36}\.[0-9]{2}")
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|\+00:00)", re.ASCII)
# Frames hold 64-bit integers; a count beyond them is no count.
_INTEGER_MAX = 2**63 - 1

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Batch:
    """One tray scan session: averages per tray, rates in percent."""

    batch_id: str
    batch_name: str
    batch_creation_date: datetime
    crop_type: str | None
    number_of_images: int
    total_cells_per_tray: int | None
    avg_germinated_seedlings: Decimal | None
    avg_non_germinated_seedlings: Decimal | None
    avg_germination_rate: Decimal | None
    avg_usable_seedlings: Decimal | None
    avg_non_usable_cells: Decimal | None
    avg_usable_seedling_rate: Decimal | None
    avg_coefficient_of_variation: Decimal | None
    avg_median_seedling_size_mm2: Decimal | None
    scanned_by_email: str | None
    analysis_link: str | None
    comment: str | None
    warnings: bool
    #: What a newer service says that this version does not know, as it came.
    #: A plain dict behind a read-only type, so that a batch can be copied and pickled.
    extra: Mapping[str, object] = field(default_factory=dict, hash=False)

    @classmethod
    def from_json(cls, document: object, hide_in: Callable[[str], str] = str) -> "Batch":
        """Reads a batch object of the interface, as `json.loads` gives it. `hide_in` is for what an error quotes."""
        if not isinstance(document, dict):
            raise NotBatchscan(f"the service sent {_shown(document, hide_in)} where a batch should be; {_REPORT}")
        fields = _Fields(document, hide_in)
        return cls(
            batch_id=fields.required("batch_id", _text),
            batch_name=fields.required("batch_name", _text),
            batch_creation_date=fields.required("batch_creation_date", instant),
            crop_type=fields.optional("crop_type", _text),
            number_of_images=fields.required("number_of_images", _integer),
            total_cells_per_tray=fields.optional("total_cells_per_tray", _integer),
            avg_germinated_seedlings=fields.optional("avg_germinated_seedlings", _decimal),
            avg_non_germinated_seedlings=fields.optional("avg_non_germinated_seedlings", _decimal),
            avg_germination_rate=fields.optional("avg_germination_rate", _decimal),
            avg_usable_seedlings=fields.optional("avg_usable_seedlings", _decimal),
            avg_non_usable_cells=fields.optional("avg_non_usable_cells", _decimal),
            avg_usable_seedling_rate=fields.optional("avg_usable_seedling_rate", _decimal),
            avg_coefficient_of_variation=fields.optional("avg_coefficient_of_variation", _decimal),
            avg_median_seedling_size_mm2=fields.optional("avg_median_seedling_size_mm2", _decimal),
            scanned_by_email=fields.optional("scanned_by_email", _text),
            analysis_link=fields.optional("analysis_link", _text),
            comment=fields.optional("comment", _text),
            warnings=fields.required("warnings", _boolean),
            extra=fields.others(),
        )


def instant(value: object) -> datetime:
    """Reads `YYYY-MM-DDTHH:MM:SS`, a fraction if there is one, and `Z` or `+00:00`. Digits past the microsecond go."""
    parts = _INSTANT.fullmatch(value) if isinstance(value, str) else None
    if parts is None:
        raise ValueError("a UTC datetime such as 2026-01-31T08:00:00Z")
    seconds = datetime.fromisoformat(parts[1]).replace(tzinfo=timezone.utc)
    return seconds.replace(microsecond=int(parts[2][:6].ljust(6, "0"))) if parts[2] else seconds


class _Fields:
    """The fields of one batch object, and what to say when one is not as promised."""

    __slots__ = ("_document", "_hide_in")

    def __init__(self, document: Mapping[str, object], hide_in: Callable[[str], str]) -> None:
        self._document = document
        self._hide_in = hide_in

    def required(self, name: str, read: Callable[[object], _Value]) -> _Value:
        value = self._document.get(name)
        try:
            return read(value)
        except ValueError as expected:
            what = str(expected)
        raise self._error(f"{name} is {_shown(value, self._hide_in)}, not {what}")

    def optional(self, name: str, read: Callable[[object], _Value]) -> _Value | None:
        return None if self._document.get(name) is None else self.required(name, read)

    def others(self) -> dict[str, object]:
        others = {name: value for name, value in self._document.items() if name not in KINDS}
        if others and not _is_storable(others):
            raise self._error("a field that this version does not know is not valid text, or nested too deep")
        return others

    def _error(self, what: str) -> NotBatchscan:
        batch = one_line(self._hide_in(str(self._document.get("batch_id"))))
        return NotBatchscan(f"batch {batch}: {what}; {_REPORT}")


# The readers below take what `json.loads` gives; their ValueError names what was expected.


def _text(value: object) -> str:
    if isinstance(value, str) and is_text(value):
        return value
    raise ValueError("a string of valid text")


def _integer(value: object) -> int:
    # Python's True is an int; JSON's true is none.
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _INTEGER_MAX:
        return value
    raise ValueError("an integer")


def _decimal(value: object) -> Decimal:
    # `Decimal` alone would take "NaN", "1_0" and " 1 " as well.
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return Decimal(value)
    raise ValueError('a string with a decimal number such as "92.50"')


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError("a boolean")


def _is_storable(fields: Mapping[str, object]) -> bool:
    try:
        return is_text(json.dumps(fields, ensure_ascii=False, default=str))
    except RecursionError:
        return False


def _shown(value: object, hide_in: Callable[[str], str]) -> str:
    return "missing" if value is None else one_line(hide_in(repr(value)))


_REPORT = "tell the service's operator"
