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

export interface Notes {
  origin: string;
  epoch: number;
  sequence: number;
  dedup_keys: string[];
}

// put makes these the only notes.
export async function put(process: string, notes: Notes): Promise<void> {
  await prepare();
  if (notes.origin !== "") {
    const { origin, epoch, sequence } = notes;
    await pool.query("INSERT INTO public.inbox_process VALUES ('c', $1, '', $2, $3, $4)", [process, origin, epoch, sequence]);
  }
  const keys = "INSERT INTO public.inbox (receiver, process, dedup_key) SELECT 'c', $1, k FROM unnest($2::text[]) AS k";
  await pool.query(keys, [process, notes.dedup_keys]);
}

export async function noted(process: string): Promise<Notes> {
  const found = await pool.query("SELECT origin, epoch, sequence FROM public.inbox_process WHERE process = $1", [process]);
  const keys = await pool.query('SELECT dedup_key FROM public.inbox WHERE process = $1 ORDER BY dedup_key COLLATE "C"', [process]);
  const { origin, epoch, sequence } = found.rows[0] ?? { origin: "", epoch: 0, sequence: 0 };
  return { origin, epoch: Number(epoch), sequence: Number(sequence), dedup_keys: keys.rows.map((row) => row.dedup_key) };
}
