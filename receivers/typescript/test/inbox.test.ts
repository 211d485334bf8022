import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, request, type IncomingHttpHeaders } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { after, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";

import {
  ClaimError,
  GapError,
  Inbox,
  LateError,
  MessageError,
  messageFromHeaders,
  messageFromNats,
  messageFromRequest,
  OriginError,
  PoisonError,
  StaleError,
  unsigned,
  VersionError,
  type Effect,
  type HandlerConfig,
  type Message,
} from "ordered-inbox";

import { effect, effects, noted, pool, prepare, put, vectors } from "./database.js";

beforeEach(prepare);
after(() => pool.end());

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

type Pairs = [string, string][];

// serve runs a handler.
async function serve<T>(box: Inbox, config: HandlerConfig, apply: Effect, use: (port: number) => Promise<T>): Promise<T> {
  const server = createServer(box.handler(pool, config, apply));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await use((server.address() as AddressInfo).port);
  } finally {
    server.close();
  }
}

// post sends one request to a handler. Headers are pairs, as a name may come twice.
async function post(box: Inbox, config: HandlerConfig, apply: Effect, headers: Pairs, body: Buffer, method = "POST"): Promise<Answer> {
  const values: Record<string, string[]> = {};
  for (const [name, value] of headers) {
    (values[name] ??= []).push(value);
  }
  return serve(box, config, apply, (port) => new Promise<Answer>((resolve, reject) => {
    const req = request({ host: "127.0.0.1", port, method, headers: values, agent: false }, (res) => {
      let text = "";
      res.setEncoding("utf8").on("data", (chunk) => (text += chunk));
      res.on("end", () => resolve({ status: res.statusCode!, headers: res.headers, text }));
    });
    req.on("error", reject).end(body);
  }));
}

const quiet = { warn() {}, error() {} };

test("answers as the vectors say", async (t) => {
  assert.equal(vectors.version, 1);
  assert.ok(vectors.vectors.length >= 70);
  for (const vector of vectors.vectors) {
    await t.test(vector.name, () => check(vector));
  }
});

test("reads messages of brokers as the vectors say", () => {
  assert.ok(vectors.messages.length >= 30);
  for (const vector of vectors.messages) {
    const bytes = vector.protocol === "kafka";
    const headers = new Map<string, unknown>(vector.headers.map(([name, value]: [string, string]) => [name, bytes ? Buffer.from(value) : value]));
    const from = vector.protocol === "nats" ? messageFromNats : messageFromHeaders;
    const [outcome, got] = read(() => from("", (name) => headers.get(name), Buffer.alloc(0)));
    assert.equal(outcome, vector.outcome, vector.name);
    if (got !== undefined) {
      const { process, origin, sequence, epoch, dedupKey, replay, claimCheck, contentEncoding } = got;
      const numbers = { sequence: Number(sequence), epoch: Number(epoch) };
      const message = { process, origin, ...numbers, dedup_key: dedupKey, replay, claim_check: claimCheck, content_encoding: contentEncoding };
      assert.deepEqual(message, vector.message, vector.name);
    }
  }
});

// read returns what became of a message of a broker, and the message.
function read(make: () => Message): [string, Message?] {
  try {
    return ["record", make()];
  } catch (error) {
    if (error instanceof ClaimError) return ["claim"];
    if (error instanceof MessageError) return ["no record"];
    if (error instanceof VersionError) return ["another version"];
    throw error;
  }
}

async function check(vector: any): Promise<void> {
  await put(vector.process, vector.before);
  const body = Buffer.from(vector.body_base64, "base64");
  const box = new Inbox("c", { refuseGaps: vector.refuse_gaps });
  const config = { secret: vector.secrets.join(" "), now: () => vector.now, log: quiet };
  const apply: Effect = async (client, message) => {
    assert.deepEqual(message.body, body);
    await effect(client, message);
    if (vector.effect === "fails") throw new Error("the account is locked");
    if (vector.effect === "fails for good") throw new PoisonError("no such account");
  };
  const answer = await post(box, config, apply, vector.headers, body);
  assert.equal(answer.status, vector.status, answer.text);
  for (const name of ["ordered-version", "ordered-origin", "ordered-epoch", "ordered-sequence"]) {
    assert.equal(answer.headers[name], vector.answer_headers[name]);
  }
  assert.equal((await effects()).length, vector.applied ? 1 : 0);
  assert.deepEqual(await noted(vector.process), vector.after);
}

