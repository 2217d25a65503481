"""Text that is never shown: not in a repr, not in a traceback, not in what a service echoes."""

import re
from urllib.parse import quote, quote_plus

#: What a service says is quoted in errors up to here: enough for a reason, too little for a web page.
QUOTED_CHARS_MAX = 300
REDACTED = "[redacted]"
#: What is shorter is no secret: hiding it would garble what the service says.
HIDDEN_CHARS_MIN = 8

_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


class Secret:
    """A client secret or an access token. Only `reveal` gives it away."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return REDACTED

    def __reduce__(self) -> str:
        raise TypeError("a secret is not written anywhere")

    def reveal(self) -> str:
        return self._text

    def hide_in(self, text: str) -> str:
        """The text without the secret, however it went over the wire. A short one is a word that somebody tries."""
        if len(self._text) < HIDDEN_CHARS_MIN:
            return text
        for spelling in {self._text, quote(self._text, safe=""), quote_plus(self._text)}:
            text = text.replace(spelling, REDACTED)
        return text


def one_line(text: str) -> str:
    """What somebody else wrote, fit to stand in an error message."""
    line = _UNPRINTABLE.sub(" ", text).strip()
    return line if len(line) <= QUOTED_CHARS_MAX else line[: QUOTED_CHARS_MAX - 1] + "…"
