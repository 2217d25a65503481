"""Parses and validates one batch. Knows nothing about HTTP."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any, Final, Literal, get_args, get_type_hints

from batchscan.errors import NotBatchscan
from batchscan.secret import is_text, one_line

#: The type of a field, which frames and tables map to their own types.
Kind = Literal["text", "instant", "integer", "decimal", "boolean"]

# 36 digits before the point fit into a 128-bit decimal.
_DECIMAL = re.compile(r"-?[0-9]{1,36}\.[0-9]{2}")
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|\+00:00)", re.ASCII)
# Frames use 64-bit integers.
_INTEGER_MAX = 2**63 - 1


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
    #: Fields that this version does not know, unparsed. A plain dict, so that a batch can be copied and pickled.
    extra: Mapping[str, object] = field(default_factory=dict, hash=False)

    @classmethod
    def from_json(cls, document: object, redact: Callable[[str], str] = str) -> "Batch":
        """Parses a batch object of the API, as `json.loads` returns it. `redact` is applied to quotations in errors."""
        if not isinstance(document, dict):
            raise NotBatchscan(f"expected a batch, found {_quote(document, redact)}; {_CONTACT}")
        values, problem = _parse_fields(document, redact)
        if problem is None:
            return cls(**values)
        batch_id = one_line(redact(str(document.get("batch_id"))))
        raise NotBatchscan(f"batch {batch_id}: {problem}; {_CONTACT}")


_HINTS = {name: hint for name, hint in get_type_hints(Batch).items() if name != "extra"}
_KINDS: Final[Mapping[type, Kind]] = {
    str: "text",
    datetime: "instant",
    int: "integer",
    Decimal: "decimal",
    bool: "boolean",
}
#: The fields in the API's order.
KINDS: Final[Mapping[str, Kind]] = {name: _KINDS[(*get_args(hint), hint)[0]] for name, hint in _HINTS.items()}
#: The fields that are never null.
REQUIRED: Final = frozenset(name for name, hint in _HINTS.items() if not get_args(hint))


def _parse_fields(document: dict[str, object], redact: Callable[[str], str]) -> tuple[dict[str, Any], str | None]:
    """The arguments of a `Batch`, and the first problem. Raises nothing, so that no exception refers to the values."""
    values: dict[str, Any] = {"extra": {name: value for name, value in document.items() if name not in KINDS}}
    for name, kind in KINDS.items():
        value = document.get(name)
        try:
            values[name] = None if value is None and name not in REQUIRED else _PARSERS[kind](value)
        except ValueError as expected:
            return values, f"{name}: expected {expected}, found {_quote(value, redact)}"
    if values["extra"] and not _is_encodable(values["extra"]):
        return values, "an unknown field is not valid text, or nested too deeply"
    return values, None


def parse_instant(value: object) -> datetime:
    """Parses a UTC datetime. Digits after the microseconds are dropped."""
    parts = _INSTANT.fullmatch(value) if isinstance(value, str) else None
    if parts is None:
        raise ValueError("a UTC datetime such as 2026-01-31T08:00:00Z")
    try:
        seconds = datetime.fromisoformat(parts[1]).replace(tzinfo=timezone.utc)
    except ValueError:
        raise ValueError("a valid date") from None
    return seconds.replace(microsecond=int(parts[2][:6].ljust(6, "0"))) if parts[2] else seconds


def _parse_text(value: object) -> str:
    if isinstance(value, str) and is_text(value):
        return value
    raise ValueError("a string of valid text")


def _parse_integer(value: object) -> int:
    # In Python, True is an int.
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _INTEGER_MAX:
        return value
    raise ValueError("an integer")


def _parse_decimal(value: object) -> Decimal:
    # `Decimal` alone also accepts "NaN", "1_0" and " 1 ".
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return Decimal(value)
    raise ValueError('a decimal string such as "92.50"')


def _parse_boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError("a boolean")


#: Each raises ValueError with a description of what it expected.
_PARSERS: Final[Mapping[Kind, Callable[[object], object]]] = {
    "text": _parse_text,
    "instant": parse_instant,
    "integer": _parse_integer,
    "decimal": _parse_decimal,
    "boolean": _parse_boolean,
}


def _is_encodable(fields: Mapping[str, object]) -> bool:
    try:
        return is_text(json.dumps(fields, ensure_ascii=False, default=str))
    except RecursionError:
        return False


def _quote(value: object, redact: Callable[[str], str]) -> str:
    return "nothing" if value is None else one_line(redact(repr(value)))


_CONTACT = "contact the service's operator"