function message(sequence: bigint, epoch: bigint, dedupKey: string, more: Partial<Message> = {}): Message {
  const rest = { process: "p", origin: "o", replay: false, stream: "", type: "", key: "", claimCheck: false, contentEncoding: "", body: Buffer.alloc(0) };
  return { ...rest, sequence, epoch, dedupKey, ...more };
}

async function handle(one: Message, box = new Inbox("c"), apply: Effect = effect) {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const outcome = await box.handle(client, one, apply);
    await client.query("COMMIT");
    return outcome;
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  } finally {
    client.release();
  }
}

// accept calls a method of an inbox for an operator.
async function accept(use: (client: any) => Promise<void>): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    await use(client);
    await client.query("COMMIT");
  } finally {
    client.release();
  }
}

test("applies each record once", async () => {
  for (const [one, want] of [
    [message(1n, 1n, "a"), "applied"],
    [message(1n, 2n, "a"), "duplicate"], // a take-over
    [message(9n, 2n, "c"), "applied"], // a gap
    [message(10n, 3n, "a"), "duplicate"], // a seek back
    [message(3n, 3n, "d", { replay: true }), "applied"], // a dead letter is replayed
    [message(3n, 1n, "d"), "duplicate"], // a broker was set back
    [message(4n, 4n, "x", { replay: true }), "applied"], // it was asked for, from a new worker: that epoch begins with y
    [message(9n, 4n, "y"), "applied"], // its number is of a row that was deleted
    [message(10n, 4n, "a"), "duplicate"],
  ] as const) {
    assert.equal(await handle(one), want);
  }
  await assert.rejects(handle(message(11n, 3n, "e")), (error) => error instanceof StaleError && error.seen === 4n);
  await assert.rejects(handle(message(4n, 4n, "e")), (error) => error instanceof LateError && error.last === 10n);
  await assert.rejects(handle(message(11n, 4n, "e", { origin: "other" })), (error) => error instanceof OriginError && error.noted === "o");
  assert.deepEqual(await effects(), ["a", "c", "d", "x", "y"]);
});

test("notes the epoch of a message that is put aside", async () => {
  await handle(message(1n, 1n, "a"));
  await accept((client) => new Inbox("c").noteEpoch(client, message(2n, 2n, "poison")));
  await assert.rejects(handle(message(2n, 1n, "b")), StaleError);
  assert.deepEqual(await noted("p"), { origin: "o", epoch: 2, sequence: 1, dedup_keys: ["a"] });
});

test("refuses no gaps in streams", async () => {
  const strict = new Inbox("c", { refuseGaps: true });
  await assert.rejects(handle(message(1n, 1n, "a", { stream: "1" }), strict), /numbers are missing by nature/);
  assert.equal((await noted("p")).epoch, 0);
});

test("keeps numbers of 63 bits whole", async () => {
  const large = 2n ** 63n - 2n;
  await handle(message(large, large, "a"));
  await assert.rejects(handle(message(1n, large - 1n, "b")), (error) => error instanceof StaleError && error.seen === large);
  await assert.rejects(handle(message(large, large, "b")), (error) => error instanceof LateError && error.last === large);
});

test("two at once apply once", async () => {
  for (const [i, key] of [..."abcdefghij"].entries()) {
    const outcomes = await Promise.all([1, 2, 3, 4].map(() => handle(message(BigInt(i + 1), 1n, key))));
    assert.deepEqual(outcomes.sort(), ["applied", "duplicate", "duplicate", "duplicate"]);
  }
});

test("an effect that fails leaves no note", async () => {
  const broken: Effect = async (client, one) => {
    await effect(client, one);
    throw new Error("broken");
  };
  await assert.rejects(handle(message(1n, 1n, "a"), new Inbox("c"), broken), /broken/);
  assert.equal(await handle(message(1n, 1n, "a")), "applied");
});

test("an effect may take another role", async () => {
  const limited: Effect = async (client, m) => {
    await effect(client, m);
    await client.query("SET LOCAL ROLE pg_monitor"); // without rights to the tables of the inbox
  };
  assert.equal(await handle(message(1n, 1n, "a"), new Inbox("c"), limited), "applied");
  assert.equal((await noted("p")).sequence, 1);
});

