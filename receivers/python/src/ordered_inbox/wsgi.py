"""A WSGI application that answers the webhook sink as docs/wire.md says."""

import logging
import time
from collections.abc import Callable, Iterable

from . import signature
from .errors import GapError, InboxError, LateError, OriginError, RequestError, StaleError
from .message import Message, message_from_request
from .signature import Unsigned

MAX_BYTES = 64 << 20  # of a body: as max_record_bytes of the dispatcher

_log = logging.getLogger(__name__)


class Application:
    """Checks requests, has apply commit each record, and answers. clock returns seconds since 1970."""

    def __init__(self, apply: Callable[[Message], None], secret: str | Unsigned, clock: Callable[[], float] = time.time) -> None:
        signature.parse_secret(secret)  # a bad one shows at the start, not at the first record
        self.apply = apply
        self.secret = secret
        self.clock = clock

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        status, headers, text = self._answer(environ)
        body = text.encode("utf-8", "replace")
        start_response(status, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body))), *headers])
        return [body]

    def _answer(self, environ: dict) -> tuple[str, list[tuple[str, str]], str]:
        try:
            message = self._read_logged(environ)
            if not message.test:
                self._apply(message)
        except InboxError as error:
            return error.status, error.headers, str(error)
        except Exception:
            return InboxError.status, [], "the record was not applied: try again"
        return "200 OK", [], ""

    def _read_logged(self, environ: dict) -> Message:
        """Log a request that is refused before its record is looked at: else a wrong secret would leave no trace.

        Another method than POST is no record, but a health check or a probe.
        """
        try:
            return self._read(environ)
        except InboxError as error:
            if environ["REQUEST_METHOD"] == "POST":
                _log.warning("the request was refused: remote %s, status %s: %s", environ.get("REMOTE_ADDR"), error.status, error)
            raise
        except Exception:
            _log.exception("the request could not be read: remote %s", environ.get("REMOTE_ADDR"))
            raise

    def _apply(self, message: Message) -> None:
        """Log what is not applied: the sender gets no details of what failed here."""
        at = "process %r, sequence %d, epoch %d, dedup key %r"
        values = (message.process, message.sequence, message.epoch, message.dedup_key)
        try:
            self.apply(message)
        except (OriginError, StaleError, LateError, GapError) as error:
            _log.warning(f"the record was refused: {at}: %s", *values, error)
            raise
        except Exception:
            _log.exception(f"the record was not applied: {at}", *values)
            raise

    def _read(self, environ: dict) -> Message:
        """Read the body last, so that a request without a signature, or an old one, costs nothing."""
        if environ["REQUEST_METHOD"] != "POST":
            text = f"send records with POST, and not with {environ['REQUEST_METHOD']!r}"
            raise RequestError(text, "405 Method Not Allowed", [("Allow", "POST")])
        # A server joins a header that came twice into one value, which the signature does not cover.
        headers = {name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name.startswith("HTTP_")}
        now = self.clock()
        if not isinstance(self.secret, Unsigned):
            signature.require_timely(headers, now)
        return message_from_request(headers, _body(environ), self.secret, now)


def _body(environ: dict) -> bytes:
    source = environ["wsgi.input"]
    if environ.get("wsgi.input_terminated"):  # the server ends the input where the body ends, also of a chunked one
        body = _received(source.read, MAX_BYTES + 1)
        length = len(body)
    elif "HTTP_TRANSFER_ENCODING" in environ:  # the server would give a body without a length as an empty one
        raise RequestError("the server reads no body with a Transfer-Encoding", "501 Not Implemented")
    else:
        text = environ.get("CONTENT_LENGTH") or "0"
        if not (text.isascii() and text.isdigit()):
            raise _incomplete()
        length = int(text)
        body = _received(source.read, length) if length <= MAX_BYTES else b""
    if length > MAX_BYTES:
        raise RequestError(f"the body is too large: it may have {MAX_BYTES} bytes", "413 Content Too Large")
    if len(body) != length:
        raise _incomplete()
    return body


def _received(read: Callable[[int], bytes], length: int) -> bytes:
    """Read a body. One that is cut off or comes too slowly is not the record's fault, so it may come again."""
    try:
        return read(length)
    except OSError:
        raise _incomplete() from None


def _incomplete() -> RequestError:
    return RequestError("the body did not come in whole", "408 Request Timeout")
