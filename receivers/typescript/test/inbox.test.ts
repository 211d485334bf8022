import assert from "node:assert/strict";
import { createServer, request, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { after, beforeEach, test } from "node:test";

import { GapError, Inbox, PoisonError, StaleError, type Effect, type HandlerConfig, type Message } from "ordered-inbox";

import { effect, effects, pool, prepare, vectors } from "./database.js";

beforeEach(prepare);
after(() => pool.end());

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

// post sends one request to a handler.
async function post(box: Inbox, config: HandlerConfig, apply: Effect, headers: Record<string, string>, body: Buffer, method = "POST") {
  const server = createServer(box.handler(pool, config, apply));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await new Promise<Answer>((resolve, reject) => {
      const { port } = server.address() as AddressInfo;
      const req = request({ host: "127.0.0.1", port, method, headers, agent: false }, (res) => {
        let text = "";
        res.setEncoding("utf8").on("data", (chunk) => (text += chunk));
        res.on("end", () => resolve({ status: res.statusCode!, headers: res.headers, text }));
      });
      req.on("error", reject).end(body);
    });
  } finally {
    server.close();
  }
}

test("answers as the vectors say", async (t) => {
  assert.equal(vectors.version, 1);
  assert.ok(vectors.vectors.length >= 30);
  for (const vector of vectors.vectors) {
    await t.test(vector.name, () => check(vector));
  }
});

async function check(vector: any): Promise<void> {
  await prepare();
  const { before, headers } = vector;
  const process = headers["ordered-process"].replace("refunds", "payments"); // one vector has changed it
  if (before.epoch > 0) {
    await pool.query("INSERT INTO public.inbox_process VALUES ('c', $1, $2, $3)", [process, before.epoch, before.sequence]);
  }
  const keys = "INSERT INTO public.inbox (receiver, process, dedup_key) SELECT 'c', $1, k FROM unnest($2::text[]) AS k";
  await pool.query(keys, [process, before.dedup_keys]);
  const body = Buffer.from(vector.body_base64, "base64");
  const box = new Inbox("c", { refuseGaps: vector.refuse_gaps });
  const config = { secret: vector.secrets.join(" "), now: () => vector.now };
  const apply: Effect = async (client, message) => {
    assert.deepEqual(message.body, body);
    await effect(client, message);
  };
  const answer = await post(box, config, apply, headers, body);
  assert.equal(answer.status, vector.status, answer.text);
  for (const [name, value] of Object.entries(vector.answer_headers)) {
    assert.equal(answer.headers[name], value);
  }
  assert.equal((await effects()).length, vector.applied ? 1 : 0);
}

function message(sequence: bigint, epoch: bigint, dedupKey: string): Message {
  return { process: "p", sequence, epoch, dedupKey, type: "", key: "", body: Buffer.alloc(0) };
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

test("applies each record once", async () => {
  for (const [one, want] of [
    [message(1n, 1n, "a"), "applied"],
    [message(1n, 2n, "a"), "duplicate"], // a take-over
    [message(9n, 2n, "c"), "applied"], // a gap
    [message(10n, 3n, "a"), "duplicate"], // a seek back
    [message(3n, 3n, "d"), "applied"], // a dead letter is replayed
  ] as const) {
    assert.equal(await handle(one), want);
  }
  await assert.rejects(handle(message(11n, 2n, "e")), (error) => error instanceof StaleError && error.seen === 3n);
  const strict = new Inbox("c", { refuseGaps: true });
  await assert.rejects(handle(message(11n, 3n, "e"), strict), (error) => error instanceof GapError && error.last === 9n);
  assert.deepEqual(await effects(), ["a", "c", "d"]);
});

test("keeps numbers of 63 bits whole", async () => {
  const large = 2n ** 63n - 2n;
  await handle(message(large, large, "a"));
  await assert.rejects(handle(message(1n, large - 1n, "b")), (error) => error instanceof StaleError && error.seen === large);
});

test("two at once apply once", async () => {
  for (const key of "abcdefghij") {
    const outcomes = await Promise.all([1, 2, 3, 4].map(() => handle(message(1n, 1n, key))));
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

test("the schema may have any name", async () => {
  const box = new Inbox("c", { schema: '$& "odd"' });
  await pool.query('DROP SCHEMA IF EXISTS "$& ""odd""" CASCADE; CREATE SCHEMA "$& ""odd"""');
  await pool.query(box.sql());
  assert.equal(await handle(message(1n, 1n, "a"), box), "applied");
  assert.equal(await box.prune(pool, 0, 1), 1);
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

const headers = { "ordered-process": "caf%C3%A9", "ordered-sequence": "1", "ordered-epoch": "1", "ordered-dedup-key": "a" };

test("says whether the record may come again", async () => {
  const logged: unknown[] = [];
  const config = { secret: null, log: (error: unknown) => logged.push(error) };
  const answer = (apply: Effect) => post(new Inbox("c"), config, apply, headers, Buffer.from("{}"));
  const never = await answer(async () => {
    throw new PoisonError("no such room");
  });
  assert.deepEqual([never.status, never.text], [422, "no such room"]);
  const later = await answer(async () => {
    throw new Error("a detail that is nobody's business");
  });
  assert.equal(later.status, 503);
  assert.doesNotMatch(later.text, /detail/);
  const caught = await answer(async (client) => {
    await client.query("SELECT 1/0").catch(() => undefined);
  });
  assert.equal(caught.status, 503, "PostgreSQL rolls back");
  assert.equal(logged.length, 2);
  const done = await answer(async (client, one) => {
    assert.equal(one.process, "café");
    await effect(client, one);
  });
  assert.equal(done.status, 200, done.text);
  assert.deepEqual(await effects(), ["a"]);
});

test("refuses what is no record", async () => {
  const box = new Inbox("c");
  for (const change of [{ "ordered-sequence": "1x" }, { "ordered-epoch": "0" }, { "ordered-epoch": String(2n ** 63n) }, { "ordered-dedup-key": "" }]) {
    assert.equal((await post(box, { secret: null }, effect, { ...headers, ...change }, Buffer.alloc(0))).status, 400);
  }
  assert.equal((await post(box, { secret: null }, effect, headers, Buffer.alloc(0), "PUT")).status, 400);
  assert.equal((await post(box, { secret: null, maxBytes: 3 }, effect, headers, Buffer.alloc(4))).status, 400);
  assert.deepEqual(await effects(), []);
});

test("names secrets that are none and quotes nothing of them", () => {
  for (const [secret, want] of [["", /is blank/], ["whsec_!", /not base64/], ["tooshort", /^(?!.*tooshort).*a key of 8 bytes/]] as const) {
    assert.throws(() => new Inbox("c").handler(pool, { secret }, effect), want);
  }
});