test("an effect that ends the transaction is not applied", async () => {
  const ends: Effect = async (client) => void (await client.query("ROLLBACK"));
  await assert.rejects(handle(message(1n, 1n, "a"), new Inbox("c"), ends), /the effect ended the transaction/);
  assert.equal(await handle(message(1n, 1n, "a")), "applied");
});

test("an effect that begins another transaction is not applied", async () => {
  const begins: Effect = async (client, one) => {
    await client.query("COMMIT");
    await client.query("BEGIN");
    await effect(client, one);
  };
  await assert.rejects(handle(message(1n, 1n, "a"), new Inbox("c"), begins), /the effect ended the transaction/);
  assert.deepEqual(await effects(), []);
});

// within applies a message after a savepoint of the caller.
const within = (one: Message, apply: Effect) => accept(async (client) => {
  await client.query("SAVEPOINT mine");
  assert.equal(await new Inbox("c").handle(client, one, apply).catch(async (error) => {
    await client.query("ROLLBACK");
    throw error;
  }), "applied");
});

test("an effect that rolls back its note is not applied", async () => {
  const undoes: Effect = async (client, one) => {
    await client.query("ROLLBACK TO mine");
    await effect(client, one);
    await client.query("SET LOCAL ROLE pg_monitor"); // without rights to the tables of the inbox
  };
  for (const replay of [false, true]) {
    await assert.rejects(within(message(1n, 1n, "a", { replay }), undoes), /or rolled back to a savepoint from before it/);
  }
  assert.deepEqual(await effects(), []);
});

test("savepoints that leave the note are no fault", async () => {
  await within(message(1n, 1n, "a"), async (client, one) => {
    await client.query("SAVEPOINT own");
    await effect(client, one);
    await client.query("ROLLBACK TO own");
    await effect(client, one);
    await client.query("RELEASE mine");
  });
  assert.deepEqual(await effects(), ["a"]);
  assert.deepEqual((await noted("p")).dedup_keys, ["a"]);
});

test("streams have epochs and sequences of their own and one origin", async () => {
  assert.equal(await handle(message(7n, 2n, "a", { stream: "0" })), "applied");
  assert.equal(await handle(message(3n, 1n, "b", { stream: "1" })), "applied");
  assert.equal(await handle(message(4n, 1n, "a", { stream: "1" })), "duplicate");
  await assert.rejects(handle(message(8n, 1n, "c", { stream: "0" })), StaleError);
  const long = "s".repeat(501);
  for (const stream of ["0", "1", "2", long]) {
    await assert.rejects(handle(message(9n, 2n, "d", { stream, origin: "other" })), OriginError);
  }
  assert.equal(await handle(message(1n, 1n, "d", { stream: long })), "applied");
});

test("an operator accepts an origin", async () => {
  const box = new Inbox("c");
  await handle(message(7n, 5n, "a"));
  await handle(message(7n, 5n, "b", { stream: "1" }));
  await accept((client) => box.acceptOrigin(client, "p", "other"));
  for (const stream of ["", "1"]) {
    await assert.rejects(handle(message(8n, 5n, "c", { stream })), OriginError);
    assert.equal(await handle(message(1n, 1n, "a", { stream, origin: "other" })), "duplicate");
  }
  assert.equal(await handle(message(2n, 1n, "c", { origin: "other" })), "applied");
  await assert.rejects(accept((client) => box.acceptOrigin(client, "p", "")), /needed/);
});

test("an operator accepts a gap", async () => {
  const strict = new Inbox("c", { refuseGaps: true });
  await handle(message(1n, 1n, "a"), strict);
  await assert.rejects(handle(message(5n, 1n, "e"), strict), (error) => error instanceof GapError && error.last === 1n);
  await strict.acceptGap(pool, "p", "", 4n);
  assert.equal(await handle(message(5n, 1n, "e"), strict), "applied");
  await assert.rejects(strict.acceptGap(pool, "p", "1", 4n), /no record/);
});

test("a process gets another name", async () => {
  const box = new Inbox("c");
  await handle(message(1n, 5n, "a"));
  await handle(message(2n, 5n, "b", { stream: "1" }));
  await handle(message(1n, 1n, "a", { process: "q" }));
  await accept((client) => box.rename(client, "p", "new"));
  assert.equal(await handle(message(1n, 5n, "a", { process: "new" })), "duplicate");
  await assert.rejects(handle(message(3n, 4n, "c", { process: "new", stream: "1" })), StaleError);
  await assert.rejects(accept((client) => box.rename(client, "new", "q")), /already/);
  await assert.rejects(accept((client) => box.rename(client, "p", "other")), /no record of it/);
  await assert.rejects(accept((client) => box.rename(client, "q", "")), /empty/);
});

