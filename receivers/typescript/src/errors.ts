// The base of all errors of this package. status is the answer, and headers belong to it. The sink acts on both: see
// docs/wire.md of ordered-dispatcher.
export class InboxError extends Error {
  readonly status: number = 503;
  readonly headers: Record<string, string> = {};
}

// quoted quotes a text of a sender for a log or a terminal: no line ends in it, and no control character acts.
export function quoted(text: string | undefined): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(text ?? "").replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (one) => one.split("").map(escaped).join(""));
}

// The signature is missing, wrong, or too far from the clock.
export class SignatureError extends InboxError {
  override readonly status = 401;
  constructor() {
    super("the signature is missing, wrong, or too far from the clock");
  }
}

// A header is missing, wrong, or there twice.
export class MessageError extends InboxError {
  override readonly status = 400;
  constructor(why: string) {
    super(`the request is no record: ${why}`);
  }
}

// The message is a claim of a worker, and not a record, or the server of NATS wrote it in the place of one: the sink nats
// keeps claims in its stream. Acknowledge it, and go on.
export class ClaimError extends MessageError {
  constructor() {
    super("it is the claim of a worker");
  }
}

// The version of the contract that this package knows.
export const version = "1";

// The message follows another version of the contract than this package knows. The record is not at fault.
export class VersionError extends InboxError {
  override readonly status = 409;
  override readonly headers = { "Ordered-Version": version };
  constructor(other: string) {
    const got = quoted(other.slice(0, 50));
    super(`the record follows version ${got} of the contract, and this receiver knows version ${version}: upgrade the one that is older`);
  }
}

// The method is not POST, or the body is too large or did not come in whole. It says nothing about the record.
export class RequestError extends InboxError {
  constructor(text: string, override readonly status: number, override readonly headers: Record<string, string> = {}) {
    super(text);
  }
}

// The record can never be applied. An effect throws it, and its text goes into the answer.
export class PoisonError extends InboxError {
  override readonly status = 422;
}

// A message that is refused for what is noted of its process.
export abstract class RefusedError extends InboxError {}

// Another cursor sent the message than the one before: two senders use one name. noted is the origin before.
export class OriginError extends RefusedError {
  override readonly status = 409;
  override readonly headers: Record<string, string>;
  constructor(text: string, readonly noted: string) {
    super(text);
    this.headers = { "Ordered-Origin": escape(noted) };
  }
}

// A worker sent the message that has been superseded. seen is the largest epoch of the process, in this stream.
export class StaleError extends RefusedError {
  override readonly status = 409;
  override readonly headers: Record<string, string>;
  constructor(text: string, readonly seen: bigint) {
    super(text);
    this.headers = { "Ordered-Epoch": String(seen) };
  }
}

// The message comes after a record that was sent after it. last is the sequence of the last record.
export class LateError extends RefusedError {
  override readonly status = 409;
  override readonly headers: Record<string, string>;
  constructor(text: string, readonly last: bigint) {
    super(text);
    this.headers = { "Ordered-Sequence": String(last) };
  }
}

// Records before the message have not come. last is the sequence of the last record.
export class GapError extends RefusedError {
  override readonly status = 428;
  override readonly headers: Record<string, string>;
  constructor(text: string, readonly last: bigint) {
    super(text);
    this.headers = { "Ordered-Sequence": String(last) };
  }
}

// escape encodes a value as the webhook sink does: all bytes except printable ASCII, and the space, " and %.
function escape(value: string): string {
  let escaped = "";
  for (const byte of Buffer.from(value)) {
    const plain = byte > 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x25;
    escaped += plain ? String.fromCharCode(byte) : "%" + byte.toString(16).toUpperCase().padStart(2, "0");
  }
  return escaped;
}
