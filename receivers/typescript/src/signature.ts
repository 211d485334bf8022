// The signature over the headers that begin with ordered-, and the body: docs/wire.md of ordered-dispatcher,
// "Signatures".

import { createHash, createHmac, timingSafeEqual } from "node:crypto";

import { MessageError, quoted, SignatureError } from "./errors.js";

const prefix = "whsec_";
const minKey = 24;
const maxKey = 64;
const tolerance = 300; // seconds between a signature's time and the receiver's clock

// unsigned in place of a secret has no signature checked. Then anybody who reaches the receiver can send records.
export const unsigned: unique symbol = Symbol("unsigned");

// Secret is the one of the sink, or several with spaces between; or unsigned.
export type Secret = string | typeof unsigned;

// parseSecret returns the keys of a secret. Its errors quote nothing of it.
export function parseSecret(secret: Secret): Buffer[] | typeof unsigned {
  if (secret === unsigned) {
    return secret;
  }
  const keys = (secret ?? "").split(/\s+/).filter((one) => one !== "").map(parseKey); // ?? as process.env may lack it
  if (keys.length === 0) {
    throw new Error("the secret is missing: is its environment variable unset? unsigned takes records from anybody");
  }
  return keys;
}

function parseKey(secret: string): Buffer {
  let key = Buffer.from(secret);
  if (secret.startsWith(prefix)) {
    const encoded = secret.slice(prefix.length);
    key = Buffer.from(encoded, "base64");
    if (key.toString("base64") !== encoded) {
      throw new Error("the secret is not base64 after whsec_: copy it again, with the = at its end");
    }
  }
  if (key.length < minKey || key.length > maxKey) {
    const fix = "make one with `openssl rand -base64 32` and put whsec_ before it";
    throw new Error(`the secret has a key of ${key.length} bytes, not ${minKey} to ${maxKey}: ${fix}`);
  }
  return key;
}

// Headers are those of a request: each name in any case, with its value, or with all values that came.
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

// single returns headers by their names in lower case. It throws a MessageError if one that is signed, or a signature,
// is there twice.
export function single(headers: Headers): Map<string, string> {
  const found = new Map<string, string>();
  for (const [mixed, values] of Object.entries(headers)) {
    const name = mixed.toLowerCase();
    const signed = name.startsWith("ordered-") || name === "webhook-id" || name === "webhook-timestamp";
    for (const value of typeof values === "string" ? [values] : (values ?? [])) {
      if (signed && found.has(name)) {
        throw new MessageError(`${quoted(name)} is there twice`);
      }
      found.set(name, value);
    }
  }
  return found;
}

// requireTimely throws a SignatureError unless there is a signature, and a time that is near enough to the clock.
export function requireTimely(headers: ReadonlyMap<string, string>, now: number): void {
  const seconds = headers.get("webhook-timestamp") ?? "";
  const timely = /^[0-9]{1,19}$/.test(seconds) && Math.abs(now - Number(seconds)) <= tolerance;
  if (!timely || !headers.get("ordered-signature")) {
    throw new SignatureError();
  }
}

// requireSigned throws a SignatureError unless one of the signatures is by one of the keys.
export function requireSigned(headers: ReadonlyMap<string, string>, body: Uint8Array, keys: Buffer[]): void {
  const text = lines(headers, body);
  const wants = keys.map((key) => Buffer.from("v1," + createHmac("sha256", key).update(text).digest("base64")));
  const given = (headers.get("ordered-signature") ?? "").split(" ").map((one) => Buffer.from(one, "latin1"));
  if (!given.some((one) => wants.some((want) => one.length === want.length && timingSafeEqual(one, want)))) {
    throw new SignatureError();
  }
}

function lines(headers: ReadonlyMap<string, string>, body: Uint8Array): Buffer {
  const names = [...headers.keys()].filter((name) => name.startsWith("ordered-") && name !== "ordered-signature").sort();
  const at = [headers.get("webhook-id") ?? "", headers.get("webhook-timestamp") ?? ""];
  const digest = createHash("sha256").update(body).digest("hex");
  const text = ["ordered-v1", ...at, ...names.map((name) => `${name}:${headers.get(name)}`), digest].join("\n");
  return Buffer.from(text, "latin1"); // what came: node:http reads the bytes of a header as ISO 8859-1
}
