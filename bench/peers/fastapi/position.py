"""Which batches are requested: date filters, the cursor, and the index range they select.

Shared by the plain and the tuned application. Knows nothing about responses.
"""

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Annotated

from fastapi import Query
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ValidationError

PAGE_ROWS = 1000
# Longer than any cursor of this service.
CURSOR_BYTES_MAX = 512

ISO_SHAPE = re.compile(r"\d{4}-\d\d-\d\d([ T]|$)")
BEGINNING = datetime.min.replace(tzinfo=timezone.utc)
END = datetime.max.replace(tzinfo=timezone.utc)


def iso_only(value: object) -> object:
    """pydantic accepts a Unix timestamp as a date; the API does not."""
    if isinstance(value, str) and not ISO_SHAPE.match(value):
        raise ValueError("not a UTC ISO 8601 datetime")
    # An unescaped `+` in a URL arrives as a space.
    return value.replace(" 00:00", "+00:00") if isinstance(value, str) else value


def utc_only(value: datetime) -> datetime:
    if value.utcoffset() != timedelta(0):
        raise ValueError("must end with Z or +00:00")
    return value


UtcDate = Annotated[AwareDatetime, BeforeValidator(iso_only), AfterValidator(utc_only)]
OptionalDate = Annotated[UtcDate | None, Query()]


class Cursor(BaseModel):
    """The last batch of a page, and the filters of the first request."""

    created: AwareDatetime
    batch_id: str
    start_date: AwareDatetime | None
    end_date: AwareDatetime | None

    def encode(self) -> str:
        return base64.urlsafe_b64encode(self.model_dump_json().encode()).decode()

    @classmethod
    def decode(cls, text: str) -> "Cursor":
        try:
            if len(text) > CURSOR_BYTES_MAX:
                raise ValueError("too long")
            return cls.model_validate_json(base64.b64decode(text, altchars=b"-_", validate=True))
        except (ValueError, ValidationError, binascii.Error):
            raise invalid("next_token", "not a cursor of this service") from None


@dataclass(frozen=True)
class Position:
    """A range of the index: after (`created`, `batch_id`), up to `end`, both in index order."""

    created: datetime
    batch_id: str
    end: datetime
    start_date: datetime | None
    end_date: datetime | None

    @classmethod
    def parse(cls, start_date: datetime | None, end_date: datetime | None, next_token: str | None) -> "Position":
        if next_token is None:
            # The empty id sorts before all others, so the start date is inclusive.
            return cls(start_date or BEGINNING, "", end_date or END, start_date, end_date)
        cursor = Cursor.decode(next_token)
        for name, given in (("start_date", start_date), ("end_date", end_date)):
            if given is not None and given != getattr(cursor, name):
                raise invalid(name, "differs from the filter of the cursor")
        return cls(cursor.created, cursor.batch_id, cursor.end_date or END, cursor.start_date, cursor.end_date)

    def after(self, created: datetime, batch_id: str) -> str:
        """The cursor of the page after this batch."""
        return Cursor(created=created, batch_id=batch_id, start_date=self.start_date, end_date=self.end_date).encode()


def invalid(name: str, message: str) -> RequestValidationError:
    return RequestValidationError([{"type": "value_error", "loc": ("query", name), "msg": message}])
