"""What can go wrong, in one line each, and whether trying again can help. No message holds a secret or a token."""


class BatchscanError(Exception):
    """Anything that kept batches from being read."""

    #: Whether the same call may succeed later, with nothing changed by the caller.
    #: The client has tried again by itself where that made sense; this is for the caller's own plans.
    retryable: bool = False


class BadSettings(BatchscanError, ValueError):
    """The client was given something that cannot work, such as a datetime without a timezone."""


class CredentialsRefused(BatchscanError):
    """The client id or the secret is wrong or was revoked, or a token just issued is not accepted."""


class Unreachable(BatchscanError):
    """Nobody answers at that address. Not retried: most often the address is wrong."""

    retryable = True


class Untrusted(BatchscanError):
    """The service's certificate is not trusted, or it speaks no TLS."""


class ServiceUnavailable(BatchscanError):
    """The service could not answer for as long as the caller was willing to try."""

    retryable = True

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        #: How many seconds the service asked to wait, if it did.
        self.retry_after = retry_after


class ServiceFailed(BatchscanError):
    """The service failed in a way that it does not expect to pass by itself, such as a 500."""

    retryable = True

    def __init__(self, message: str, status: int = 500) -> None:
        super().__init__(message)
        self.status = status


class BadRequest(BatchscanError):
    """The service does not take the question."""

    def __init__(self, message: str, status: int = 422, detail: object = None) -> None:
        super().__init__(message)
        self.status = status
        #: What the service said: for a 422, a list of objects with `type`, `loc` and `msg`.
        self.detail = detail


class NotBatchscan(BatchscanError):
    """The answer is not one that the batch scan interface has."""


class Redirected(NotBatchscan):
    """The service sends the caller elsewhere. Credentials are not carried there."""

    def __init__(self, message: str, target: str = "") -> None:
        super().__init__(message)
        self.target = target


class CursorRepeated(NotBatchscan):
    """The service's pages run in a circle, or are empty without end: the walk would never end."""
