"""Prints what is in a queue or a stream, in its order, as one JSON object a line. Leaves it there."""
import base64
import json
import sys
import uuid

import pika


def queued(channel, queue):
    while True:
        method, properties, body = channel.basic_get(queue)
        if method is None:
            return
        yield properties, body


def streamed(channel, stream):
    """A stream has no end to be seen, so it is given one: a mark, which the next reader passes over."""
    mark = uuid.uuid4().bytes
    channel.confirm_delivery()
    channel.basic_publish("", stream, mark, pika.BasicProperties(app_id="mark"), mandatory=True)
    channel.basic_qos(prefetch_count=100)
    for method, properties, body in channel.consume(stream, arguments={"x-stream-offset": "first"}):
        channel.basic_ack(method.delivery_tag)
        if body == mark:
            return
        if properties.app_id != "mark":
            yield properties, body


url, kind, name = sys.argv[1:]
connection = pika.BlockingConnection(pika.URLParameters(url))
for properties, body in {"queue": queued, "stream": streamed}[kind](connection.channel(), name):
    print(json.dumps({
        "message_id": properties.message_id,
        "delivery_mode": properties.delivery_mode,
        "type": properties.type,
        "timestamp": properties.timestamp,
        "headers": {name: str(value) for name, value in (properties.headers or {}).items()},
        "body": base64.b64encode(body).decode(),
    }))
connection.close()  # without acknowledgements: what was read of a queue goes back to its place
