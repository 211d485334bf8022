"""The receiver's half of ordered-dispatcher: each record has its effect once, in order.

docs/wire.md of ordered-dispatcher is the specification. An Inbox applies messages in a transaction of yours;
Inbox.wsgi is an application that answers the webhook sink; message_from_request checks a request of any framework.
"""

from .errors import GapError, InboxError, MessageError, PoisonError, SignatureError, StaleError
from .inbox import Effect, Inbox, Outcome
from .message import Message, message_from_headers, message_from_request

__all__ = [
    "Effect",
    "GapError",
    "Inbox",
    "InboxError",
    "Message",
    "MessageError",
    "Outcome",
    "PoisonError",
    "SignatureError",
    "StaleError",
    "message_from_headers",
    "message_from_request",
]
