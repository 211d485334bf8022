"""Messages: what a receiver has to know of a record, from the headers of a protocol."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from . import signature
from .errors import VERSION, ClaimError, MessageError, VersionError
from .signature import Headers, Unsigned

_NUMBER = re.compile(r"[0-9]{1,19}")
_NO_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_MAX = 2**63 - 1


@dataclass(frozen=True)
class Message:
    """A record as a sink sends it. Sequence and epoch count from 1. Raises MessageError if it is none.

    origin identifies the cursor of the process. replay is true for a dead letter that is replayed, out of its turn.
    stream names the part of the process's records that has an order of its own: a partition of Kafka, or an ordering
    key of Pub/Sub. It is "" where all records have one order, as over HTTP. With claim_check, body is a reference to
    an object, and not the payload. content_encoding is how the payload is encoded, such as "zstd"; "" if it is not.
    test is true for a test, which is no record: an inbox applies and notes nothing.
    """

    process: str
    origin: str
    sequence: int
    epoch: int
    dedup_key: str
    replay: bool = False
    stream: str = ""
    type: str = ""
    key: str = ""
    claim_check: bool = False
    content_encoding: str = ""
    body: bytes = field(default=b"", repr=False)
    test: bool = False

    def __post_init__(self) -> None:
        if not (self.process and self.origin and self.dedup_key and 1 <= self.sequence <= _MAX and 1 <= self.epoch <= _MAX):
            raise MessageError(f"the request is no record: it lacks a process, an origin, a dedup key, a sequence or an epoch: {self}")
        for text in (self.process, self.origin, self.dedup_key, self.stream):
            if "\0" in text or not _is_utf8(text):
                raise MessageError(f"the request is no record: {text!r} has a NUL, or is not UTF-8")


def message_from_request(
    headers: Headers,
    body: bytes,
    secrets: str | Sequence[str] | Unsigned,
    now: float | None = None,
) -> Message:
    """Check a request of the webhook sink, and return the record in it.

    headers are a mapping, or pairs of name and value, with names in any case. Give pairs if your framework has them:
    only they show a header that came twice. Values are text as servers make it, from ISO 8859-1. secrets are those of
    the sink: a list, or a text with spaces between; or UNSIGNED. now is the clock, in seconds since 1970; the default
    is the present.

    Raises SignatureError, MessageError and VersionError, and ValueError for secrets that are none.
    """
    found = signature.single(headers)
    keys = signature.parse_secret(secrets if secrets is None or isinstance(secrets, (str, Unsigned)) else " ".join(secrets))
    if not isinstance(keys, Unsigned):
        signature.require_timely(found, time.time() if now is None else now)
        signature.require_signed(found, body, keys)
    return message_from_headers("", {name: _unescape(value.encode("latin-1", "replace")) for name, value in found.items()}, body)


def message_from_headers(stream: str, headers: Mapping[str, object], body: bytes = b"") -> Message:
    """Return the record in headers, properties or attributes, whose names are in lower case. For NATS, call message_from_nats.

    Values are text, the integers of AMQP, or the bytes of Kafka.

    stream is that of the message: with Kafka the topic and the partition, and "" where all records have one order.
    Values may be text, the integers of AMQP, or the bytes of Kafka. Raises MessageError and VersionError.
    """

    def get(name: str) -> str:
        return _text(headers.get(name))

    process, key, version = get("ordered-process"), get("ordered-dedup-key"), get("ordered-version")
    if process and not key and not version:  # every record has these two
        raise _claim()
    _require_version(version)
    return Message(
        process=process,
        origin=get("ordered-origin"),
        sequence=_number("ordered-sequence", get("ordered-sequence")),
        epoch=_number("ordered-epoch", get("ordered-epoch")),
        dedup_key=key,
        replay=get("ordered-replay") == "true",
        stream=stream,
        type=get("ordered-type"),
        key=get("ordered-key"),
        claim_check=get("ordered-claim-check") == "true",
        content_encoding=get("ordered-content-encoding"),
        body=body,
        test=get("ordered-test") == "true",
    )


def message_from_nats(stream: str, headers: Mapping[str, object] | None, body: bytes = b"") -> Message:
    """Do what message_from_headers does with a message of NATS, whose values are percent-encoded.

    headers are None if the message has none. Raises ClaimError, too.
    """
    texts = {name: _unescape(_text(value).encode("utf-8", "surrogateescape")) for name, value in (headers or {}).items()}
    if not texts.get("ordered-version") and texts.get("Nats-Marker-Reason"):
        raise _claim()
    return message_from_headers(stream, texts, body)


def _claim() -> ClaimError:
    return ClaimError("the request is no record: it is the claim of a worker")


def _text(value: object) -> str:
    """Return a value as text. Bytes that are not UTF-8 become lone surrogates, which a Message refuses where it matters."""
    if value is None:
        return ""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _require_version(text: str) -> None:
    """Refuse another version before the rest is read: there, names may be missing or mean something else."""
    if not text:
        raise MessageError("the request is no record: it lacks ordered-version")
    if text != VERSION:
        raise VersionError(
            f"the record follows version {text[:50]!r} of the contract, and this receiver knows version {VERSION}: upgrade the one that is older"
        )


def _number(name: str, text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise MessageError(f"the request is no record: {name} is {text!r}, which is no number")
    return int(text)


def _unescape(raw: bytes) -> str:
    """Undo what the sinks webhook and nats do to values of a record. What is no escape stays as it is."""
    return _text(raw if _NO_ESCAPE.search(raw) else unquote_to_bytes(raw))


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
