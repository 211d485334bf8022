import { readFileSync } from "node:fs";

import { Pool, type ClientBase } from "pg";
import { Inbox, type Message } from "ordered-inbox";

// DATABASE_URL names a database whose inbox tables may be emptied.
export const pool = new Pool({ connectionString: process.env.DATABASE_URL });

export const vectorsFile = process.env.WIRE_VECTORS ?? new URL("../../../../docs/wire-vectors.json", import.meta.url);
export const vectors = JSON.parse(readFileSync(vectorsFile, "utf8"));

// prepare makes empty tables. The receiver is c, and its effect is a row.
export async function prepare(): Promise<void> {
  await pool.query(new Inbox("c").sql());
  await pool.query("CREATE TABLE IF NOT EXISTS public.effect (n int GENERATED ALWAYS AS IDENTITY, key text)");
  await pool.query("TRUNCATE public.inbox, public.inbox_process, public.effect");
}

export async function effect(client: ClientBase, message: Message): Promise<void> {
  await client.query("INSERT INTO public.effect (key) VALUES ($1)", [message.dedupKey]);
}

export async function effects(): Promise<string[]> {
  const { rows } = await pool.query("SELECT key FROM public.effect ORDER BY n");
  return rows.map((row) => row.key);
}