test("the schema may have any name", async () => {
  const box = new Inbox("c", { schema: '$& "odd"' });
  await pool.query('DROP SCHEMA IF EXISTS "$& ""odd""" CASCADE; CREATE SCHEMA "$& ""odd"""');
  await pool.query(box.sql());
  assert.equal(await handle(message(1n, 1n, "a"), box), "applied");
  assert.equal(await box.prune(pool, 1e-6, 1), 1);
});

test("prune needs a time to keep", async () => {
  for (const [keep, limit] of [[0, 1], [-1, 1], [NaN, 1], [3600, 0]] as const) {
    await assert.rejects(new Inbox("c").prune(pool, keep, limit), /must be positive/);
  }
});

test("prune forgets old keys a little at a time", async () => {
  for (const [i, key] of ["a", "b", "c"].entries()) {
    await handle(message(BigInt(i + 1), 1n, key));
  }
  await pool.query("UPDATE public.inbox SET received_at = received_at - interval '2 hours' WHERE dedup_key <> 'c'");
  const box = new Inbox("c");
  for (const want of [1, 1, 0]) {
    assert.equal(await box.prune(pool, 3600, 1), want);
  }
});

const headers = {
  "ordered-version": "1", "ordered-process": "caf%C3%A9", "ordered-origin": "o", "ordered-sequence": "2", "ordered-epoch": "2", "ordered-dedup-key": "b",
};

// answer posts a record to a handler that checks no signature.
function answer(apply: Effect, change: Record<string, string> = {}, config: Partial<HandlerConfig> = {}, method = "POST"): Promise<Answer> {
  const pairs = Object.entries({ ...headers, ...change });
  return post(new Inbox("c"), { secret: unsigned, log: quiet, ...config }, apply, pairs, Buffer.from("{}"), method);
}

test("logs an effect that fails and keeps the epoch", async () => {
  await handle(message(1n, 1n, "a", { process: "café" }));
  const failing: [Effect, number][] = [
    [async (client, one) => { await effect(client, one); throw new PoisonError("no such room"); }, 422],
    [async (client, one) => { await effect(client, one); throw new Error("a secret detail"); }, 503],
    [async (client) => client.query("SELECT 1/0").catch(() => undefined), 503], // PostgreSQL rolls back
  ];
  for (const [apply, status] of failing) {
    const logged: unknown[][] = [];
    const got = await answer(apply, {}, { log: { ...quiet, error: (...values) => logged.push(values) } });
    assert.equal(got.status, status);
    assert.doesNotMatch(got.text, /secret/);
    assert.equal(logged.length, 1);
    assert.deepEqual(logged[0]![1], { process: "café", sequence: 2n, epoch: 2n, dedupKey: "b" });
    assert.deepEqual(await noted("café"), { origin: "o", epoch: 2, sequence: 1, dedup_keys: ["a"] });
    assert.deepEqual(await effects(), ["a"]);
  }
  assert.equal((await answer(effect)).status, 200);
  assert.deepEqual(await effects(), ["a", "b"]);
});

test("logs what it refuses", async () => {
  const warned: unknown[][] = [];
  await answer(effect);
  const late = await answer(effect, { "ordered-dedup-key": "c" }, { log: { ...quiet, warn: (...values) => warned.push(values) } });
  assert.deepEqual([late.status, late.headers["ordered-sequence"]], [409, "2"]);
  assert.match(String(warned[0]![2]), /comes late/);
});

test("escapes what could act on a log or a terminal", async () => {
  const escaped = "%0D%0A%1B[2J%C2%9B%22%E2%80%A8%E2%80%AE%F3%A0%80%81"; // C1, a line separator, bidi, a tag
  const shown = String.raw`\r\n\u001b[2J\u009b\"\u2028\u202e\udb40\udc01"`;
  await answer(effect);
  for (const [name, want] of [
    ["ordered-dedup-key", `record "${shown} of process`],
    ["ordered-sequence", `ordered-sequence is "${shown}, which`],
    ["ordered-version", `version "${shown} of the contract`],
    ["ordered-origin", `has origin "${shown}, and`],
  ] as const) {
    const warned: unknown[][] = [];
    await answer(effect, { [name]: escaped }, { log: { ...quiet, warn: (...values) => warned.push(values) } });
    assert.ok(String(warned[0]![2]).includes(want), String(warned[0]![2]));
  }
});

