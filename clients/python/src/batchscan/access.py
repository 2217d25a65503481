"""Tokens: when to get one, and when it is too old to be sent."""

from dataclasses import dataclass
from typing import Literal

from batchscan.answers import settled, token_life_secs, token_text
from batchscan.patience import Clock, Patience
from batchscan.secret import Secret
from batchscan.transport import Answer, Broken, Transport

Version = Literal[1, 2]

#: A token is renewed this long before its end, or a tenth of its life before it, whichever is less.
MARGIN_SECS = 60.0
#: A token is a few hundred bytes; what is longer than this is a web page.
_TOKEN_BODY_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Token:
    secret: Secret
    renew_at: float | None


class Access:
    """Holds the credentials, and the tokens got with them."""

    def __init__(self, transport: Transport, client_id: str, client_secret: Secret, clock: Clock) -> None:
        self._transport = transport
        self._client_id = client_id
        self._client_secret = client_secret
        self._clock = clock
        # One for each version: whether a token of one serves on the other, the interface leaves open.
        self._tokens: dict[Version, _Token] = {}

    def token(self, version: Version, patience: Patience) -> Secret:
        token = self._tokens.get(version)
        if token is None or (token.renew_at is not None and self._clock.monotonic() >= token.renew_at):
            token = self._tokens[version] = self._new_token(version, patience)
        return token.secret

    def forget(self, version: Version) -> None:
        """The service does not take the token any more."""
        self._tokens.pop(version, None)

    def _new_token(self, version: Version, patience: Patience) -> _Token:
        form = {"grant_type": "client_credentials", "client_id": self._client_id}
        asked_at = 0.0

        def ask() -> Answer | Broken:
            # Of the try that succeeds: a token's life may begin long after the first one.
            nonlocal asked_at
            asked_at = self._clock.monotonic()
            return self._transport.post(f"/v{version}/auth", form, self._client_secret, _TOKEN_BODY_MAX_BYTES)

        answer = settled(ask, patience)
        secret, life = Secret(token_text(answer)), token_life_secs(answer)
        renew_at = None if life is None else asked_at + life - min(MARGIN_SECS, life / 10)
        return _Token(secret, renew_at)
