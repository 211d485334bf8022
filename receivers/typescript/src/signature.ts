// The signature over process, sequence, epoch and body: docs/wire.md of ordered-dispatcher, "Signatures".

import { createHash, createHmac, timingSafeEqual } from "node:crypto";

const prefix = "whsec_";
const minKey = 24;
const maxKey = 64;

// parseSecret returns the keys of a secret: one or more, with spaces between. Its errors quote nothing of it.
export function parseSecret(secret: string): Buffer[] {
  const keys = secret.split(/\s+/).filter((one) => one !== "").map(parseKey);
  if (keys.length === 0) {
    throw new Error("the secret is blank: is its environment variable unset? null checks no signature");
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

// verify reports whether one of the given signatures is by one of the keys. The lines are id, time, process, sequence
// and epoch, as they were sent.
export function verify(keys: Buffer[], given: string, lines: string[], body: Uint8Array): boolean {
  const digest = createHash("sha256").update(body).digest("hex");
  const text = ["ordered-v1", ...lines, digest].join("\n");
  const wants = keys.map((key) => Buffer.from("v1," + createHmac("sha256", key).update(text).digest("base64")));
  const signatures = given.split(/\s+/).map((one) => Buffer.from(one));
  return signatures.some((one) => wants.some((want) => one.length === want.length && timingSafeEqual(one, want)));
}