test("logs a request that it refuses", async () => {
  const refused: [number, Record<string, string>, Partial<HandlerConfig>, string][] = [
    [401, {}, { secret: "another-secret-of-the-sender" }, "POST"],
    [400, { "ordered-epoch": "0" }, {}, "POST"],
    [413, {}, { maxBytes: 1 }, "POST"],
    [405, {}, {}, "PUT"], // a health check
  ];
  for (const [status, change, config, method] of refused) {
    const warned: any[][] = [];
    const got = await answer(effect, change, { ...config, log: { ...quiet, warn: (...values) => warned.push(values) } }, method);
    assert.equal(got.status, status);
    const want = status === 405 ? [] : [["the request was refused", { remote: "127.0.0.1", status }]];
    assert.deepEqual(warned.map((values) => values.slice(0, 2)), want);
  }
});

test("shows the cause if the connection is lost, and takes it for no answer", async () => {
  for (const cause of [new Error("the cause"), new PoisonError("the cause")]) {
    const logged: any[][] = [];
    const lost: Effect = async (client) => {
      await client.query("SELECT pg_terminate_backend(pg_backend_pid())").catch(() => undefined);
      throw cause;
    };
    const got = await answer(lost, {}, { log: { ...quiet, error: (...values) => logged.push(values) } });
    assert.equal(got.status, 503);
    assert.match(String(logged[0]![2]), /the cause/);
  }
});

test("a noted origin is escaped in the answer", async () => {
  await accept((client) => new Inbox("c").acceptOrigin(client, "café", 'a "b"%ü'));
  assert.equal((await answer(effect)).headers["ordered-origin"], "a%20%22b%22%25%C3%BC");
});

test("refuses what is no record", async () => {
  const changes: Record<string, string>[] = [
    { "ordered-sequence": "1x" }, { "ordered-epoch": "0" }, { "ordered-epoch": String(2n ** 63n) }, { "ordered-dedup-key": "" },
    { "ordered-origin": "" }, { "ordered-process": "a%00b" }, { "ordered-origin": "a%FF" }, { "ordered-dedup-key": "a\xff" },
  ];
  for (const change of changes) {
    assert.equal((await answer(effect, change)).status, 400, JSON.stringify(change));
  }
  assert.deepEqual(await effects(), []);
});

test("says what is wrong with a request", async () => {
  const got = await answer(effect, {}, {}, "PUT");
  assert.deepEqual([got.status, got.headers.allow], [405, "POST"]);
  assert.equal((await answer(effect, {}, { maxBytes: 1 })).status, 413);
  assert.deepEqual(await effects(), []);
});

// The sender is gone by then, so nobody reads the answer: but a part of a body must not become a record.
test("does not apply a body that is cut off", async () => {
  const box = new Inbox("c");
  await serve(box, { secret: unsigned, log: quiet }, effect, (port) => new Promise<void>((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
      socket.end(["POST / HTTP/1.1", "host: x", "content-length: 9", ...lines, "", "{}"].join("\r\n"));
    });
    socket.on("error", () => {}).on("close", () => resolve()).resume();
  }));
  assert.deepEqual(await effects(), []);
});

test("names secrets that are none and quotes nothing of them", () => {
  for (const [secret, want] of [
    [undefined, /is missing/], [null, /is missing/], ["", /is missing/], [" ", /is missing/],
    ["whsec_!", /not base64/], ["tooshort", /^(?!.*tooshort).*a key of 8 bytes/],
  ] as const) {
    assert.throws(() => new Inbox("c").handler(pool, { secret: secret as string }, effect), want);
    assert.throws(() => messageFromRequest({}, Buffer.alloc(0), secret as string), want);
  }
});

test("a message of a broker has its stream", () => {
  const get = (name: string) => (headers as Record<string, string>)[name] ?? "";
  assert.equal(messageFromHeaders("orders/1", get, Buffer.from("{}")).stream, "orders/1");
});

