"""Text that is never shown: not in a repr, not in a traceback, not in what a service echoes."""

import html
import json
import re
from collections import OrderedDict

#: What a service says is quoted in errors up to here: enough for a reason, too little for a web page.
QUOTED_CHARS_MAX = 300
REDACTED = "[redacted]"
#: What is shorter is no secret: hiding it would garble what the service says.
HIDDEN_CHARS_MIN = 8
#: The client's secret, and the present and the last token of each version.
_REMEMBERED_MAX = 5

# Also what turns the direction of the text around it, and half characters, which no terminal or file takes.
_UNPRINTABLE = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+"
)


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
            # At the first need, which most secrets never see.
            self._spellings = re.compile("".join(map(_spelled, re.findall(r"\\+|.", bare, re.S))), re.IGNORECASE)
        return self._spellings.sub(REDACTED, text)


class Sent:
    """The secrets that a service was told last, any of which it may echo in any answer."""

    def __init__(self) -> None:
        self._secrets: OrderedDict[str, Secret] = OrderedDict()

    def __repr__(self) -> str:
        return REDACTED

    def remember(self, secret: Secret) -> None:
        # Every new token is got with the client's secret, so that one is always among the last.
        self._secrets[secret.reveal()] = self._secrets.pop(secret.reveal(), secret)
        if len(self._secrets) > _REMEMBERED_MAX:
            self._secrets.popitem(last=False)

    def hide_in(self, text: str) -> str:
        for secret in self._secrets.values():
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


def _spelled(char: str) -> str:
    """A pattern of the ways in which URLs, HTML, JSON, Python and HTTP headers write a character."""
    if char.startswith("\\"):
        # A run of them at once: each escaping doubles it, and one by one they would match in too many ways.
        return r"(?:\\|%(?:25)?5c|&#92;|&#x5c;)+"
    code, octets, units = ord(char), char.encode(), char.encode("utf-16-be")
    wide = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
    ways = {re.escape(way) for way in (char, html.escape(char), json.dumps(char)[1:-1], octets.decode("latin-1"))}
    ways |= {"".join(f"%(?:25)?{octet:02x}" for octet in octets), f"&#0?{code};", f"&#x0?{code:x};"}
    ways |= {"".join(rf"\\+u{unit}" for unit in wide), "".join(rf"\\+x{octet:02x}" for octet in octets)}
    ways |= {rf"\\+x{code:02x}", rf"\\+U{code:08x}"}
    ways |= {rf"\\+{re.escape(char)}"} if not char.isalnum() else set()
    ways |= {r"\+"} if char == " " else set()
    return f"(?:{'|'.join(sorted(ways))})"
