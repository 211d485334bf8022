"""The inbox: two tables in the receiver's database, and the checks in the receiver's transaction."""

import enum
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from importlib import resources

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from .errors import GapError, StaleError
from .message import Message
from .wsgi import Application

# Effect applies a record on the connection whose transaction also notes it.
Effect = Callable[[psycopg.Connection, Message], object]

# _ENTER locks the row of the process, or makes it. A call that waited for the lock sees the newest version.
_ENTER = """/* inbox.enter */
INSERT INTO {schema}.inbox_process AS p (receiver, process, epoch, sequence)
VALUES (%s, %s, %s, 0)
ON CONFLICT (receiver, process) DO UPDATE SET epoch = greatest(p.epoch, excluded.epoch)
RETURNING epoch, sequence"""

_NOTE = """/* inbox.note */
INSERT INTO {schema}.inbox (receiver, process, dedup_key)
VALUES (%s, %s, %s)
ON CONFLICT DO NOTHING"""

_ADVANCE = """/* inbox.advance */
UPDATE {schema}.inbox_process
SET sequence = greatest(sequence, %s)
WHERE receiver = %s AND process = %s"""

_PRUNE = """/* inbox.prune */
DELETE FROM {schema}.inbox
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {schema}.inbox WHERE receiver = %s AND received_at < clock_timestamp() - %s::interval ORDER BY received_at LIMIT %s
))"""


class Outcome(enum.Enum):
    """What became of a message."""

    APPLIED = "applied"  # the effect is part of the transaction
    DUPLICATE = "duplicate"  # the record was applied before, and the effect was not called


class Inbox:
    """Applies records for one receiver. Safe to use from several threads, each with a connection of its own.

    receiver names who applies records: two receivers in one database each apply every record. schema has the two
    tables. With refuse_gaps, handle raises a GapError where a number is missing; not every gap is a loss, see
    docs/wire.md. The first message of a process may have any number.
    """

    def __init__(self, receiver: str, *, schema: str = "public", refuse_gaps: bool = False) -> None:
        if not receiver:
            raise ValueError("receiver is missing: name who applies the records")
        self.receiver = receiver
        self.refuse_gaps = refuse_gaps
        self._schema = '"' + schema.replace('"', '""') + '"'

    def sql(self) -> str:
        """Return the statements that make the two tables, where they are missing."""
        text = resources.files(__package__).joinpath("tables.sql").read_text(encoding="utf-8")
        return text.replace("{schema}", self._schema)

    def handle(self, conn: psycopg.Connection, message: Message, effect: Effect) -> Outcome:
        """Apply a message in the transaction that is open on conn, which has to be READ COMMITTED.

        Calls effect(conn, message) unless the message is stale, repeated, or after a gap that is refused. After an
        exception, also one of effect, the caller rolls back; else it commits, and then acknowledges the message.
        Raises StaleError and GapError.
        """
        _require_transaction(conn)
        with conn.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(self._within(_ENTER), (self.receiver, message.process, message.epoch))
            epoch, sequence = cursor.fetchone()
            if message.epoch < epoch:
                raise StaleError(f"{_of(message)} has epoch {message.epoch}, and epoch {epoch} has come: another worker has taken over", epoch)
            cursor.execute(self._within(_NOTE), (self.receiver, message.process, message.dedup_key))
            if cursor.rowcount == 0:
                return Outcome.DUPLICATE
            if self.refuse_gaps and 0 < sequence < message.sequence - 1:
                raise GapError(f"{_of(message)} has number {message.sequence}, and the last one applied is {sequence}", sequence)
            effect(conn, message)
            # Last, since this statement fails where the effect has caught an error of a statement: a COMMIT would not.
            cursor.execute(self._within(_ADVANCE), (message.sequence, self.receiver, message.process))
        return Outcome.APPLIED

    def prune(self, conn: psycopg.Connection, keep: timedelta, limit: int) -> int:
        """Forget keys that came longer ago than keep, at most limit of them, and return how many.

        A record that comes again after that is applied again, unless its epoch is stale: keep more than you may seek
        back.
        """
        with conn.cursor() as cursor:
            return cursor.execute(self._within(_PRUNE), (self.receiver, keep, limit)).rowcount

    def wsgi(self, connect: Callable[[], AbstractContextManager[psycopg.Connection]], secret: str | None, effect: Effect) -> Application:
        """Return a WSGI application that applies what a webhook sink posts, each record in a transaction.

        connect returns a context manager with a connection: the method connection of a psycopg_pool.ConnectionPool,
        or a function that calls psycopg.connect. secret is the one of the sink, or several with spaces between; with
        None, no signature is checked.
        """

        def apply(message: Message) -> None:
            with connect() as conn, conn.transaction():
                self.handle(conn, message, effect)

        return Application(apply, secret)

    def _within(self, text: str) -> str:
        return text.replace("{schema}", self._schema.replace("%", "%%"))


def _require_transaction(conn: psycopg.Connection) -> None:
    """Refuse a connection whose statements would each be committed alone."""
    if conn.autocommit and conn.info.transaction_status == TransactionStatus.IDLE:
        raise ValueError("handle needs an open transaction: call it within `with conn.transaction():`")


def _of(message: Message) -> str:
    return f"record {message.dedup_key!r} of process {message.process!r}"
