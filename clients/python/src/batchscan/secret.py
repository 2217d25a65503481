"""Text that is never shown: not in a repr, not in a traceback, not in what a service echoes."""

import html
import json
import re
from collections import deque
from urllib.parse import quote, quote_plus, unquote

#: What a service says is quoted in errors up to here: enough for a reason, too little for a web page.
QUOTED_CHARS_MAX = 300
REDACTED = "[redacted]"
#: What is shorter is no secret: hiding it would garble what the service says.
HIDDEN_CHARS_MIN = 8
#: The client's secret, and the present and the last token of each version.
_REMEMBERED_MAX = 5
#: A text in a URL in a JSON text: services quote no deeper.
_LAYERS_MAX = 3

# Also what turns the direction of the text around it, and half characters, which no terminal or file takes.
_UNPRINTABLE = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+"
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|x([0-9a-f]{2}))", re.IGNORECASE)
_IGNORED = re.compile(r"[\\\s+]+")


class Secret:
    """A client secret or an access token. Only `reveal` gives it away."""

    __slots__ = ("_spellings", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._spellings: re.Pattern[str] | None = None

    def __repr__(self) -> str:
        return REDACTED

    def __reduce__(self) -> str:
        raise TypeError("a secret is not written anywhere")

    def reveal(self) -> str:
        return self._text

    def hide_in(self, text: str) -> str:
        """The text without the secret, however it is spelled. A short one is a word that somebody tries."""
        # What stands around a secret by mistake, a service may leave out.
        bare = self._text.strip()
        if len(bare) < HIDDEN_CHARS_MIN:
            return text
        if self._spellings is None:
            # At the first need, which most secrets never see; the longest first, so that no rest stays.
            usual = sorted(_usual_spellings(bare), key=len, reverse=True)
            self._spellings = re.compile("|".join(map(re.escape, usual)), re.IGNORECASE)
        shown = self._spellings.sub(REDACTED, text)
        # A mixture of spellings is known to be there, but not where: then nothing is shown.
        return REDACTED if _says(shown, bare) or _says(shown, _as_latin1(bare)) else shown


class Sent:
    """The secrets that a service was told last, any of which it may echo in any answer."""

    def __init__(self) -> None:
        self._last: deque[Secret] = deque(maxlen=_REMEMBERED_MAX)

    def remember(self, secret: Secret) -> None:
        # Every new token is got with the client's secret, so that one is always among the last.
        if secret in self._last:
            self._last.remove(secret)
        self._last.append(secret)

    def hide_in(self, text: str) -> str:
        for secret in self._last:
            text = secret.hide_in(text)
        return text


def is_text(text: str) -> bool:
    """Whether this can be sent or stored: a half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def one_line(text: str) -> str:
    """What somebody else wrote, fit to stand in an error message."""
    line = _UNPRINTABLE.sub(" ", text).strip()
    return line if len(line) <= QUOTED_CHARS_MAX else line[: QUOTED_CHARS_MAX - 1] + "…"


def _usual_spellings(text: str) -> set[str]:
    """As URLs, HTML, JSON and Python write it. A header's bytes are read as Latin-1, whatever they were."""
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


def _says(text: str, secret: str) -> bool:
    try:
        return _decoded(secret) in _decoded(text)
    except ValueError:
        # An HTML entity with thousands of digits. Nobody who means well writes one.
        return True


def _decoded(text: str) -> bytes:
    """What a text says to whoever undoes every way of spelling; only good for a comparison with another such."""
    for _ in range(_LAYERS_MAX):
        text = _ESCAPE.sub(lambda escape: chr(int(escape[1] or escape[2], 16)), html.unescape(unquote(text)))
    return _IGNORED.sub("", text).casefold().encode("utf-16-be", "surrogatepass")


def _as_latin1(text: str) -> str:
    return text.encode().decode("latin-1")
