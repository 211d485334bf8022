"""Answers as docs/wire-vectors.json says. DATABASE_URL names a database whose inbox tables may be emptied."""

import base64
import io
import json
import logging
import os
import unittest
from pathlib import Path

import psycopg
from ordered_inbox import (
    ClaimError,
    Inbox,
    MessageError,
    PoisonError,
    VersionError,
    message_from_headers,
    message_from_nats,
    message_from_request,
)

VECTORS = os.environ.get("WIRE_VECTORS", Path(__file__).parents[3] / "docs" / "wire-vectors.json")


logging.getLogger("ordered_inbox").addHandler(logging.NullHandler())


def connect():
    return psycopg.connect(os.environ["DATABASE_URL"])


def prepare():
    """Makes empty tables. The receiver is c, and its effect is a row."""
    with connect() as conn:
        conn.execute(Inbox("c").sql())
        conn.execute("CREATE TABLE IF NOT EXISTS public.effect (n int GENERATED ALWAYS AS IDENTITY, key text)")
        conn.execute("TRUNCATE public.inbox, public.inbox_process, public.effect")


def effect(conn, message):
    conn.execute("INSERT INTO public.effect (key) VALUES (%s)", (message.dedup_key,))


def effects():
    with connect() as conn:
        return [row[0] for row in conn.execute("SELECT key FROM public.effect ORDER BY n")]


def post(app, headers, body, **environ):
    """Returns the status and the headers of an answer. Their names are in lower case.

    headers are pairs. Those with one name are joined, as a server of WSGI does.
    """
    environ = {"REQUEST_METHOD": "POST", "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body), **environ}
    for name, value in headers:
        name = "HTTP_" + name.upper().replace("-", "_")
        environ[name] = f"{environ[name]},{value}" if name in environ else value
    answer = {}

    def start(status, headers):
        answer.update(status=int(status.split()[0]), headers={name.lower(): value for name, value in headers})

    answer["body"] = b"".join(app(environ, start)).decode()
    return answer


def put(process, notes):
    """Makes these the only notes."""
    with connect() as conn:
        if notes["origin"]:
            values = (process, notes["origin"], notes["epoch"], notes["sequence"])
            conn.execute("INSERT INTO public.inbox_process VALUES ('c', %s, '', %s, %s, %s)", values)
        for key in notes["dedup_keys"]:
            conn.execute("INSERT INTO public.inbox (receiver, process, dedup_key) VALUES ('c', %s, %s)", (process, key))


def noted(process):
    with connect() as conn:
        found = conn.execute("SELECT origin, epoch, sequence FROM public.inbox_process WHERE process = %s", (process,)).fetchall()
        keys = conn.execute("SELECT dedup_key FROM public.inbox WHERE process = %s", (process,)).fetchall()
    origin, epoch, sequence = found[0] if found else ("", 0, 0)
    return {"origin": origin, "epoch": epoch, "sequence": sequence, "dedup_keys": sorted(key for (key,) in keys)}


def is_doubled(vector):
    names = [name for name, _ in vector["headers"]]
    return len(names) > len(set(names))


def read(vector):
    """Returns what became of a message of a broker, and the message."""
    headers = dict(vector["headers"])
    if vector["protocol"] == "kafka":
        headers = {name: value.encode() for name, value in headers.items()}
    try:
        return "record", (message_from_nats if vector["protocol"] == "nats" else message_from_headers)("", headers)
    except ClaimError:
        return "claim", None
    except MessageError:
        return "no record", None
    except VersionError:
        return "another version", None


class Vectors(unittest.TestCase):
    def vectors(self, name="vectors"):
        vectors = json.loads(Path(VECTORS).read_text(encoding="utf-8"))
        self.assertEqual(vectors["version"], 1)
        self.assertGreaterEqual(len(vectors["vectors"]), 70)
        self.assertGreaterEqual(len(vectors["messages"]), 30)
        return vectors[name]

    def test_reads_messages_of_brokers_as_the_vectors_say(self):
        for vector in self.vectors("messages"):
            with self.subTest(vector["name"]):
                outcome, message = read(vector)
                self.assertEqual(outcome, vector["outcome"])
                for name, value in (vector["message"] or {}).items():
                    self.assertEqual(getattr(message, name), value)

    def test_answers_as_the_vectors_say(self):
        for vector in self.vectors():
            with self.subTest(vector["name"]):
                self.check(vector)

    def test_a_request_of_any_framework_shows_what_came_twice(self):
        doubled = [vector for vector in self.vectors() if is_doubled(vector)]
        self.assertEqual(len(doubled), 4)
        for vector in doubled:
            with self.subTest(vector["name"]), self.assertRaisesRegex(MessageError, "there twice") as raised:
                message_from_request(vector["headers"], base64.b64decode(vector["body_base64"]), vector["secrets"], vector["now"])
            self.assertTrue(raised.exception.status.startswith(str(vector["status"])))

    def check(self, vector):
        prepare()
        process = vector["process"]
        put(process, vector["before"])
        body = base64.b64decode(vector["body_base64"])

        def checked(conn, message):
            self.assertEqual(message.body, body)
            effect(conn, message)
            if vector["effect"] == "fails":
                raise OSError("the account is locked")
            if vector["effect"] == "fails for good":
                raise PoisonError("no such account")

        app = Inbox("c", refuse_gaps=vector["refuse_gaps"]).wsgi(connect, " ".join(vector["secrets"]), checked)
        app.clock = lambda: vector["now"]
        answer = post(app, vector["headers"], body)
        # A server of WSGI joins what came twice, so its receiver sees a wrong signature: docs/wire.md, "Signatures".
        self.assertEqual(answer["status"], 401 if is_doubled(vector) else vector["status"], answer["body"])
        for name in ("ordered-version", "ordered-origin", "ordered-epoch", "ordered-sequence"):
            self.assertEqual(answer["headers"].get(name), vector["answer_headers"].get(name))
        self.assertEqual(len(effects()), 1 if vector["applied"] else 0)
        self.assertEqual(noted(process), vector["after"])
