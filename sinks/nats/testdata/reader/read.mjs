// Prints what is in a stream, in its order, as one JSON object a line. Leaves it there.
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";

const [server, user, pass, stream] = process.argv.slice(2);
const connection = await connect({ servers: server, user, pass });
const { state } = await (await jetstreamManager(connection)).streams.info(stream);
if (state.messages > 0) {
  const consumer = await jetstream(connection).consumers.get(stream);
  for await (const m of await consumer.consume()) {
    const headers = {};
    for (const [name, values] of m.headers ?? []) headers[name] = values[0];
    console.log(JSON.stringify({ subject: m.subject, seq: m.seq, headers, body: Buffer.from(m.data).toString("base64") }));
    if (m.info.pending === 0) break;
  }
}
await connection.close();
