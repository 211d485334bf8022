import { createServer } from "node:http";
import { Inbox, PoisonError } from "ordered-inbox";
import { Pool } from "pg";

const pool = new Pool({ connectionString: process.env.DATABASE_URL });
pool.on("error", console.error); // an idle client that lost its server
const box = new Inbox("bookings");
await pool.query(box.sql());

const handler = box.handler(pool, { secret: process.env.SECRET! }, async (client, record) => {
  if (record.claimCheck || record.contentEncoding !== "")
    throw new PoisonError("the body is a reference or compressed: set claims and compressed for the process");
  const booking = JSON.parse(record.body.toString());
  const rooms = await client.query("SELECT FROM public.room WHERE name = $1", [booking.room]);
  if (rooms.rowCount === 0) throw new PoisonError(`there is no room ${booking.room}`);
  await client.query("INSERT INTO public.booking (id, room) VALUES ($1, $2)", [booking.id, booking.room]);
});
createServer(handler).listen(Number(process.env.PORT), "127.0.0.1");
