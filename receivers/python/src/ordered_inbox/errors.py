"""The errors of a receiver, each with its answer in HTTP."""


class InboxError(Exception):
    """The base of all errors of this package.

    status is the answer, and headers belong to it. The sink acts on both: see docs/wire.md.
    """

    status = "503 Service Unavailable"

    @property
    def headers(self) -> list[tuple[str, str]]:
        return []


class SignatureError(InboxError):
    """The signature is missing, wrong, or too far from the clock."""

    status = "401 Unauthorized"


class MessageError(InboxError):
    """A header is missing or wrong, the method is not POST, or the body is too large."""

    status = "400 Bad Request"


class PoisonError(InboxError):
    """The record can never be applied. An effect raises it, and its text goes into the answer."""

    status = "422 Unprocessable Entity"


class StaleError(InboxError):
    """A worker sent the message that has been superseded. seen is the largest epoch of the process."""

    status = "409 Conflict"

    def __init__(self, text: str, seen: int) -> None:
        super().__init__(text)
        self.seen = seen

    @property
    def headers(self) -> list[tuple[str, str]]:
        return [("Ordered-Epoch", str(self.seen))]


class GapError(InboxError):
    """Records before the message have not come. last is the largest sequence that was applied."""

    status = "428 Precondition Required"

    def __init__(self, text: str, last: int) -> None:
        super().__init__(text)
        self.last = last

    @property
    def headers(self) -> list[tuple[str, str]]:
        return [("Ordered-Sequence", str(self.last))]
