"""Messages: what a receiver has to know of a record, from the headers of a protocol."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from . import signature
from .errors import MessageError, SignatureError

TOLERANCE = 300  # seconds between a signature's time and the receiver's clock

_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
_NO_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_MAX = 2**63 - 1


@dataclass(frozen=True)
class Message:
    """A record as a sink sends it. Sequence and epoch count from 1."""

    process: str
    sequence: int
    epoch: int
    dedup_key: str
    type: str = ""
    key: str = ""
    body: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        if not (self.process and self.dedup_key and 1 <= self.sequence <= _MAX and 1 <= self.epoch <= _MAX):
            raise MessageError(f"the request is no record: it lacks a process, a dedup key, a sequence or an epoch: {self}")


def message_from_request(
    headers: Mapping[str, str],
    body: bytes,
    secrets: str | Sequence[str] | None,
    now: float | None = None,
) -> Message:
    """Check a request of the webhook sink, and return the record in it.

    headers may have names in any case. secrets are those of the sink: a list, or a text with spaces between. With
    None, no signature is checked, and anybody who reaches the receiver can send records. now is the clock, in seconds
    since 1970; the default is the present.

    Raises SignatureError and MessageError, and ValueError for secrets that are none.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    if secrets is not None:
        keys = signature.parse_secret(secrets if isinstance(secrets, str) else " ".join(secrets))
        _check_signature(lower, body, keys, time.time() if now is None else now)
    return message_from_headers({name: _unescape(value) for name, value in lower.items()}, body)


def message_from_headers(headers: Mapping[str, str], body: bytes = b"") -> Message:
    """Return the record in headers, properties or attributes, whose names are in lower case. Raises MessageError."""
    return Message(
        process=headers.get("ordered-process", ""),
        sequence=_number(headers, "ordered-sequence"),
        epoch=_number(headers, "ordered-epoch"),
        dedup_key=headers.get("ordered-dedup-key", ""),
        type=headers.get("ordered-type", ""),
        key=headers.get("ordered-key", ""),
        body=body,
    )


def _check_signature(headers: Mapping[str, str], body: bytes, keys: Sequence[bytes], now: float) -> None:
    names = ["webhook-id", "webhook-timestamp", "ordered-process", "ordered-sequence", "ordered-epoch"]
    lines = [headers.get(name, "") for name in names]
    identifier, seconds = lines[:2]
    if not (
        _NUMBER.fullmatch(seconds)
        and abs(now - int(seconds)) <= TOLERANCE
        # The signature covers webhook-id, which is the dedup key.
        and _unescape(identifier) == _unescape(headers.get("ordered-dedup-key", ""))
        and signature.verify(keys, headers.get("ordered-signature", ""), lines, body)
    ):
        raise SignatureError("the signature is missing, wrong, or too far from the clock")


def _number(headers: Mapping[str, str], name: str) -> int:
    text = headers.get(name, "")
    if not _NUMBER.fullmatch(text):
        raise MessageError(f"the request is no record: {name} is {text!r}, which is no number")
    return int(text)


def _unescape(value: str) -> str:
    """Undo what the webhook sink does to values of a record. What is no escape stays as it is."""
    if _NO_ESCAPE.search(value):
        return value
    try:
        return unquote_to_bytes(value).decode()
    except UnicodeDecodeError:
        return value
