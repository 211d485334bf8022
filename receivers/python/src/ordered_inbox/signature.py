"""The signature over the headers that begin with ordered-, and the body: docs/wire.md, "Signatures"."""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from typing import Final

from .errors import MessageError, SignatureError

PREFIX = "whsec_"
MIN_KEY, MAX_KEY = 24, 64
TOLERANCE = 300  # seconds between a signature's time and the receiver's clock


class Unsigned:
    """The type of UNSIGNED."""

    def __repr__(self) -> str:
        return "UNSIGNED"


# UNSIGNED in place of a secret has no signature checked. Then anybody who reaches the receiver can send records.
UNSIGNED: Final = Unsigned()

# Headers are a mapping, or pairs of name and value as they came.
Headers = Mapping[str, str] | Iterable[tuple[str, str]]

_SECONDS = re.compile(r"[0-9]{1,19}")


def parse_secret(secret: str | Unsigned | None) -> list[bytes] | Unsigned:
    """Return the keys of a secret: one or more, with spaces between. Its errors quote nothing of it."""
    if isinstance(secret, Unsigned):
        return secret
    keys = [_parse_key(one) for one in (secret or "").split()]
    if not keys:
        raise ValueError("the secret is missing: is its environment variable unset? UNSIGNED takes records from anybody")
    return keys


def _parse_key(secret: str) -> bytes:
    key = secret.encode()
    if secret.startswith(PREFIX):
        try:
            key = base64.b64decode(secret[len(PREFIX) :], validate=True)
        except binascii.Error:
            raise ValueError("the secret is not base64 after whsec_: copy it again, with the = at its end") from None
    if not MIN_KEY <= len(key) <= MAX_KEY:
        raise ValueError(
            f"the secret has a key of {len(key)} bytes, not {MIN_KEY} to {MAX_KEY}: "
            "make one with `openssl rand -base64 32` and put whsec_ before it"
        )
    return key


def single(headers: Headers) -> dict[str, str]:
    """Return headers by their names in lower case. Raise MessageError if one that is signed, or a signature, is there twice."""
    found: dict[str, str] = {}
    for name, value in headers.items() if isinstance(headers, Mapping) else headers:
        name = name.lower()
        if name in found and (name.startswith("ordered-") or name in ("webhook-id", "webhook-timestamp")):
            raise MessageError(f"the request is no record: {name} is there twice")
        found[name] = value
    return found


def require_timely(headers: Mapping[str, str], now: float) -> None:
    """Raise SignatureError unless there is a signature, and a time that is near enough to the clock."""
    seconds = headers.get("webhook-timestamp", "")
    if not (headers.get("ordered-signature") and _SECONDS.fullmatch(seconds) and abs(now - int(seconds)) <= TOLERANCE):
        raise _wrong()


def require_signed(headers: Mapping[str, str], body: bytes, keys: Iterable[bytes]) -> None:
    """Raise SignatureError unless one of the signatures is by one of the keys."""
    lines = _lines(headers, body)
    wants = [b"v1," + base64.b64encode(hmac.new(key, lines, hashlib.sha256).digest()) for key in keys]
    given = [_bytes(one) for one in headers.get("ordered-signature", "").split(" ")]
    if not any(hmac.compare_digest(one, want) for one in given for want in wants):
        raise _wrong()


def _lines(headers: Mapping[str, str], body: bytes) -> bytes:
    names = sorted(name for name in headers if name.startswith("ordered-") and name != "ordered-signature")
    lines = ["ordered-v1", headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")]
    lines += [f"{name}:{headers[name]}" for name in names]
    return _bytes("\n".join([*lines, hashlib.sha256(body).hexdigest()]))


def _bytes(text: str) -> bytes:
    """Return what came: servers read the bytes of a header as ISO 8859-1."""
    return text.encode("latin-1", "replace")


def _wrong() -> SignatureError:
    return SignatureError("the signature is missing, wrong, or too far from the clock")
