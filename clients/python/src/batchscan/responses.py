"""Parses responses. The one place where a status becomes an error."""

from collections.abc import Callable
from datetime import datetime
from email.utils import parsedate_to_datetime

from batchscan.errors import (
    BadRequest,
    BatchscanError,
    CredentialsRefused,
    NotBatchscan,
    PositionGone,
    Redirected,
    ServiceFailed,
)
from batchscan.retry import Retries
from batchscan.secret import is_text, one_line
from batchscan.transport import Incomplete, InvalidJson, Response

#: Temporary errors, of the service or of a proxy in front of it.
_RETRIED = frozenset({429, 502, 503, 504})


def send_with_retries(send: Callable[[], Response | Incomplete], retries: Retries) -> Response:
    """Sends until the response is not a temporary error. `retries` limits how often."""
    while True:
        response = send()
        if isinstance(response, Incomplete):
            retries.wait(response.reason, None)
        elif response.status in _RETRIED:
            retries.wait(f"{response.url} returned {response.status}{_detail(response)}", _retry_after_secs(response))
        else:
            return response


def token_text(response: Response) -> str:
    """The access token in a response of the auth endpoint."""
    document = _document(response)
    text = document.get("access_token") if isinstance(document, dict) else None
    # A header cannot carry other characters.
    if isinstance(text, str) and text.isascii() and text.isprintable() and text.strip():
        return text
    raise _not_batchscan(response, "the response has no access_token")


def token_lifetime_secs(response: Response) -> float | None:
    """The value of `expires_in`, as a number or as text. None if it is missing or invalid."""
    value = response.document.get("expires_in") if isinstance(response.document, dict) else None
    text = str(value)
    is_number = not isinstance(value, bool) and text.isascii() and text.isdigit()
    return float(text) if is_number else None


def page(response: Response) -> tuple[list[object], str | None]:
    """The unparsed batches of a v2 page, and the cursor of the next page."""
    document = _document(response)
    if isinstance(document, dict) and "next_token" in document:
        data, next_token = document.get("data"), document["next_token"]
        if isinstance(data, list) and (next_token is None or isinstance(next_token, str)):
            if next_token is not None and not is_text(next_token):
                raise _not_batchscan(response, "next_token is not valid text")
            return data, next_token
    raise _not_batchscan(response, "the response is not an object with data and next_token")


def batch(response: Response) -> object | None:
    """The unparsed batch; None if the service has no batch with this id."""
    if response.status == 404 and isinstance(response.document, dict) and "detail" in response.document:
        return None
    return _document(response)


def changes(response: Response) -> tuple[list[object], list[str], str, bool]:
    """The unparsed batches of a response of `/v2/changes`, the removed ids, the position, and whether there is more."""
    document = _document(response)
    if isinstance(document, dict):
        data, removed, since, more = (document.get(name) for name in ("data", "removed", "since", "more"))
        if isinstance(data, list) and isinstance(removed, list) and isinstance(since, str) and isinstance(more, bool):
            if all(isinstance(batch_id, str) for batch_id in removed) and since and is_text(since):
                return data, removed, since, more
    raise _not_batchscan(response, "the response is not an object with data, removed, since and more")


def array(response: Response) -> list[object]:
    """The unparsed batches of a v1 response."""
    document = _document(response)
    if isinstance(document, list):
        return document
    raise _not_batchscan(response, "the response is not an array")


def _document(response: Response) -> object:
    if response.status != 200:
        raise _error(response)
    if response.document is InvalidJson.DUPLICATE_FIELD:
        raise _not_batchscan(response, "duplicate field in a JSON object")
    if response.document is InvalidJson.SYNTAX:
        content_type = one_line(response.headers.get("Content-Type", "no content type")).partition(";")[0]
        raise _not_batchscan(response, f"expected JSON, found {content_type}")
    return response.document


def _error(response: Response) -> BatchscanError:
    status, detail = response.status, _detail(response)
    if 300 <= status < 400 and status != 304:
        target = one_line(response.headers.get("Location", "an unknown address"))
        return Redirected(f"{response.url} redirects to {target}; use that URL if you trust it", target)
    if status in (401, 403):
        return CredentialsRefused(f"{response.url} rejected the credentials{detail}; check the client id and secret")
    if status in (404, 405):
        return _not_batchscan(response, f"it returned {status}{detail}")
    if status == 410 and response.url.endswith("/v2/changes"):
        return PositionGone(f"{response.url} cannot continue from this position{detail}; read everything again")
    if 400 <= status < 500 and isinstance(response.document, dict) and "detail" in response.document:
        message = f"{response.url} rejected the request with {status}{detail}; correct it"
        return BadRequest(message, status, response.document["detail"])
    if status >= 500:
        return ServiceFailed(f"{response.url} failed with {status}{detail}; contact its operator", status)
    return _not_batchscan(response, f"it returned {status}")


def _not_batchscan(response: Response, reason: str) -> NotBatchscan:
    return NotBatchscan(
        f"{response.url} does not respond like a batch scan service: {reason}; "
        "check that the URL is the service's address, without /v1 or /v2"
    )


def _detail(response: Response) -> str:
    """The service's own message, in parentheses: a sentence, or for a 422 the error of each field."""
    detail = response.document.get("detail") if isinstance(response.document, dict) else None
    if isinstance(detail, str):
        return f" ({one_line(detail)})"
    if isinstance(detail, list):
        errors = [_field_error(entry) for entry in detail if isinstance(entry, dict)]
        return f" ({one_line('; '.join(errors))})" if errors else ""
    return ""


def _field_error(entry: dict[str, object]) -> str:
    loc = entry.get("loc")
    field = str(loc[-1]) if isinstance(loc, list) and loc else "request"
    return f"{field}: {entry.get('msg')}"


def _retry_after_secs(response: Response) -> float | None:
    """`Retry-After` in seconds, from either of its forms. None if it is missing or invalid."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    until, now = _http_date(text), _http_date(response.headers.get("Date", ""))
    # Relative to the service's clock, because ours may be wrong.
    return max(0.0, (until - now).total_seconds()) if until and now else None


def _http_date(text: str) -> datetime | None:
    try:
        instant = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return instant if instant.tzinfo else None
