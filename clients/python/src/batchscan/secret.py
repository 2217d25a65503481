"""Keeps secrets out of reprs, tracebacks, errors and logs, also when a service echoes them."""

import html
import json
import re
from collections import deque
from urllib.parse import quote, quote_plus, unquote

#: The longest quotation of a service's text in an error: enough for a reason, too little for a web page.
QUOTED_CHARS_MAX = 300
REDACTED = "[redacted]"
#: Shorter secrets are not redacted: they would match ordinary words.
REDACTED_CHARS_MIN = 8
#: The client secret, and the current and the previous token of each version.
_REMEMBERED_MAX = 5
#: How many encodings are undone: text in a URL in a JSON text.
_DECODE_PASSES = 3

# Whitespace, control characters, marks that change the text direction, and unpaired surrogates.
_UNPRINTABLE = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+"
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|x([0-9a-f]{2}))", re.IGNORECASE)
_IGNORED = re.compile(r"[\\\s+]+")


class Secret:
    """A client secret or an access token. Only `reveal` returns it."""

    __slots__ = ("_encodings", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._encodings: re.Pattern[str] | None = None

    def __repr__(self) -> str:
        return REDACTED

    def __reduce__(self) -> str:
        raise TypeError("a secret cannot be pickled")

    def reveal(self) -> str:
        return self._text

    def redact(self, text: str) -> str:
        """The text without the secret, in any encoding."""
        # A service may strip surrounding whitespace.
        bare = self._text.strip()
        if len(bare) < REDACTED_CHARS_MIN:
            return text
        if self._encodings is None:
            # Compiled on first use. The longest alternative first, so that no rest remains.
            encodings = sorted(_common_encodings(bare), key=len, reverse=True)
            self._encodings = re.compile("|".join(map(re.escape, encodings)), re.IGNORECASE)
        redacted = self._encodings.sub(REDACTED, text)
        # With mixed encodings the exact place is unknown, so nothing is shown.
        return REDACTED if _contains(redacted, bare) or _contains(redacted, _as_latin1(bare)) else redacted


class SentSecrets:
    """The last secrets sent to a service. Any response may echo them."""

    def __init__(self) -> None:
        self._secrets: deque[Secret] = deque(maxlen=_REMEMBERED_MAX)

    def remember(self, secret: Secret) -> None:
        # The client secret is sent for every new token, so it always remains among the last.
        if secret in self._secrets:
            self._secrets.remove(secret)
        self._secrets.append(secret)

    def redact(self, text: str) -> str:
        for secret in self._secrets:
            text = secret.redact(text)
        return text


def is_text(text: str) -> bool:
    """Whether the text can be encoded: an unpaired surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def one_line(text: str) -> str:
    """Someone else's text, safe to quote in an error message."""
    line = _UNPRINTABLE.sub(" ", text).strip()
    return line if len(line) <= QUOTED_CHARS_MAX else line[: QUOTED_CHARS_MAX - 1] + "…"


def _common_encodings(text: str) -> set[str]:
    """The text in URLs, HTML, JSON, Python literals and headers, which are decoded as Latin-1."""
    in_json = json.dumps(text)[1:-1]
    return {
        text,
        quote(text),
        quote(text, safe=""),
        quote_plus(text),
        quote(quote(text, safe="")),
        html.escape(text),
        in_json,
        in_json.replace("/", r"\/"),
        json.dumps(in_json)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        repr(text)[1:-1],
        ascii(text)[1:-1],
        _as_latin1(text),
    }


def _contains(text: str, secret: str) -> bool:
    try:
        return _decode(secret) in _decode(text)
    except ValueError:
        # An HTML entity with thousands of digits. Assume the worst.
        return True


def _decode(text: str) -> bytes:
    """Undoes all known encodings. The result is only good for comparison."""
    for _ in range(_DECODE_PASSES):
        text = _ESCAPE.sub(lambda escape: chr(int(escape[1] or escape[2], 16)), html.unescape(unquote(text)))
    return _IGNORED.sub("", text).casefold().encode("utf-16-be", "surrogatepass")


def _as_latin1(text: str) -> str:
    return text.encode().decode("latin-1")
