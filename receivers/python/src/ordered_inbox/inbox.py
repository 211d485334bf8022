"""The inbox: two tables in the receiver's database, and the checks in the receiver's transaction."""

import enum
import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib import resources

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from . import statements
from .errors import GapError, LateError, OriginError, StaleError
from .message import Message
from .signature import Unsigned
from .wsgi import Application

# Effect applies a record on the connection whose transaction also notes it.
Effect = Callable[[psycopg.Connection, Message], object]

_MAX_NOTED = 500  # bytes of a text in an index


class Outcome(enum.Enum):
    """What became of a message."""

    APPLIED = "applied"  # the effect is part of the transaction
    DUPLICATE = "duplicate"  # the record was applied before, and the effect was not called
    TESTED = "tested"  # it is a test, and no record: the effect was not called, and nothing is noted


@dataclass(frozen=True)
class _Notes:
    """What is known of a process in a stream."""

    origin: str
    epoch: int
    sequence: int


class Inbox:
    """Applies records for one receiver. Safe to use from several threads, each with a connection of its own.

    receiver names who applies records: two receivers in one database each apply every record. schema has the two
    tables. With refuse_gaps, handle raises a GapError where a number is missing; not every gap is a loss, see
    docs/wire.md. It is for receivers that get all records of a process in one stream, and whose program calls
    accept_gap when an operator says so. The first message of a process may have any number. A message with a stream
    raises ValueError: a stream has only some of the numbers.
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

        Calls effect(conn, message) unless the message has been applied, or is refused: with OriginError, StaleError,
        LateError or GapError. After an exception, also one of effect, the caller rolls back; else it commits, and then
        acknowledges the message. A rollback forgets the message's epoch, too. Over HTTP a superseded worker may send at
        that moment, so wsgi keeps the epoch. A caller that puts the message aside calls note_epoch.
        """
        if message.test:
            return Outcome.TESTED
        return self._settle(conn, self._enter(conn, message), message, effect)

    def note_epoch(self, conn: psycopg.Connection, message: Message) -> None:
        """Note the epoch of a message, unless it is a replay, and nothing else. The caller commits.

        It is for a program that puts a message of a broker aside that it could not apply: then a message of a superseded
        worker that comes next is refused. Raises OriginError.
        """
        if not message.test:
            self._enter(conn, message)

    def accept_origin(self, conn: psycopg.Connection, process: str, origin: str) -> None:
        """Have handle accept messages of that origin from now on, and refuse those of the one before.

        The transaction is open on conn, and the caller commits. It is for an operator who knows that one database has replaced another. Epochs and sequences begin again, in all
        streams. The dedup keys stay: a record that has been applied is a duplicate from either origin. So two senders
        that are both in use need two names, and not this.
        """
        if not (process and origin):
            raise ValueError(f"accept an origin: a process and an origin are needed, got {process!r} and {origin!r}")
        _require_transaction(conn)
        for text in (statements.ADOPT, statements.ADOPT_STREAMS):
            self._change(conn, text, process=process, origin=origin)

    def accept_gap(self, conn: psycopg.Connection, process: str, stream: str, through: int) -> None:
        """Have handle accept the record after the number through, although records up to it have not come.

        The caller commits. It is for an operator who knows why they have not: a skip, a record that was put aside, a promotion, a restore.
        stream is "" where all records have one order. Raises ValueError if nothing has come from the process in that
        stream: the first record may have any number.
        """
        if not self._change(conn, statements.ADVANCE, process=process, stream=_noted(stream), sequence=through):
            raise ValueError(f"accept a gap: receiver {self.receiver!r} has no record of process {process!r} in stream {stream!r}")

    def rename(self, conn: psycopg.Connection, process: str, to: str) -> None:
        """Move what is noted of a process to another name, as an operator did with `process rename`.

        The transaction is open on conn, and the caller commits. Call it before a worker sends under the new name:
        otherwise records that come again are applied again. Raises ValueError if the receiver has no record of the
        process, or has one under the new name.
        """
        if not to:
            raise ValueError("rename: the new name is empty")
        _require_transaction(conn)
        if self._change(conn, statements.KNOWN, process=to, stream=""):
            raise ValueError(f"rename process {process!r}: receiver {self.receiver!r} has records under the name {to!r} already")
        if not self._change(conn, statements.RENAME, process=process, to=to):
            raise ValueError(f"rename process {process!r}: receiver {self.receiver!r} has no record of it")
        self._change(conn, statements.RENAME_KEYS, process=process, to=to)

    def prune(self, conn: psycopg.Connection, keep: timedelta, limit: int) -> int:
        """Forget keys that came longer ago than keep, at most limit of them, and return how many.

        A record that comes again after that is refused if its request is an old one, by its epoch or its sequence. It
        is applied again if it was sent anew: after an operator's seek back, as a dead letter that is replayed, by a
        process whose last outcome was unknown and that was halted or paused since, or after a failover or a restore took
        back the advance of the cursor. So keep more than the longest of these may take.

        Raises ValueError unless keep and limit are positive.
        """
        if keep <= timedelta() or limit < 1:
            raise ValueError(f"prune: keep and limit must be positive, got {keep} and {limit}")
        return self._change(conn, statements.PRUNE, keep=keep, limit=limit)

    def wsgi(self, connect: Callable[[], AbstractContextManager[psycopg.Connection]], secret: str | Unsigned, effect: Effect) -> Application:
        """Return a WSGI application that applies what a webhook sink posts, each record in a transaction.

        connect returns a context manager with a connection: the method connection of a psycopg_pool.ConnectionPool,
        or a function that calls psycopg.connect. secret is the one of the sink, or several with spaces between. With
        UNSIGNED, no signature is checked, and anybody who reaches the application can send records.
        """

        def apply(message: Message) -> None:
            with connect() as conn:  # an error here would roll back what connect has begun, and with it a larger epoch
                failed = self._apply(conn, message, effect)
            if failed is not None:
                raise failed

        return Application(apply, secret)

    def _apply(self, conn: psycopg.Connection, message: Message, effect: Effect) -> Exception | None:
        """Commit the effect of a record together with the note of it. Return why the record was not applied, or None.

        A record that is not applied leaves a larger epoch noted, so that a superseded worker is refused from then on.
        """
        # An effect that raises psycopg.Rollback leaves the savepoint without an exception.
        failed: Exception | None = RuntimeError("the effect rolled back: raise an error instead")
        outermost = conn.info.transaction_status == TransactionStatus.IDLE
        with conn.transaction():
            if outermost:  # the role may have another default; connect may have begun the transaction
                conn.execute(statements.READ_COMMITTED)
            before = self._enter(conn, message)
            try:
                with conn.transaction():  # a savepoint
                    self._settle(conn, before, message, effect)
                    failed = None
            except Exception as error:
                failed = error
        if failed is not None and conn.closed:  # what was refused was not noted either, so it is no answer
            raise RuntimeError(f"the transaction is lost: {failed}") from failed
        return failed

    def _enter(self, conn: psycopg.Connection, message: Message) -> _Notes:
        """Lock the notes of the stream, refuse another origin, and note a larger epoch."""
        _require_transaction(conn)
        if self.refuse_gaps and message.stream:
            raise ValueError(
                "refuse_gaps is set, and the message has a stream, in which numbers are missing by nature: "
                'leave the stream "" if all records of the process come in one order'
            )
        self._open(conn, message)
        return self._lock(conn, message, 0 if message.replay else message.epoch)  # a replay begins no epoch

    def _open(self, conn: psycopg.Connection, message: Message) -> None:
        """Compare the origin of the first message of a stream with the origin of the process.

        Dedup keys belong to the process, so all its streams have one origin.
        """
        if message.stream and not self._change(conn, statements.KNOWN, process=message.process, stream=_noted(message.stream)):
            # This row is the process's own: it stays locked until the stream has a row.
            self._lock(conn, replace(message, stream=""), 0)

    def _lock(self, conn: psycopg.Connection, message: Message, epoch: int) -> _Notes:
        """Return the notes of a message's stream, with a larger epoch noted. Raise OriginError if they are another's."""
        values = {
            "receiver": self.receiver, "process": message.process, "stream": _noted(message.stream), "origin": message.origin, "epoch": epoch,
            "last": message.sequence - 1,
        }  # fmt: skip
        with conn.cursor(row_factory=tuple_row) as cursor:
            notes = _Notes(*cursor.execute(self._within(statements.LOCK), values).fetchone())
        if notes.origin != message.origin:
            text = f"has origin {message.origin!r}, and the records before have {notes.origin!r}: two senders use one name"
            raise OriginError(f"{_of(message)} {text}. If this one has replaced the other, accept its origin (accept_origin)", notes.origin)
        return notes

    def _settle(self, conn: psycopg.Connection, before: _Notes, message: Message, effect: Effect) -> Outcome:
        """Apply a message that _enter has let in. The order of its cases is that of docs/wire.md."""
        if not self._change(conn, statements.NOTE, process=message.process, dedup_key=_noted(message.dedup_key)):
            if message.epoch >= before.epoch:  # after a seek back, this number is the one before the next
                self._advance(conn, message)
            return Outcome.DUPLICATE
        if message.epoch < before.epoch:  # before the sequence: a superseded worker's numbers mean nothing
            text = f"has epoch {message.epoch}, and epoch {before.epoch} has come: another worker has taken over"
            raise StaleError(f"{_of(message)} {text}", before.epoch)
        if not message.replay:  # its number is an old one
            self._require_next(before, message)
        # before the effect, which may take a role without rights to the tables
        transaction, subtransaction = self._advance(conn, message)
        effect(conn, message)
        # This fails where the effect has caught an error of a statement: a COMMIT would not.
        if not self._change(conn, statements.OPEN, transaction=transaction, subtransaction=subtransaction):
            raise RuntimeError(
                "the effect ended the transaction, or rolled back to a savepoint from before it: "
                "use a savepoint of the effect, and leave COMMIT and ROLLBACK to the inbox"
            )
        return Outcome.APPLIED

    def _require_next(self, before: _Notes, message: Message) -> None:
        last = before.sequence
        if message.sequence <= last:
            raise LateError(f"{_of(message)} comes late: it has number {message.sequence}, and number {last} has come", last)
        if self.refuse_gaps and 0 < last < message.sequence - 1:
            text = f"has number {message.sequence}, and the last one that came is {last}"
            raise GapError(f"{_of(message)} {text}: seek back to before that one, or accept the gap (accept_gap)", last)

    def _advance(self, conn: psycopg.Connection, message: Message) -> tuple[int, int]:
        """Note a larger sequence, and return the transaction and the subtransaction.

        A replay is out of turn, so its number says nothing of the records before it.
        """
        sequence = 0 if message.replay else message.sequence
        values = {"receiver": self.receiver, "process": message.process, "stream": _noted(message.stream), "sequence": sequence}
        with conn.cursor(row_factory=tuple_row) as cursor:
            return cursor.execute(self._within(statements.ADVANCE), values).fetchone()

    def _change(self, conn: psycopg.Connection, text: str, **values: object) -> int:
        """Return how many rows a statement changed or found."""
        with conn.cursor() as cursor:
            return cursor.execute(self._within(text), {"receiver": self.receiver, **values}).rowcount

    def _within(self, text: str) -> str:
        return text.replace("{schema}", self._schema.replace("%", "%%"))


def _noted(text: str) -> str:
    """Return a dedup key or a stream as the tables have it: itself, or its SHA-256 if it is long."""
    raw = text.encode()
    return text if len(raw) <= _MAX_NOTED else "sha256:" + hashlib.sha256(raw).hexdigest()


def _require_transaction(conn: psycopg.Connection) -> None:
    """Refuse a connection whose statements would each be committed alone."""
    if conn.autocommit and conn.info.transaction_status == TransactionStatus.IDLE:
        raise ValueError("the inbox needs an open transaction: call it within `with conn.transaction():`")


def _of(message: Message) -> str:
    return f"record {message.dedup_key!r} of process {message.process!r}"
