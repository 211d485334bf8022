import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";

import type { ClientBase, Pool } from "pg";

import { GapError, LateError, OriginError, quoted, StaleError } from "./errors.js";
import { handler, type HandlerConfig } from "./handler.js";
import { validate, type Message } from "./message.js";
import { adoptSQL, adoptStreamsSQL, advanceSQL, knownSQL, lockSQL, noteSQL, openSQL, pruneSQL, renameKeysSQL, renameSQL } from "./statements.js";

// Effect applies a record on the client whose transaction also notes it.
export type Effect = (client: ClientBase, message: Message) => Promise<unknown>;

// Outcome is what became of a message: "applied", and the effect is part of the transaction; or "duplicate", and the
// effect was not called; or "tested", since it is a test, and nothing is noted.
export type Outcome = "applied" | "duplicate" | "tested";

export interface InboxConfig {
  // schema has the two tables. Default "public".
  schema?: string;
  // With refuseGaps, handle throws a GapError where a number is missing. Not every gap is a loss: see docs/wire.md of
  // ordered-dispatcher. It is for receivers that get all records of a process in one stream, and whose program calls
  // acceptGap when an operator says so. The first message of a process may have any number. A message with a stream is
  // an error then: a stream has only some of the numbers. Default false.
  refuseGaps?: boolean;
}

// Notes are what is known of a process in a stream.
interface Notes {
  origin: string;
  epoch: bigint;
  sequence: bigint;
}

