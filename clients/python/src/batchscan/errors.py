"""The errors of this package, one line each. No message contains a secret or a token."""


class BatchscanError(Exception):
    """The base of all errors."""

    #: Whether the same call may succeed later without a change by the caller.
    retryable: bool = False


class BadSettings(BatchscanError, ValueError):
    """An argument or setting is invalid, such as a datetime without a timezone."""


class CredentialsRefused(BatchscanError):
    """The client id or secret is wrong or revoked, or the service rejects a token it just issued."""


class Unreachable(BatchscanError):
    """The first connection failed. Not retried, because most often the URL is wrong."""

    retryable = True


class Untrusted(BatchscanError):
    """The service's certificate is not trusted, or it does not speak TLS."""


class ServiceUnavailable(BatchscanError):
    """The service did not respond within the retry time."""

    retryable = True

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        #: The seconds that the service asked to wait, if it did.
        self.retry_after = retry_after


class ServiceFailed(BatchscanError):
    """The service failed with an error that is not temporary, such as a 500."""

    retryable = True

    def __init__(self, message: str, status: int = 500) -> None:
        super().__init__(message)
        self.status = status


class BadRequest(BatchscanError):
    """The service rejected the request."""

    def __init__(self, message: str, status: int = 422, detail: object = None) -> None:
        super().__init__(message)
        self.status = status
        #: The service's own detail. For a 422: a list of objects with `type`, `loc` and `msg`.
        self.detail = detail


class PositionGone(BatchscanError):
    """The changes since a position are not known any more. Discard the copy and read the changes without `since`."""


class NotBatchscan(BatchscanError):
    """The response does not follow the batch scan API."""


class Redirected(NotBatchscan):
    """The service redirects. Credentials are not sent to the target."""

    def __init__(self, message: str, target: str = "") -> None:
        super().__init__(message)
        self.target = target


class CursorRepeated(NotBatchscan):
    """Pagination does not end: a cursor repeats, or too many pages in a row are empty."""
