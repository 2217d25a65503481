"""What may be said as the start and the end of a window, and how it is put to the service. Knows nothing of HTTP."""

from collections.abc import Mapping
from datetime import date, datetime, time, timezone
from typing import TypeAlias

from batchscan.errors import BadSettings
from batchscan.secret import is_text

#: An aware datetime, a day in UTC (also as text, 2026-01-31), or the interface's own text. None leaves that side open.
Moment: TypeAlias = datetime | date | str | None


def window(start: Moment, end: Moment) -> Mapping[str, str]:
    """The window as query parameters. Both ends belong to it; a date as end means the whole of that day."""
    sides = {"start_date": text_of("start", start, time.min), "end_date": text_of("end", end, time.max)}
    first, last = map(_instant, sides.values())
    if first is not None and last is not None and first > last:
        # The service would answer with nothing, as if nothing had been measured.
        raise BadSettings(f"the window ends before it begins: it is from {start} to {end}; give the earlier one first")
    return {name: text for name, text in sides.items() if text is not None}


def text_of(side: str, moment: Moment, time_of_day: time) -> str | None:
    if moment is None:
        return moment
    if isinstance(moment, str):
        # Other text goes as it is: the service knows best which dates it takes, and says so field by field.
        if not is_text(moment):
            raise BadSettings(f"{side} is {moment!r}, which is not valid text; give one such as {_EXAMPLE}")
        day = _day(moment)
        return moment if day is None else text_of(side, day, time_of_day)
    if isinstance(moment, datetime):
        return _utc_text(_in_utc(side, moment))
    if isinstance(moment, date):
        return _utc_text(datetime.combine(moment, time_of_day, timezone.utc))
    raise BadSettings(f"{side} is a {type(moment).__name__}; give an aware datetime, a date or text such as {_EXAMPLE}")


def _day(text: str) -> date | None:
    """The day that a text such as 2026-01-31 is."""
    try:
        return date.fromisoformat(text) if len(text) == len("2026-01-31") else None
    except ValueError:
        return None


def _instant(text: str | None) -> datetime | None:
    """What a text means, where that is beyond doubt. What else the service takes, it judges itself."""
    try:
        moment = datetime.fromisoformat((text or "").replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _in_utc(side: str, moment: datetime) -> datetime:
    if moment.utcoffset() is None:
        raise BadSettings(
            f"{side} is {moment}, which has no timezone and could mean any hour; "
            f"add one, as in datetime(2026, 1, 31, 8, tzinfo=timezone.utc)"
        )
    try:
        return moment.astimezone(timezone.utc)
    except OverflowError:
        pass
    raise BadSettings(f"{side} is {moment}, which in UTC lies outside the years 1 to 9999; give a later or earlier one")


def _utc_text(moment: datetime) -> str:
    return moment.isoformat().removesuffix("+00:00") + "Z"


_EXAMPLE = "2026-01-31T08:00:00Z"
