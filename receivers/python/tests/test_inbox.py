"""What the vectors do not show. DATABASE_URL names a database whose inbox tables may be emptied."""

import os
import threading
import unittest
from datetime import timedelta

import psycopg
from ordered_inbox import Inbox, Message, MessageError, Outcome, PoisonError, StaleError, message_from_request

from test_vectors import connect, effect, effects, post, prepare

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


def message(sequence, epoch, key):
    return Message(process="p", sequence=sequence, epoch=epoch, dedup_key=key)


def handle(one, effect=effect):
    with connect() as conn:
        return Inbox("c").handle(conn, one, effect)


class Handle(unittest.TestCase):
    def setUp(self):
        prepare()

    def test_applies_each_record_once(self):
        applied, duplicate = Outcome.APPLIED, Outcome.DUPLICATE
        for one, want in [
            (message(1, 1, "a"), applied),
            (message(1, 2, "a"), duplicate),  # a take-over
            (message(9, 2, "c"), applied),  # a gap
            (message(10, 3, "a"), duplicate),  # a seek back
            (message(3, 3, "d"), applied),  # a dead letter is replayed
        ]:
            self.assertEqual(handle(one), want, one)
        with self.assertRaises(StaleError) as raised:
            handle(message(11, 2, "e"))
        self.assertEqual(raised.exception.seen, 3)
        self.assertEqual(effects(), ["a", "c", "d"])

    def test_an_effect_that_fails_leaves_no_note(self):
        def broken(conn, message):
            effect(conn, message)
            raise RuntimeError("broken")

        with self.assertRaisesRegex(RuntimeError, "broken"):
            handle(message(1, 1, "a"), broken)
        self.assertEqual(effects(), [])
        self.assertEqual(handle(message(1, 1, "a")), Outcome.APPLIED)

    def test_two_at_once_apply_once(self):
        for key in "abcdefghij":
            outcomes = []
            threads = [threading.Thread(target=lambda: outcomes.append(handle(message(1, 1, key)))) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(outcomes.count(Outcome.APPLIED), 1)
            self.assertEqual(outcomes.count(Outcome.DUPLICATE), 3)

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
            self.assertEqual(box.handle(conn, message(1, 1, "a"), effect), Outcome.APPLIED)
            self.assertEqual(box.prune(conn, timedelta(), 1), 1)
            conn.rollback()

    def test_prune_forgets_old_keys_a_little_at_a_time(self):
        for sequence, key in enumerate("abc", start=1):
            handle(message(sequence, 1, key))
        with connect() as conn:
            conn.execute("UPDATE public.inbox SET received_at = received_at - interval '2 hours' WHERE dedup_key <> 'c'")
            self.assertEqual([Inbox("c").prune(conn, timedelta(hours=1), 1) for _ in range(3)], [1, 1, 0])
            self.assertEqual(conn.execute("SELECT string_agg(dedup_key, ' ') FROM public.inbox").fetchone()[0], "c")


class Wsgi(unittest.TestCase):
    headers = {"ordered-process": "p", "ordered-sequence": "1", "ordered-epoch": "1", "ordered-dedup-key": "a"}

    def setUp(self):
        prepare()

    def answer(self, effect, headers=headers, **environ):
        return post(Inbox("c").wsgi(connect, None, effect), headers, b"{}", **environ)

    def test_says_whether_the_record_may_come_again(self):
        def never(conn, message):
            raise PoisonError("no such room")

        def later(conn, message):
            raise OSError("a secret detail")

        self.assertEqual(self.answer(never), self.answer(never) | {"status": 422, "body": "no such room"})
        with self.assertLogs("ordered_inbox.wsgi"):
            self.assertEqual(self.answer(later)["status"], 503)
        with self.assertLogs("ordered_inbox.wsgi"):
            self.assertNotIn("secret", self.answer(later)["body"])
        self.assertEqual(self.answer(effect)["status"], 200)
        self.assertEqual(effects(), ["a"])

    def test_an_effect_that_catches_an_error_of_a_statement_is_not_applied(self):
        def careless(conn, message):
            try:
                conn.execute("SELECT 1/0")
            except psycopg.Error:
                pass

        with self.assertLogs("ordered_inbox.wsgi"):
            self.assertEqual(self.answer(careless)["status"], 503)
        self.assertEqual(self.answer(effect)["status"], 200)
        self.assertEqual(effects(), ["a"])

    def test_refuses_what_is_no_record(self):
        for change in [{"ordered-sequence": "1x"}, {"ordered-epoch": "0"}, {"ordered-sequence": str(2**63)}, {"ordered-dedup-key": ""}]:
            self.assertEqual(self.answer(effect, self.headers | change)["status"], 400, change)
        for environ in [{"REQUEST_METHOD": "GET"}, {"CONTENT_LENGTH": "-1"}, {"CONTENT_LENGTH": "3"}, {"CONTENT_LENGTH": str(1 << 30)}]:
            self.assertEqual(self.answer(effect, **environ)["status"], 400, environ)
        self.assertEqual(effects(), [])


class Request(unittest.TestCase):
    def test_names_secrets_that_are_none_and_quotes_nothing_of_them(self):
        for secret, want in [("", "is blank"), ("whsec_!", "not base64"), ("tooshort", "a key of 8 bytes")]:
            with self.assertRaisesRegex(ValueError, want) as raised:
                Inbox("c").wsgi(connect, secret, effect)
            self.assertNotIn("tooshort", str(raised.exception))

    def test_reads_escaped_values_and_names_in_any_case(self):
        headers = {"Ordered-Process": "caf%C3%A9", "Ordered-Sequence": "1", "Ordered-Epoch": "2", "Ordered-Dedup-Key": "a%20b",
                   "Ordered-Key": "50%", "Ordered-Type": "%FF"}
        got = message_from_request(headers, b"x", None)
        self.assertEqual(got, Message("café", 1, 2, "a b", type="%FF", key="50%", body=b"x"))
        with self.assertRaises(MessageError):
            message_from_request({}, b"", None)
