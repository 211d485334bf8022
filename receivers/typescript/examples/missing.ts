import { createInterface } from "node:readline";
import { Inbox, messageFromHeaders, type Effect } from "ordered-inbox";
import { Pool } from "pg";

const pool = new Pool({ connectionString: process.env.DATABASE_URL });
const box = new Inbox("bookings");

const book: Effect = async (client, record) => {
  if (record.claimCheck || record.contentEncoding !== "") throw new Error("the body is a reference or compressed");
  const booking = JSON.parse(record.body.toString());
  await client.query("INSERT INTO public.booking (id, room) VALUES ($1, $2)", [booking.id, booking.room]);
};

// apply applies one record, in a transaction of its own.
async function apply(line: Record<string, string>): Promise<void> {
  const body = line.body_base64 === undefined ? Buffer.from(line.body!) : Buffer.from(line.body_base64, "base64");
  const message = messageFromHeaders("", (name) => line[name] ?? "", body);
  const client = await pool.connect();
  try {
    await client.query("BEGIN ISOLATION LEVEL READ COMMITTED");
    const outcome = await box.handle(client, message, book);
    await client.query("COMMIT");
    console.log(message.dedupKey, outcome);
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {}); // a lost connection has rolled back
    throw error;
  } finally {
    client.release();
  }
}

const [name] = process.argv.slice(2); // of the process
if (name === undefined) throw new Error("usage: missing.js PROCESS < missing.jsonl");
let end: { sequence?: string; from?: string } | undefined;
for await (const text of createInterface({ input: process.stdin })) {
  const line = JSON.parse(text);
  if (line["ordered-dedup-key"] !== undefined) await apply(line);
  else if (line.end !== undefined) end = line.end;
  else console.log("not sent:", text); // an operator decided about these records
}
if (end?.sequence !== undefined) await box.acceptGap(pool, name, "", BigInt(end.sequence));
await pool.end();
if (end === undefined) throw new Error("the lines have no end: run show again");
if (end.from !== undefined) console.log(`there are more: run show again with --from '${end.from}'`);
