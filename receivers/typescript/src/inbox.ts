import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";

import type { ClientBase, Pool } from "pg";

import { GapError, StaleError } from "./errors.js";
import { handler, type HandlerConfig } from "./handler.js";
import type { Message } from "./message.js";

// Effect applies a record on the client whose transaction also notes it.
export type Effect = (client: ClientBase, message: Message) => Promise<unknown>;

// Outcome is what became of a message: "applied", and the effect is part of the transaction; or "duplicate", and the
// effect was not called.
export type Outcome = "applied" | "duplicate";

export interface InboxConfig {
  // schema has the two tables. Default "public".
  schema?: string;
  // With refuseGaps, handle throws a GapError where a number is missing. Not every gap is a loss: see docs/wire.md of
  // ordered-dispatcher. The first message of a process may have any number. Default false.
  refuseGaps?: boolean;
}

// enterSQL locks the row of the process, or makes it. A call that waited for the lock sees the newest version.
const enterSQL = `/* inbox.enter */
INSERT INTO {schema}.inbox_process AS p (receiver, process, epoch, sequence)
VALUES ($1, $2, $3, 0)
ON CONFLICT (receiver, process) DO UPDATE SET epoch = greatest(p.epoch, excluded.epoch)
RETURNING epoch::text, sequence::text`;

const noteSQL = `/* inbox.note */
INSERT INTO {schema}.inbox (receiver, process, dedup_key)
VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING`;

const advanceSQL = `/* inbox.advance */
UPDATE {schema}.inbox_process
SET sequence = greatest(sequence, $3)
WHERE receiver = $1 AND process = $2`;

const pruneSQL = `/* inbox.prune */
DELETE FROM {schema}.inbox
WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM {schema}.inbox WHERE receiver = $1 AND received_at < clock_timestamp() - make_interval(secs => $2) ORDER BY received_at LIMIT $3
))`;

// Inbox applies records for one receiver. Two receivers in one database each apply every record.
export class Inbox {
  readonly #schema: string;
  readonly #refuseGaps: boolean;

  constructor(readonly receiver: string, config: InboxConfig = {}) {
    if (receiver === "") {
      throw new Error("receiver is missing: name who applies the records");
    }
    this.#schema = `"${(config.schema ?? "public").replaceAll('"', '""')}"`;
    this.#refuseGaps = config.refuseGaps ?? false;
  }

  // sql returns the statements that make the two tables, where they are missing.
  sql(): string {
    return this.#within(readFileSync(new URL("../../tables.sql", import.meta.url), "utf8"));
  }

  // handle applies a message in the transaction that is open on client, which has to be READ COMMITTED. It calls effect
  // unless the message is stale, repeated, or after a gap that is refused. If the promise is rejected, also by effect,
  // the caller rolls back; else it commits, and then acknowledges the message. It throws StaleError and GapError.
  async handle(client: ClientBase, message: Message, effect: Effect): Promise<Outcome> {
    const { receiver } = this;
    const { process, epoch, sequence, dedupKey } = message;
    const of = `record ${JSON.stringify(dedupKey)} of process ${JSON.stringify(process)}`;
    const entered = await client.query(this.#within(enterSQL), [receiver, process, epoch]);
    const seen = { epoch: BigInt(entered.rows[0].epoch), sequence: BigInt(entered.rows[0].sequence) };
    if (epoch < seen.epoch) {
      const why = `has epoch ${epoch}, and epoch ${seen.epoch} has come: another worker has taken over`;
      throw new StaleError(`${of} ${why}`, seen.epoch);
    }
    const noted = await client.query(this.#within(noteSQL), [receiver, process, dedupKey]);
    if (noted.rowCount === 0) {
      return "duplicate";
    }
    if (this.#refuseGaps && seen.sequence > 0n && sequence > seen.sequence + 1n) {
      throw new GapError(`${of} has number ${sequence}, and the last one applied is ${seen.sequence}`, seen.sequence);
    }
    await effect(client, message);
    // Last, since this statement fails where the effect has caught an error of a statement: a COMMIT would not.
    await client.query(this.#within(advanceSQL), [receiver, process, sequence]);
    return "applied";
  }

  // prune forgets keys that came longer than keepSeconds ago, at most limit of them, and returns how many. A record that
  // comes again after that is applied again, unless its epoch is stale: keep more than you may seek back.
  async prune(client: ClientBase | Pool, keepSeconds: number, limit: number): Promise<number> {
    const pruned = await client.query(this.#within(pruneSQL), [this.receiver, keepSeconds, limit]);
    return pruned.rowCount ?? 0;
  }

  // handler returns a listener of node:http that applies what a webhook sink posts, each record in a transaction of
  // pool, and answers as docs/wire.md says.
  handler(pool: Pool, config: HandlerConfig, effect: Effect): (req: IncomingMessage, res: ServerResponse) => void {
    return handler(config, async (message) => {
      const client = await pool.connect();
      try {
        await client.query("BEGIN ISOLATION LEVEL READ COMMITTED");
        await this.handle(client, message, effect);
        await client.query("COMMIT");
      } catch (error) {
        const broken = await client.query("ROLLBACK").then(() => false, () => true);
        client.release(broken); // a broken client is not used again
        throw error;
      }
      client.release();
    });
  }

  #within(sql: string): string {
    return sql.replaceAll("{schema}", () => this.#schema);
  }
}
