"""What each status means, and what a page looks like. The one place where an answer becomes an error."""

from collections.abc import Callable
from datetime import datetime
from email.utils import parsedate_to_datetime

from batchscan.errors import (
    BadRequest,
    BatchscanError,
    CredentialsRefused,
    NotBatchscan,
    Redirected,
    ServiceFailed,
)
from batchscan.patience import Patience
from batchscan.secret import is_text, one_line
from batchscan.transport import Answer, Broken, NoJson

#: The service is alive, or something in front of it is, and cannot answer now.
_PASSING = frozenset({429, 502, 503, 504})


def settled(ask: Callable[[], Answer | Broken], patience: Patience) -> Answer:
    """Asks until the answer is one that asking again would not change. Patience limits how often."""
    while True:
        answer = ask()
        if isinstance(answer, Broken):
            patience.wait(answer.why, None)
        elif answer.status in _PASSING:
            patience.wait(f"{answer.url} answered {answer.status}{_told(answer)}", _retry_after_secs(answer))
        else:
            return answer


def token_text(answer: Answer) -> str:
    """The access token of an answer of the auth endpoint."""
    document = _ok(answer)
    text = document.get("access_token") if isinstance(document, dict) else None
    # A header takes no other characters; the token itself stays out of the message.
    if isinstance(text, str) and text.isascii() and text.isprintable() and text.strip():
        return text
    raise _not_batchscan(answer, "the answer has no access_token")


def token_life_secs(answer: Answer) -> float | None:
    """How long the token lives. Some services write the seconds as text; what cannot be read is as if not there."""
    value = answer.document.get("expires_in") if isinstance(answer.document, dict) else None
    text = str(value)
    readable = not isinstance(value, bool) and text.isascii() and text.isdigit()
    return float(text) if readable else None


def envelope(answer: Answer) -> tuple[list[object], str | None]:
    """The batches of a v2 page, unread, and the cursor to the next one."""
    document = _ok(answer)
    if isinstance(document, dict) and "next_token" in document:
        data, next_token = document.get("data"), document["next_token"]
        if isinstance(data, list) and (next_token is None or isinstance(next_token, str)):
            if next_token is not None and not is_text(next_token):
                raise _not_batchscan(answer, "its next_token is not valid text")
            return data, next_token
    raise _not_batchscan(answer, "the answer is no object with data and next_token")


def whole(answer: Answer) -> list[object]:
    """The batches of a v1 answer, unread."""
    document = _ok(answer)
    if isinstance(document, list):
        return document
    raise _not_batchscan(answer, "the answer is no array")


def _ok(answer: Answer) -> object:
    if answer.status != 200:
        raise _refusal(answer)
    if answer.document is NoJson.TWICE:
        raise _not_batchscan(answer, "an object in the answer has a member twice")
    if answer.document is NoJson.NO_JSON:
        kind = one_line(answer.headers.get("Content-Type", "something")).partition(";")[0]
        raise _not_batchscan(answer, f"it sends {kind} where JSON should be")
    return answer.document


def _refusal(answer: Answer) -> BatchscanError:
    status, told = answer.status, _told(answer)
    if 300 <= status < 400 and status != 304:
        return _redirected(answer)
    if status == 401 or status == 403:
        return CredentialsRefused(f"{answer.url} refused the credentials{told}; check client id and secret")
    if status == 404 or status == 405:
        return _not_batchscan(answer, f"it answers {status}{told}")
    if 400 <= status < 500 and isinstance(answer.document, dict) and "detail" in answer.document:
        return BadRequest(
            f"{answer.url} refused the request with {status}{told}; correct it", status, answer.document["detail"]
        )
    if status >= 500:
        return ServiceFailed(f"{answer.url} failed with {status}{told}; tell its operator", status)
    return _not_batchscan(answer, f"it answers {status}")


def _redirected(answer: Answer) -> Redirected:
    target = one_line(answer.headers.get("Location", "nowhere"))
    return Redirected(f"{answer.url} redirects to {target}; use that address if you trust it", target)


def _not_batchscan(answer: Answer, why: str) -> NotBatchscan:
    return NotBatchscan(
        f"{answer.url} does not answer like a batch scan service: {why}; "
        "check that the URL is the service's address, without /v1 or /v2"
    )


def _told(answer: Answer) -> str:
    """What the service says, in brackets: a sentence, or for a 422 what is wrong with each field."""
    detail = answer.document.get("detail") if isinstance(answer.document, dict) else None
    if isinstance(detail, str):
        return f" ({one_line(detail)})"
    if isinstance(detail, list):
        faults = [_fault(entry) for entry in detail if isinstance(entry, dict)]
        return f" ({one_line('; '.join(faults))})" if faults else ""
    return ""


def _fault(entry: dict[str, object]) -> str:
    loc = entry.get("loc")
    field = str(loc[-1]) if isinstance(loc, list) and loc else "request"
    return f"{field}: {entry.get('msg')}"


def _retry_after_secs(answer: Answer) -> float | None:
    """`Retry-After` in either of its forms; what cannot be read is as if not there."""
    text = answer.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    until, now = _http_date(text), _http_date(answer.headers.get("Date", ""))
    # Against the service's own clock: ours may be wrong.
    return max(0.0, (until - now).total_seconds()) if until and now else None


def _http_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else None
