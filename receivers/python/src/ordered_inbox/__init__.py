"""The receiver's half of ordered-dispatcher: each record has its effect once, in order.

docs/wire.md of ordered-dispatcher is the specification. An Inbox applies messages in a transaction of yours;
Inbox.wsgi is an application that answers the webhook sink; message_from_request checks a request of any framework.
"""

from .errors import ClaimError, GapError, InboxError, LateError, MessageError, OriginError, PoisonError, RequestError, SignatureError, StaleError, VersionError
from .inbox import Effect, Inbox, Outcome
from .message import Message, message_from_headers, message_from_nats, message_from_request
from .signature import UNSIGNED

__all__ = [
    "UNSIGNED",
    "ClaimError",
    "Effect",
    "GapError",
    "Inbox",
    "InboxError",
    "LateError",
    "Message",
    "MessageError",
    "OriginError",
    "Outcome",
    "PoisonError",
    "RequestError",
    "SignatureError",
    "StaleError",
    "VersionError",
    "message_from_headers",
    "message_from_nats",
    "message_from_request",
]