const maxNoted = 500; // bytes of a text in an index

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
  // unless the message has been applied, or is refused: with OriginError, StaleError, LateError or GapError. If the
  // promise is rejected, also by effect, the caller rolls back; else it commits, and then acknowledges the message. A
  // rollback forgets the message's epoch, too. Over HTTP a superseded worker may send at that moment, so handler keeps
  // the epoch. A caller that puts the message aside calls noteEpoch.
  async handle(client: ClientBase, message: Message, effect: Effect): Promise<Outcome> {
    if (message.test) {
      validate(message);
      return "tested";
    }
    return this.#settle(client, await this.#enter(client, message), message, effect);
  }

  // noteEpoch notes the epoch of a message, unless it is a replay, and nothing else. It is for a program that puts a
  // message of a broker aside that it could not apply: then a message of a superseded worker that comes next is refused.
  // Call it in a transaction. It throws OriginError and MessageError.
  async noteEpoch(client: ClientBase, message: Message): Promise<void> {
    if (!message.test) {
      await this.#enter(client, message);
    }
  }

  // acceptOrigin has handle accept messages of that origin from now on, and refuse those of the one before. It is for an
  // operator who knows that one database has replaced another. Epochs and sequences begin again, in all streams. The
  // dedup keys stay: a record that has been applied is a duplicate from either origin. So two senders that are both in
  // use need two names, and not this. Call it in a transaction.
  async acceptOrigin(client: ClientBase, process: string, origin: string): Promise<void> {
    if (process === "" || origin === "") {
      const got = `${quoted(process)} and ${quoted(origin)}`;
      throw new Error(`accept an origin: a process and an origin are needed, got ${got}`);
    }
    await this.#change(client, adoptSQL, process, origin);
    await this.#change(client, adoptStreamsSQL, process, origin);
  }

  // acceptGap has handle accept the record after the number through, although records up to it have not come. It is for
  // an operator who knows why they have not: a skip, a record that was put aside, a promotion, a restore. stream is ""
  // where all records have one order. It throws if nothing has come from the process in that stream: the first record
  // may have any number.
  async acceptGap(client: ClientBase | Pool, process: string, stream: string, through: bigint): Promise<void> {
    if ((await this.#change(client, advanceSQL, process, noted(stream), through)) === 0) {
      const of = `process ${quoted(process)} in stream ${quoted(stream)}`;
      throw new Error(`accept a gap: receiver ${quoted(this.receiver)} has no record of ${of}`);
    }
  }

  // rename moves what is noted of a process to another name, as an operator did with `process rename`. Call it in a
  // transaction, before a worker sends under the new name: otherwise records that come again are applied again. It
  // throws if the receiver has no record of the process, or has one under the new name.
  async rename(client: ClientBase, process: string, to: string): Promise<void> {
    const what = `rename process ${quoted(process)}`;
    if (to === "") {
      throw new Error(`${what}: the new name is empty`);
    }
    if ((await this.#change(client, knownSQL, to, "")) > 0) {
      throw new Error(`${what}: receiver ${quoted(this.receiver)} has records under the name ${quoted(to)} already`);
    }
    if ((await this.#change(client, renameSQL, process, to)) === 0) {
      throw new Error(`${what}: receiver ${quoted(this.receiver)} has no record of it`);
    }
    await this.#change(client, renameKeysSQL, process, to);
  }

  // prune forgets keys that came longer than keepSeconds ago, at most limit of them, and returns how many. A record that
  // comes again after that is refused if its request is an old one, by its epoch or its sequence. It is applied again if
  // it was sent anew: after an operator's seek back, as a dead letter that is replayed, by a process whose last outcome
  // was unknown and that was halted or paused since, or after a failover or a restore took back the advance of the
  // cursor. So keep more than the longest of these may take. It throws unless both numbers are positive.
  async prune(client: ClientBase | Pool, keepSeconds: number, limit: number): Promise<number> {
    if (!(keepSeconds > 0 && limit >= 1)) {
      throw new Error(`prune: keepSeconds and limit must be positive, got ${keepSeconds} and ${limit}`);
    }
    return this.#change(client, pruneSQL, keepSeconds, limit);
  }

  // handler returns a listener of node:http that applies what a webhook sink posts, each record in a transaction of
  // pool, and answers as docs/wire.md says.
  handler(pool: Pool, config: HandlerConfig, effect: Effect): (req: IncomingMessage, res: ServerResponse) => void {
    return handler(config, async (message) => {
      const client = await pool.connect();
      client.on("error", ignore); // a lost connection fails its queries, too: without a listener it would end the program
      let failed: { error: unknown } | undefined;
      try {
        await client.query("BEGIN ISOLATION LEVEL READ COMMITTED");
        failed = await this.#attempt(client, message, effect);
        await client.query("COMMIT");
      } catch (error) {
        const broken = await client.query("ROLLBACK").then(() => false, () => true);
        if (!broken) {
          client.off("error", ignore);
        }
        client.release(broken); // a broken client is not used again
        throw error;
      }
      client.off("error", ignore);
      client.release();
      if (failed !== undefined) {
        throw failed.error;
      }
    });
  }

  // #attempt returns why a record is not applied. It leaves a larger epoch to commit also then, so that a superseded
  // worker is refused from then on.
  async #attempt(client: ClientBase, message: Message, effect: Effect): Promise<{ error: unknown } | undefined> {
    const before = await this.#enter(client, message);
    await client.query("SAVEPOINT inbox");
    try {
      await this.#settle(client, before, message, effect);
      return undefined;
    } catch (error) {
      await client.query("ROLLBACK TO SAVEPOINT inbox").catch(() => {
        // What was refused was not noted either, so it is no answer.
        throw new Error(`the transaction is lost: ${error}`, { cause: error });
      });
      return { error };
    }
  }

  // #enter locks the notes of the stream, refuses another origin, and notes a larger epoch.
  async #enter(client: ClientBase, message: Message): Promise<Notes> {
    validate(message);
    if (this.#refuseGaps && message.stream !== "") {
      const fix = 'leave the stream "" if all records of the process come in one order';
      throw new Error(`refuseGaps is set, and the message has a stream, in which numbers are missing by nature: ${fix}`);
    }
    await this.#open(client, message);
    return this.#lock(client, message);
  }

  // #open compares the origin of the first message of a stream with the origin of the process. Dedup keys belong to the
  // process, so all its streams have one origin.
  async #open(client: ClientBase, message: Message): Promise<void> {
    if (message.stream !== "" && (await this.#change(client, knownSQL, message.process, noted(message.stream))) === 0) {
      // This row is the process's own: it stays locked until the stream has a row.
      await this.#lock(client, { ...message, stream: "", epoch: 0n });
    }
  }

  // #lock returns the notes of a message's stream, with a larger epoch noted. It throws an OriginError if they belong to
  // another origin.
  async #lock(client: ClientBase, message: Message): Promise<Notes> {
    const { process, stream, origin, sequence, replay } = message;
    const epoch = replay ? 0n : message.epoch; // a replay begins no epoch
    const { rows } = await client.query(this.#within(lockSQL), [this.receiver, process, noted(stream), origin, epoch, sequence - 1n]);
    const notes = { origin: rows[0].origin, epoch: BigInt(rows[0].epoch), sequence: BigInt(rows[0].sequence) };
    if (notes.origin !== origin) {
      const why = `has origin ${quoted(origin)}, and the records before have ${quoted(notes.origin)}: two senders use one name`;
      throw new OriginError(`${of(message)} ${why}. If this one has replaced the other, accept its origin (acceptOrigin)`, notes.origin);
    }
    return notes;
  }

  // #settle applies a message that #enter has let in. The order of its cases is that of docs/wire.md.
  async #settle(client: ClientBase, before: Notes, message: Message, effect: Effect): Promise<Outcome> {
    const { process, epoch, dedupKey } = message;
    if ((await this.#change(client, noteSQL, process, noted(dedupKey))) === 0) {
      if (epoch >= before.epoch) {
        await this.#advance(client, message); // after a seek back, this number is the one before the next
      }
      return "duplicate";
    }
    if (epoch < before.epoch) {
      // before the sequence: a superseded worker's numbers mean nothing
      const why = `has epoch ${epoch}, and epoch ${before.epoch} has come: another worker has taken over`;
      throw new StaleError(`${of(message)} ${why}`, before.epoch);
    }
    if (!message.replay) {
      this.#requireNext(before.sequence, message); // the number of a replay is an old one
    }
    // before the effect, which may take a role without rights to the tables
    const { transaction, subtransaction } = await this.#advance(client, message);
    await effect(client, message);
    // This fails where the effect has caught an error of a statement: a COMMIT would not.
    const { rowCount } = await client.query(openSQL, [transaction, subtransaction]);
    if (rowCount === 0) {
      const fix = "use a savepoint of the effect, and leave COMMIT and ROLLBACK to the inbox";
      throw new Error(`the effect ended the transaction, or rolled back to a savepoint from before it: ${fix}`);
    }
    return "applied";
  }

  #requireNext(last: bigint, message: Message): void {
    const { sequence } = message;
    if (sequence <= last) {
      throw new LateError(`${of(message)} comes late: it has number ${sequence}, and number ${last} has come`, last);
    }
    if (this.#refuseGaps && last > 0n && sequence > last + 1n) {
      const why = `has number ${sequence}, and the last one that came is ${last}`;
      throw new GapError(`${of(message)} ${why}: seek back to before that one, or accept the gap (acceptGap)`, last);
    }
  }

  // #advance notes a larger sequence, and returns the transaction and the subtransaction. A replay is out of turn, so its
  // number says nothing of the records before it.
  async #advance(client: ClientBase, message: Message): Promise<{ transaction: string; subtransaction: string }> {
    const sequence = message.replay ? 0n : message.sequence;
    const { rows } = await client.query(this.#within(advanceSQL), [this.receiver, message.process, noted(message.stream), sequence]);
    return rows[0];
  }

  // #change returns how many rows a statement changed or found.
  async #change(client: ClientBase | Pool, sql: string, ...values: unknown[]): Promise<number> {
    const { rowCount } = await client.query(this.#within(sql), [this.receiver, ...values]);
    return rowCount ?? 0;
  }

  #within(sql: string): string {
    return sql.replaceAll("{schema}", () => this.#schema);
  }
}

function ignore(): void {}

// noted returns a dedup key or a stream as the tables have it: itself, or its SHA-256 if it is long.
function noted(text: string): string {
  return Buffer.byteLength(text) <= maxNoted ? text : "sha256:" + createHash("sha256").update(text).digest("hex");
}

function of(message: Message): string {
  return `record ${quoted(message.dedupKey)} of process ${quoted(message.process)}`;
}
