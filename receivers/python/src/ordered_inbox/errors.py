"""The errors of a receiver, each with its answer in HTTP."""

from collections.abc import Iterable
from urllib.parse import quote

VERSION = "1"  # of the contract, that this package knows

# What the webhook sink leaves as it is: printable ASCII, except the space, the quotation mark and the percent sign.
_PLAIN = "".join(chr(c) for c in range(0x21, 0x7F) if chr(c) not in '"%')


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
    """A header is missing, wrong, or there twice."""

    status = "400 Bad Request"


class ClaimError(MessageError):
    """The message is a claim of a worker, and not a record, or the server of NATS wrote it in the place of one.

    The sink nats keeps claims in its stream. Acknowledge it, and go on.
    """


class VersionError(InboxError):
    """The message follows another version of the contract than this package knows. The record is not at fault."""

    status = "409 Conflict"

    @property
    def headers(self) -> list[tuple[str, str]]:
        return [("Ordered-Version", VERSION)]


class RequestError(InboxError):
    """The method is not POST, or the body is too large or did not come in whole. It says nothing about the record."""

    def __init__(self, text: str, status: str, headers: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__(text)
        self.status = status
        self._headers = list(headers)

    @property
    def headers(self) -> list[tuple[str, str]]:
        return self._headers


class PoisonError(InboxError):
    """The record can never be applied. An effect raises it, and its text goes into the answer."""

    status = "422 Unprocessable Entity"


class OriginError(InboxError):
    """Another cursor sent the message than the one before: two senders use one name. noted is the origin before."""

    status = "409 Conflict"

    def __init__(self, text: str, noted: str) -> None:
        super().__init__(text)
        self.noted = noted

    @property
    def headers(self) -> list[tuple[str, str]]:
        return [("Ordered-Origin", quote(self.noted, safe=_PLAIN))]


class StaleError(InboxError):
    """A worker sent the message that has been superseded. seen is the largest epoch of the process, in this stream."""

    status = "409 Conflict"

    def __init__(self, text: str, seen: int) -> None:
        super().__init__(text)
        self.seen = seen

    @property
    def headers(self) -> list[tuple[str, str]]:
        return [("Ordered-Epoch", str(self.seen))]


class _SequenceError(InboxError):
    def __init__(self, text: str, last: int) -> None:
        super().__init__(text)
        self.last = last

    @property
    def headers(self) -> list[tuple[str, str]]:
        return [("Ordered-Sequence", str(self.last))]


class LateError(_SequenceError):
    """The message comes after a record that was sent after it. last is the sequence of the last record."""

    status = "409 Conflict"


class GapError(_SequenceError):
    """Records before the message have not come. last is the sequence of the last record."""

    status = "428 Precondition Required"