test("reads the bytes and the lists of Kafka", () => {
  const get = (change: object) => (name: string) => ({ ...headers, ...change })[name as keyof typeof headers];
  const got = messageFromHeaders("", get({ "ordered-process": [Buffer.from("é"), "second"], "ordered-epoch": 3n }), Buffer.alloc(0));
  assert.deepEqual([got.process, got.epoch], ["é", 3n]);
  assert.throws(() => messageFromHeaders("", get({ "ordered-process": Buffer.from([0x61, 0xff]) }), Buffer.alloc(0)), /not UTF-8/);
});

test("refuses another version of the contract", () => {
  const of = (change: Record<string, string>) => () => messageFromHeaders("", (name) => ({ ...headers, ...change })[name] ?? "", Buffer.alloc(0));
  assert.throws(of({ "ordered-version": "2" }), (error) => error instanceof VersionError && /version "2"/.test(error.message));
  assert.throws(of({ "ordered-version": "" }), /it lacks ordered-version/);
});

test("shows that a payload is not whole", () => {
  const got = messageFromRequest({ ...headers, "ordered-claim-check": "true", "ordered-content-encoding": "zstd" }, Buffer.from("{}"), unsigned);
  assert.deepEqual([got.claimCheck, got.contentEncoding], [true, "zstd"]);
});

test("reads escaped values and names in any case", () => {
  const escaped = { "Ordered-Dedup-Key": "a%20b+c", "Ordered-Key": "50%", "Ordered-Type": "\u00c3\u00a9", "Ordered-Replay": ["true"] };
  const rest = Object.entries(headers).filter(([name]) => name !== "ordered-dedup-key");
  const got = messageFromRequest({ ...Object.fromEntries(rest), ...escaped }, Buffer.from("x"), unsigned);
  const want = { ...message(2n, 2n, "a b+c"), process: "café", type: "é", key: "50%", replay: true, body: Buffer.from("x"), test: false };
  assert.deepEqual(got, want);
});

// missing runs examples/missing.ts with the lines of `show`, and returns its exit code and what it prints.
async function missing(lines: object[]): Promise<{ code: number; out: string }> {
  const child = spawn(process.execPath, [fileURLToPath(new URL("../examples/missing.js", import.meta.url)), "p"]);
  let out = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text) => (out += text));
  child.stdin.end(lines.map((line) => JSON.stringify(line) + "\n").join(""));
  const [code] = await once(child, "close");
  return { code, out };
}

test("the example applies what show prints, once", async () => {
  await pool.query("DROP TABLE IF EXISTS public.booking");
  await pool.query("CREATE TABLE public.booking (id bigint, room text)");
  const at = { "ordered-version": "1", "ordered-process": "p", "ordered-origin": "o", "ordered-sequence": "9", "ordered-epoch": "3", "ordered-replay": "true", headers: {} };
  const booking = (id: number) => JSON.stringify({ id, room: "Ada" });
  await handle(message(1n, 3n, "k1"), new Inbox("bookings"), async () => {});
  const records = [
    { ...at, "ordered-dedup-key": "k1", body: booking(1) },
    { omitted: { action: "skip", record_id: "2" } },
    { ...at, "ordered-dedup-key": "k3", body: booking(3) },
    { ...at, "ordered-dedup-key": "k4", body_base64: Buffer.from(booking(4)).toString("base64") },
  ];
  const more = await missing([...records.slice(0, 3), { end: { from: "place" } }]);
  assert.deepEqual([more.code, /--from 'place'/.test(more.out)], [0, true], more.out);
  const cut = await missing(records);
  assert.deepEqual([cut.code, /have no end/.test(cut.out)], [1, true], cut.out);
  assert.equal((await noted("p")).sequence, 1, "an answer that is not whole moves no number");
  const packed = await missing([{ ...at, "ordered-claim-check": "true", "ordered-dedup-key": "k5", body: booking(5) }]);
  assert.deepEqual([packed.code, /a reference or compressed/.test(packed.out)], [1, true], packed.out);
  const whole = await missing([...records, { end: { sequence: "9" } }]);
  assert.equal(whole.code, 0, whole.out);
  assert.match(whole.out, /k1 duplicate\nnot sent: .*skip.*\nk3 duplicate\nk4 duplicate\n/);
  const { rows } = await pool.query("SELECT array_agg(id::int ORDER BY id) AS ids FROM public.booking");
  assert.deepEqual(rows[0].ids, [3, 4]);
  assert.equal((await noted("p")).sequence, 9);
});
