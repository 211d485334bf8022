"""A WSGI application that answers the webhook sink as docs/wire.md says."""

import logging
from collections.abc import Callable, Iterable

from . import signature
from .errors import InboxError, MessageError
from .message import Message, message_from_request

MAX_BYTES = 64 << 20  # of a body: as max_record_bytes of the dispatcher

_log = logging.getLogger(__name__)


class Application:
    """Checks requests, has apply commit each record, and answers. clock returns seconds since 1970; None: the present."""

    def __init__(self, apply: Callable[[Message], None], secret: str | None, clock: Callable[[], float] | None = None) -> None:
        if secret is not None:
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
            self.apply(self._read(environ))
        except InboxError as error:
            return error.status, error.headers, str(error)
        except Exception:
            _log.exception("the record was not applied, and the dispatcher sends it again")
            return InboxError.status, [], "the record was not applied: try again"
        return "200 OK", [], ""

    def _read(self, environ: dict) -> Message:
        if environ["REQUEST_METHOD"] != "POST":
            raise MessageError(f"the request is no record: its method is {environ['REQUEST_METHOD']}")
        body = _body(environ)
        headers = {name[5:].replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")}
        return message_from_request(headers, body, self.secret, self.clock and self.clock())


def _body(environ: dict) -> bytes:
    if environ.get("wsgi.input_terminated"):  # the server ends the input where the body ends, also of a chunked one
        body = environ["wsgi.input"].read(MAX_BYTES + 1)
        whole = len(body) <= MAX_BYTES
    else:
        length = environ.get("CONTENT_LENGTH") or "0"
        whole = length.isascii() and length.isdigit() and int(length) <= MAX_BYTES
        body = environ["wsgi.input"].read(int(length)) if whole else b""
        whole = whole and len(body) == int(length)
    if not whole:
        raise MessageError(f"the request is no record: its body is cut short, or longer than {MAX_BYTES} bytes")
    return body
