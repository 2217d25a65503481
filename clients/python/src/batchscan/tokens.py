"""Gets access tokens and renews them before they expire."""

from dataclasses import dataclass
from typing import Literal

from batchscan.responses import send_with_retries, token_lifetime_secs, token_text
from batchscan.retry import Clock, Retries
from batchscan.secret import Secret
from batchscan.transport import Incomplete, Response, Transport

Version = Literal[1, 2]

#: A token is renewed this long before it expires, or a tenth of its lifetime before, whichever is less.
MARGIN_SECS = 60.0
#: A token response has a few hundred bytes. A larger one is something else, such as a web page.
_BODY_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Token:
    secret: Secret
    renew_at: float | None


class TokenCache:
    """The credentials and the current token of each API version."""

    def __init__(self, transport: Transport, client_id: str, client_secret: Secret, clock: Clock) -> None:
        self._transport = transport
        self._client_id = client_id
        self._client_secret = client_secret
        self._clock = clock
        # The API does not promise that a token of one version is valid for the other.
        self._tokens: dict[Version, _Token] = {}

    def token(self, version: Version, retries: Retries) -> Secret:
        token = self._tokens.get(version)
        if token is None or (token.renew_at is not None and self._clock.monotonic() >= token.renew_at):
            token = self._tokens[version] = self._request_token(version, retries)
        return token.secret

    def discard(self, version: Version) -> None:
        """Forgets a token that the service rejected."""
        self._tokens.pop(version, None)

    def _request_token(self, version: Version, retries: Retries) -> _Token:
        form = {"grant_type": "client_credentials", "client_id": self._client_id}
        sent_at = 0.0

        def send() -> Response | Incomplete:
            # The lifetime counts from the successful try, not from the first.
            nonlocal sent_at
            sent_at = self._clock.monotonic()
            return self._transport.post(f"/v{version}/auth", form, self._client_secret, _BODY_MAX_BYTES)

        response = send_with_retries(send, retries)
        secret, lifetime = Secret(token_text(response)), token_lifetime_secs(response)
        renew_at = None if lifetime is None else sent_at + lifetime - min(MARGIN_SECS, lifetime / 10)
        return _Token(secret, renew_at)
