"""What the vectors do not show. DATABASE_URL names a database whose inbox tables may be emptied."""

import contextlib
import os
import threading
import unittest
from datetime import timedelta

import psycopg
from ordered_inbox import (
    UNSIGNED,
    GapError,
    Inbox,
    LateError,
    Message,
    MessageError,
    OriginError,
    Outcome,
    PoisonError,
    StaleError,
    VersionError,
    message_from_headers,
    message_from_nats,
    message_from_request,
)

from test_vectors import connect, effect, effects, noted, post, prepare

APPLIED, DUPLICATE = Outcome.APPLIED, Outcome.DUPLICATE


def message(sequence, epoch, key, **more):
    return Message(**{"process": "p", "origin": "o", "sequence": sequence, "epoch": epoch, "dedup_key": key, **more})


def handle(one, effect=effect, box=None):
    with connect() as conn:
        return (box or Inbox("c")).handle(conn, one, effect)


class Handle(unittest.TestCase):
    def setUp(self):
        prepare()

    def test_applies_each_record_once(self):
        for one, want in [
            (message(1, 1, "a"), APPLIED),
            (message(1, 2, "a"), DUPLICATE),  # a take-over
            (message(9, 2, "c"), APPLIED),  # a gap
            (message(10, 3, "a"), DUPLICATE),  # a seek back
            (message(3, 3, "d", replay=True), APPLIED),  # a dead letter is replayed
            (message(3, 1, "d"), DUPLICATE),  # a broker was set back
            (message(4, 4, "x", replay=True), APPLIED),  # it was asked for, from a new worker: that epoch begins with y
            (message(9, 4, "y"), APPLIED),  # its number is of a row that was deleted
            (message(10, 4, "a"), DUPLICATE),
        ]:
            self.assertEqual(handle(one), want, one)
        with self.assertRaises(StaleError) as stale:
            handle(message(11, 3, "e"))
        self.assertEqual(stale.exception.seen, 4)
        with self.assertRaises(LateError) as late:
            handle(message(4, 4, "e"))
        self.assertEqual(late.exception.last, 10)
        with self.assertRaises(OriginError) as other:
            handle(message(11, 4, "e", origin="other"))
        self.assertEqual(other.exception.noted, "o")
        self.assertEqual(effects(), ["a", "c", "d", "x", "y"])

    def test_notes_the_epoch_of_a_message_that_is_put_aside(self):
        handle(message(1, 1, "a"))
        with connect() as conn:
            Inbox("c").note_epoch(conn, message(2, 2, "poison"))
        with self.assertRaises(StaleError):
            handle(message(2, 1, "b"))
        self.assertEqual(noted("p"), {"origin": "o", "epoch": 2, "sequence": 1, "dedup_keys": ["a"]})

    def test_refuses_no_gaps_in_streams(self):
        with self.assertRaisesRegex(ValueError, "numbers are missing by nature"):
            handle(message(1, 1, "a", stream="1"), box=Inbox("c", refuse_gaps=True))
        self.assertEqual(noted("p")["epoch"], 0)

    def test_an_effect_that_fails_leaves_no_note(self):
        def broken(conn, message):
            effect(conn, message)
            raise RuntimeError("broken")

        with self.assertRaisesRegex(RuntimeError, "broken"):
            handle(message(1, 1, "a"), broken)
        self.assertEqual(effects(), [])
        self.assertEqual(handle(message(1, 1, "a")), APPLIED)

    def test_an_effect_may_take_another_role(self):
        def limited(conn, message):
            effect(conn, message)
            conn.execute("SET LOCAL ROLE pg_monitor")  # without rights to the tables of the inbox

        self.assertEqual(handle(message(1, 1, "a"), limited), APPLIED)
        self.assertEqual(noted("p")["sequence"], 1)

    def test_an_effect_that_ends_the_transaction_is_not_applied(self):
        with self.assertRaisesRegex(RuntimeError, "the effect ended the transaction"):
            handle(message(1, 1, "a"), lambda conn, message: conn.execute("ROLLBACK"))
        self.assertEqual(handle(message(1, 1, "a")), APPLIED)

    def test_an_effect_that_begins_another_transaction_is_not_applied(self):
        def begins(conn, message):
            conn.execute("COMMIT")
            effect(conn, message)  # in a transaction that psycopg has begun

        with self.assertRaisesRegex(RuntimeError, "the effect ended the transaction"):
            handle(message(1, 1, "a"), begins)
        self.assertEqual(effects(), [])

    def test_an_effect_that_rolls_back_its_note_is_not_applied(self):
        def undoes(conn, message):
            conn.execute("ROLLBACK TO mine")
            effect(conn, message)
            conn.execute("SET LOCAL ROLE pg_monitor")  # without rights to the tables of the inbox

        for replay in (False, True):
            with self.assertRaisesRegex(RuntimeError, "or rolled back to a savepoint from before it"), connect() as conn:
                conn.execute("SAVEPOINT mine")
                Inbox("c").handle(conn, message(1, 1, "a", replay=replay), undoes)
        self.assertEqual(effects(), [])

    def test_savepoints_that_leave_the_note_are_no_fault(self):
        def own(conn, message):
            with conn.transaction():
                effect(conn, message)
                raise psycopg.Rollback
            effect(conn, message)
            conn.execute("RELEASE mine")

        with connect() as conn:
            conn.execute("SAVEPOINT mine")
            self.assertEqual(Inbox("c").handle(conn, message(1, 1, "a"), own), APPLIED)
        self.assertEqual(effects(), ["a"])
        self.assertEqual(noted("p")["dedup_keys"], ["a"])

    def test_two_at_once_apply_once(self):
        for sequence, key in enumerate("abcdefghij", start=1):
            outcomes = []
            threads = [threading.Thread(target=lambda: outcomes.append(handle(message(sequence, 1, key)))) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(outcomes.count(APPLIED), 1)
            self.assertEqual(outcomes.count(DUPLICATE), 3)

    def test_streams_have_epochs_and_sequences_of_their_own_and_one_origin(self):
        self.assertEqual(handle(message(7, 2, "a", stream="0")), APPLIED)
        self.assertEqual(handle(message(3, 1, "b", stream="1")), APPLIED)
        self.assertEqual(handle(message(4, 1, "a", stream="1")), DUPLICATE)
        with self.assertRaises(StaleError):
            handle(message(8, 1, "c", stream="0"))
        for stream in ("0", "1", "2", "s" * 501):
            with self.assertRaises(OriginError):
                handle(message(9, 2, "d", stream=stream, origin="other"))
        self.assertEqual(handle(message(1, 1, "d", stream="s" * 501)), APPLIED)

    def test_an_operator_accepts_an_origin(self):
        handle(message(7, 5, "a"))
        handle(message(7, 5, "b", stream="1"))
        with connect() as conn:
            Inbox("c").accept_origin(conn, "p", "other")
        for stream in ("", "1"):
            with self.assertRaises(OriginError):
                handle(message(8, 5, "c", stream=stream))
            self.assertEqual(handle(message(1, 1, "a", origin="other", stream=stream)), DUPLICATE)
        self.assertEqual(handle(message(2, 1, "c", origin="other")), APPLIED)
        with self.assertRaisesRegex(ValueError, "needed"), connect() as conn:
            Inbox("c").accept_origin(conn, "p", "")

    def test_an_operator_accepts_a_gap(self):
        strict = Inbox("c", refuse_gaps=True)
        handle(message(1, 1, "a"), box=strict)
        with self.assertRaises(GapError) as gap:
            handle(message(5, 1, "e"), box=strict)
        self.assertEqual(gap.exception.last, 1)
        with connect() as conn:
            strict.accept_gap(conn, "p", "", 4)
        self.assertEqual(handle(message(5, 1, "e"), box=strict), APPLIED)
        with self.assertRaisesRegex(ValueError, "no record"), connect() as conn:
            strict.accept_gap(conn, "p", "1", 4)

    def test_a_process_gets_another_name(self):
        handle(message(1, 5, "a"))
        handle(message(2, 5, "b", stream="1"))
        handle(message(1, 1, "a", process="q"))
        with connect() as conn:
            Inbox("c").rename(conn, "p", "new")
        self.assertEqual(handle(message(1, 5, "a", process="new")), DUPLICATE)
        with self.assertRaises(StaleError):
            handle(message(3, 4, "c", process="new", stream="1"))
        for process, to, why in [("new", "q", "already"), ("p", "other", "no record of it"), ("q", "", "empty")]:
            with self.assertRaisesRegex(ValueError, why), connect() as conn:
                Inbox("c").rename(conn, process, to)

    def test_refuses_a_connection_without_a_transaction(self):
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as conn:
            with self.assertRaisesRegex(ValueError, "needs an open transaction"):
                Inbox("c").handle(conn, message(1, 1, "a"), effect)
            with conn.transaction():
                Inbox("c").handle(conn, message(1, 1, "a"), effect)
        self.assertEqual(effects(), ["a"])

    def test_the_schema_may_have_any_name(self):
        box = Inbox("c", schema='100% "odd"')
        with connect() as conn:
            conn.execute('CREATE SCHEMA "100% ""odd"""')
            conn.execute(box.sql())
            self.assertEqual(box.handle(conn, message(1, 1, "a"), effect), APPLIED)
            self.assertEqual(box.prune(conn, timedelta(microseconds=1), 1), 1)
            conn.rollback()

    def test_prune_needs_a_time_to_keep(self):
        for keep, limit in [(timedelta(), 1), (timedelta(hours=-1), 1), (timedelta(hours=1), 0)]:
            with self.assertRaisesRegex(ValueError, "keep and limit must be positive"):
                Inbox("c").prune(None, keep, limit)

    def test_prune_forgets_old_keys_a_little_at_a_time(self):
        for sequence, key in enumerate("abc", start=1):
            handle(message(sequence, 1, key))
        with connect() as conn:
            conn.execute("UPDATE public.inbox SET received_at = received_at - interval '2 hours' WHERE dedup_key <> 'c'")
            self.assertEqual([Inbox("c").prune(conn, timedelta(hours=1), 1) for _ in range(3)], [1, 1, 0])
            self.assertEqual(conn.execute("SELECT string_agg(dedup_key, ' ') FROM public.inbox").fetchone()[0], "c")


def never(conn, message):
    effect(conn, message)
    raise PoisonError("no such room")


def later(conn, message):
    effect(conn, message)
    raise OSError("a secret detail")


def careless(conn, message):
    try:
        conn.execute("SELECT 1/0")
    except psycopg.Error:
        pass


def undecided(conn, message):
    effect(conn, message)
    raise psycopg.Rollback


class Wsgi(unittest.TestCase):
    headers = {"ordered-version": "1", "ordered-process": "p", "ordered-origin": "o", "ordered-sequence": "2", "ordered-epoch": "2", "ordered-dedup-key": "b"}

    def setUp(self):
        prepare()
        handle(message(1, 1, "a"))

    def answer(self, effect=effect, headers=headers, **environ):
        return post(Inbox("c").wsgi(connect, UNSIGNED, effect), headers.items(), b"{}", **environ)

    def test_logs_an_effect_that_fails_and_keeps_the_epoch(self):
        for broken, status in [(never, 422), (later, 503), (careless, 503), (undecided, 503)]:
            with self.subTest(broken.__name__), self.assertLogs("ordered_inbox.wsgi", "ERROR") as logs:
                answer = self.answer(broken)
                self.assertEqual(answer["status"], status)
                self.assertNotIn("secret", answer["body"])
                self.assertIn("process 'p', sequence 2, epoch 2, dedup key 'b'", logs.output[0])
                self.assertEqual(noted("p"), {"origin": "o", "epoch": 2, "sequence": 1, "dedup_keys": ["a"]})
                self.assertEqual(effects(), ["a"])
        self.assertEqual(self.answer()["status"], 200)
        self.assertEqual(effects(), ["a", "b"])

    def test_logs_what_it_refuses(self):
        self.answer()
        with self.assertLogs("ordered_inbox.wsgi", "WARNING") as logs:
            answer = self.answer(headers=self.headers | {"ordered-dedup-key": "c"})
        self.assertEqual((answer["status"], answer["headers"]["ordered-sequence"]), (409, "2"))
        self.assertIn("comes late", logs.output[0])

    def test_logs_a_request_that_it_refuses(self):
        app = Inbox("c").wsgi(connect, "another-secret-of-the-sender", effect)
        for answer, status in [
            (lambda: post(app, self.headers.items(), b"{}", REMOTE_ADDR="192.0.2.1"), 401),
            (lambda: self.answer(headers=self.headers | {"ordered-epoch": "0"}, REMOTE_ADDR="192.0.2.1"), 400),
            (lambda: self.answer(CONTENT_LENGTH=str(1 << 30), REMOTE_ADDR="192.0.2.1"), 413),
        ]:
            with self.assertLogs("ordered_inbox.wsgi", "WARNING") as logs:
                self.assertEqual(answer()["status"], status)
            self.assertEqual(len(logs.output), 1)
            self.assertIn(f"the request was refused: remote 192.0.2.1, status {status}", logs.output[0])
        with self.assertNoLogs("ordered_inbox.wsgi"):  # a health check
            self.assertEqual(self.answer(REQUEST_METHOD="GET")["status"], 405)

    def test_its_transactions_are_read_committed(self):
        def connect_serializable():
            return psycopg.connect(os.environ["DATABASE_URL"], options="-c default_transaction_isolation=serializable")

        def busy():  # its transaction has begun before
            conn = connect_serializable()
            conn.execute("SELECT 1")
            return conn

        levels = []
        for n, one in enumerate([connect_serializable, busy]):
            app = Inbox("c").wsgi(one, UNSIGNED, lambda conn, message: levels.append(conn.execute("SHOW transaction_isolation").fetchone()[0]))
            self.assertEqual(post(app, (self.headers | {"ordered-dedup-key": f"d{n}", "ordered-sequence": str(n + 2)}).items(), b"{}")["status"], 200)
        self.assertEqual(levels, ["read committed", "serializable"])

        with self.assertLogs("ordered_inbox.wsgi", "ERROR"):
            app = Inbox("c").wsgi(busy, UNSIGNED, later)
            self.assertEqual(post(app, (self.headers | {"ordered-dedup-key": "e", "ordered-epoch": "9", "ordered-sequence": "9"}).items(), b"{}")["status"], 503)
        self.assertEqual(noted("p")["epoch"], 9)

    def test_a_lost_connection_is_no_word_about_the_record(self):
        def lost(conn, message):
            with contextlib.suppress(psycopg.Error):
                conn.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            raise PoisonError("the cause")

        with self.assertLogs("ordered_inbox.wsgi", "ERROR") as logs:
            self.assertEqual(self.answer(lost)["status"], 503)
        self.assertIn("the cause", logs.output[0])

    def test_a_noted_origin_is_escaped_in_the_answer(self):
        with connect() as conn:
            Inbox("c").accept_origin(conn, "p", 'a "b"%ü')
        self.assertEqual(self.answer()["headers"]["ordered-origin"], "a%20%22b%22%25%C3%BC")

    def test_refuses_what_is_no_record(self):
        for change in [
            {"ordered-sequence": "1x"}, {"ordered-epoch": "0"}, {"ordered-sequence": str(2**63)}, {"ordered-dedup-key": ""},
            {"ordered-origin": ""}, {"ordered-process": "a%00b"}, {"ordered-origin": "a%FF"}, {"ordered-dedup-key": "a\xff"},
        ]:  # fmt: skip
            self.assertEqual(self.answer(headers=self.headers | change)["status"], 400, change)
        self.assertEqual(effects(), ["a"])

    def test_says_what_is_wrong_with_a_request(self):
        for environ, want in [
            ({"REQUEST_METHOD": "GET"}, 405),
            ({"CONTENT_LENGTH": "-1"}, 408),
            ({"CONTENT_LENGTH": "3"}, 408),
            ({"CONTENT_LENGTH": str(1 << 30)}, 413),
            ({"CONTENT_LENGTH": "", "HTTP_TRANSFER_ENCODING": "chunked"}, 501),
        ]:
            self.assertEqual(self.answer(**environ)["status"], want, environ)
        terminated = {"CONTENT_LENGTH": "", "HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}
        self.assertEqual(self.answer(never, **terminated)["status"], 422)
        self.assertEqual(self.answer(REQUEST_METHOD="GET")["headers"]["allow"], "POST")
        self.assertEqual(effects(), ["a"])


class Request(unittest.TestCase):
    def test_names_secrets_that_are_none_and_quotes_nothing_of_them(self):
        for secret, want in [(None, "is missing"), ("", "is missing"), (" ", "is missing"), ("whsec_!", "not base64"), ("tooshort", "a key of 8 bytes")]:
            with self.assertRaisesRegex(ValueError, want) as raised:
                Inbox("c").wsgi(connect, secret, effect)
            self.assertNotIn("tooshort", str(raised.exception))
            with self.assertRaisesRegex(ValueError, want):
                message_from_request({}, b"", secret)

    def test_a_message_of_a_broker_has_its_stream(self):
        self.assertEqual(message_from_headers("orders/1", Wsgi.headers, b"{}").stream, "orders/1")

    def test_reads_the_integers_of_amqp_and_the_bytes_of_kafka(self):
        numbers = {"ordered-sequence": 2, "ordered-epoch": 2}
        raw = {name: value.encode() for name, value in Wsgi.headers.items()}
        want = message_from_headers("", Wsgi.headers)
        for headers in (Wsgi.headers | numbers, raw):
            self.assertEqual(message_from_headers("", headers), want)
        for change in ({"ordered-epoch": 0}, {"ordered-epoch": -1}, {"ordered-epoch": None}, {"ordered-process": None}, {"ordered-process": b"\xff"}):
            with self.assertRaises(MessageError):
                message_from_headers("", Wsgi.headers | change)

    def test_a_message_of_nats_may_have_no_headers(self):
        with self.assertRaises(MessageError):
            message_from_nats("", None)
        self.assertEqual(message_from_nats("s", Wsgi.headers, b"{}"), message_from_headers("s", Wsgi.headers, b"{}"))

    def test_refuses_another_version_of_the_contract(self):
        with self.assertRaisesRegex(VersionError, "version '2' of the contract, and this receiver knows version 1"):
            message_from_headers("", {"ordered-version": "2"})
        with self.assertRaises(MessageError):
            message_from_headers("", Wsgi.headers | {"ordered-version": ""})

    def test_shows_that_a_payload_is_not_whole(self):
        got = message_from_request(Wsgi.headers | {"ordered-claim-check": "true", "ordered-content-encoding": "zstd"}, b"{}", UNSIGNED)
        self.assertEqual((got.claim_check, got.content_encoding), (True, "zstd"))
        got = message_from_request(Wsgi.headers, b"{}", UNSIGNED)
        self.assertEqual((got.claim_check, got.content_encoding), (False, ""))

    def test_reads_escaped_values_and_names_in_any_case(self):
        headers = {"Ordered-Version": "1", "Ordered-Process": "caf%C3%A9", "Ordered-Origin": "o", "Ordered-Sequence": "1", "Ordered-Epoch": "2",
                   "Ordered-Dedup-Key": "a%20b", "Ordered-Replay": "true", "Ordered-Key": "50%", "Ordered-Type": "a+b"}  # fmt: skip
        got = message_from_request(headers, b"x", UNSIGNED)
        self.assertEqual(got, Message("café", "o", 1, 2, "a b", replay=True, type="a+b", key="50%", body=b"x"))
        with self.assertRaises(MessageError):
            message_from_request({}, b"", UNSIGNED)
