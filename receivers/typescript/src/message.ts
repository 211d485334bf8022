import { MessageError, SignatureError } from "./errors.js";
import { parseSecret, verify } from "./signature.js";

// Message is a record as a sink sends it. Sequence and epoch count from 1.
export interface Message {
  readonly process: string;
  readonly sequence: bigint;
  readonly epoch: bigint;
  readonly dedupKey: string;
  readonly type: string;
  readonly key: string;
  readonly body: Buffer;
}

// Headers have names in lower case, as node:http has them.
export type Headers = Readonly<Record<string, string | string[] | undefined>>;

const tolerance = 300; // seconds between a signature's time and the receiver's clock
const max = 2n ** 63n - 1n;

// messageFromRequest checks a request of the webhook sink, and returns the record in it. secret is the one of the sink,
// or several with spaces between. With null, no signature is checked. now is the receiver's clock, in seconds since
// 1970. It throws SignatureError and MessageError, and Error for a secret that is none.
export function messageFromRequest(headers: Headers, body: Buffer, secret: string | null, now = Date.now() / 1000): Message {
  const get = (name: string) => text(headers[name]);
  if (secret !== null && !signed(get, body, parseSecret(secret), now)) {
    throw new SignatureError();
  }
  return messageFromHeaders((name) => unescape(get(name)), body);
}

// messageFromHeaders reads headers, properties or attributes: get returns the text of one, "" if it is absent. It
// throws MessageError.
export function messageFromHeaders(get: (name: string) => string, body: Buffer): Message {
  const message = {
    process: get("ordered-process"),
    sequence: number(get, "ordered-sequence"),
    epoch: number(get, "ordered-epoch"),
    dedupKey: get("ordered-dedup-key"),
    type: get("ordered-type"),
    key: get("ordered-key"),
    body,
  };
  if (message.process === "" || message.dedupKey === "") {
    throw new MessageError("it lacks a process or a dedup key");
  }
  return message;
}

function signed(get: (name: string) => string, body: Buffer, keys: Buffer[], now: number): boolean {
  const lines = ["webhook-id", "webhook-timestamp", "ordered-process", "ordered-sequence", "ordered-epoch"].map(get);
  const [id, seconds] = lines as [string, string];
  return (
    /^[0-9]{1,15}$/.test(seconds) &&
    Math.abs(now - Number(seconds)) <= tolerance &&
    unescape(id) === unescape(get("ordered-dedup-key")) && // the signature covers webhook-id, which is the dedup key
    verify(keys, get("ordered-signature"), lines, body)
  );
}

function number(get: (name: string) => string, name: string): bigint {
  const value = get(name);
  const n = /^[0-9]{1,19}$/.test(value) ? BigInt(value) : 0n;
  if (n < 1n || n > max) {
    throw new MessageError(`${name} is ${JSON.stringify(value)}, not a number from 1`);
  }
  return n;
}

function text(value: string | string[] | undefined): string {
  return (Array.isArray(value) ? value[0] : value) ?? "";
}

// unescape undoes what the webhook sink does to values of a record. What is no escape stays as it is.
function unescape(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
