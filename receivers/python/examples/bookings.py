import json
import os
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import psycopg
from ordered_inbox import Inbox, PoisonError

box = Inbox("bookings")


class Server(ThreadingMixIn, WSGIServer):  # a slow client has a thread of its own
    daemon_threads = True


class Patient(WSGIRequestHandler):
    timeout = 30  # seconds without a byte


def connect():
    return psycopg.connect(os.environ["DATABASE_URL"])


def book(conn, record):
    if record.claim_check or record.content_encoding:
        raise PoisonError("the body is a reference or compressed: set claims and compressed for the process")
    booking = json.loads(record.body)
    if not conn.execute("SELECT FROM public.room WHERE name = %s", (booking["room"],)).rowcount:
        raise PoisonError(f"there is no room {booking['room']}")
    conn.execute("INSERT INTO public.booking (id, room) VALUES (%s, %s)", (booking["id"], booking["room"]))


with connect() as conn:
    conn.execute(box.sql())
app = box.wsgi(connect, os.environ["SECRET"], book)
make_server("127.0.0.1", int(os.environ["PORT"]), app, Server, Patient).serve_forever()
