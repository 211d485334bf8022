"""The signature over process, sequence, epoch and body: docs/wire.md, "Signatures"."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable

PREFIX = "whsec_"
MIN_KEY, MAX_KEY = 24, 64


def parse_secret(secret: str) -> list[bytes]:
    """Return the keys of a secret: one or more, with spaces between. Its errors quote nothing of it."""
    keys = [_parse_key(one) for one in secret.split()]
    if not keys:
        raise ValueError("the secret is blank: is its environment variable unset? None checks no signature")
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


def ordered(key: bytes, lines: Iterable[str], body: bytes) -> str:
    """Return the value of ordered-signature: lines are id, time, process, sequence and epoch, as they were sent."""
    text = "\n".join(["ordered-v1", *lines, hashlib.sha256(body).hexdigest()])
    digest = hmac.new(key, text.encode("utf-8", "replace"), hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def verify(keys: Iterable[bytes], given: str, lines: Iterable[str], body: bytes) -> bool:
    """Report whether one of the given signatures is by one of the keys."""
    lines = list(lines)
    signatures = [one.encode("utf-8", "replace") for one in given.split()]
    wants = [ordered(key, lines, body).encode() for key in keys]
    return any(hmac.compare_digest(one, want) for one in signatures for want in wants)
