"""Turns a start and an end into query parameters. Knows nothing about HTTP."""

from collections.abc import Mapping
from datetime import date, datetime, time, timezone
from typing import TypeAlias

from batchscan.errors import BadSettings
from batchscan.secret import is_text

#: An aware datetime, a date in UTC (also as text, 2026-01-31), or text in the API's own format. None: no limit.
Bound: TypeAlias = datetime | date | str | None

_EXAMPLE = "2026-01-31T08:00:00Z"


def date_range(start: Bound, end: Bound) -> Mapping[str, str]:
    """The query parameters of a date range. Both ends are included; a date as end means the whole day."""
    texts = {"start_date": bound_text("start", start, time.min), "end_date": bound_text("end", end, time.max)}
    first, last = map(_parse, texts.values())
    if first is not None and last is not None and first > last:
        # The service would return no batches, as if nothing had been scanned.
        raise BadSettings(f"start is after end: {start} is later than {end}; give the earlier one first")
    return {name: text for name, text in texts.items() if text is not None}


def bound_text(name: str, bound: Bound, time_of_day: time) -> str | None:
    """One end of a range, as the API writes it. `time_of_day` completes a date."""
    if bound is None:
        return None
    if isinstance(bound, str):
        if not is_text(bound):
            raise BadSettings(f"{name} is {bound!r}, which is not valid text; give text such as {_EXAMPLE}")
        if (day := _parse_day(bound)) is not None:
            return bound_text(name, day, time_of_day)
        if len(bound) < len("2026-01-31T08"):
            raise BadSettings(f"{name} is {bound!r}; give a date such as 2026-01-31, or {_EXAMPLE}")
        # The service validates other text, and reports the error of each field.
        return bound
    if isinstance(bound, datetime):
        return _utc_text(_to_utc(name, bound))
    if isinstance(bound, date):
        return _utc_text(datetime.combine(bound, time_of_day, timezone.utc))
    raise BadSettings(f"{name} is a {type(bound).__name__}; give an aware datetime, a date or text such as {_EXAMPLE}")


def _parse_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if len(text) == len("2026-01-31") else None
    except ValueError:
        return None


def _parse(text: str | None) -> datetime | None:
    """None for text that only the service can interpret."""
    try:
        parsed = datetime.fromisoformat((text or "").replace("Z", "+00:00"))
    except ValueError:
        return None
    return parsed if parsed.tzinfo else None


def _to_utc(name: str, bound: datetime) -> datetime:
    if bound.utcoffset() is None:
        raise BadSettings(
            f"{name} is {bound}, which has no timezone; add one, as in datetime(2026, 1, 31, 8, tzinfo=timezone.utc)"
        )
    try:
        return bound.astimezone(timezone.utc)
    except OverflowError:
        pass
    raise BadSettings(f"{name} is {bound}, which is out of range in UTC; give a year from 1 to 9999")


def _utc_text(instant: datetime) -> str:
    return instant.isoformat().removesuffix("+00:00") + "Z"
