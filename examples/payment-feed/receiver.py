"""The payment processor: it charges for each usage event once, in order, and checks the signature of each."""

import json
import os
import sys
import threading
from wsgiref.simple_server import WSGIRequestHandler, make_server

import psycopg
from ordered_inbox import Inbox, PoisonError

# Its two tables are beside those of the charges, so one transaction writes to both.
box = Inbox("payments", schema="payments")

TABLES = """
CREATE SCHEMA payments;
CREATE TABLE payments.charge (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    usage_id bigint NOT NULL,
    customer text NOT NULL,
    cents    bigint NOT NULL,
    currency text NOT NULL);
"""


def connect():
    return psycopg.connect(os.environ["DATABASE_URL"])


def charge(conn, record):
    """Charge for a usage event, in the transaction that also notes the record."""
    usage = json.loads(record.body)
    if usage["currency"] not in ("EUR", "USD"):
        raise PoisonError(f"there is no currency {usage['currency']}")
    conn.execute(
        "INSERT INTO payments.charge (usage_id, customer, cents, currency) VALUES (%s, %s, %s, %s)",
        (usage["id"], usage["customer"], usage["cents"], usage["currency"]),
    )


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        """Print no line for each request."""


with connect() as conn:
    conn.execute(TABLES)
    conn.execute(box.sql())
app = box.wsgi(connect, os.environ["SECRET"], charge)
server = make_server("127.0.0.1", 0, app, handler_class=Quiet)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{server.server_port}/", flush=True)
sys.stdin.read()  # ends with the program that started it
