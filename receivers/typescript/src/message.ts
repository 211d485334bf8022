import { ClaimError, MessageError, quoted, VersionError, version } from "./errors.js";
import { parseSecret, requireSigned, requireTimely, single, unsigned, type Headers, type Secret } from "./signature.js";

// Message is a record as a sink sends it. Sequence and epoch count from 1.
export interface Message {
  readonly process: string;
  // origin identifies the cursor of the process.
  readonly origin: string;
  readonly sequence: bigint;
  readonly epoch: bigint;
  readonly dedupKey: string;
  // replay is true for a dead letter that is replayed, out of its turn.
  readonly replay: boolean;
  // stream names the part of the process's records that has an order of its own: a partition of Kafka, or an ordering
  // key of Pub/Sub. It is "" where all records have one order, as over HTTP.
  readonly stream: string;
  readonly type: string;
  readonly key: string;
  // With claimCheck, body is a reference to an object, and not the payload.
  readonly claimCheck: boolean;
  // contentEncoding is how the payload is encoded, such as "zstd"; "" if it is not.
  readonly contentEncoding: string;
  readonly body: Buffer;
  // test is true for a test, which is no record: an inbox applies and notes nothing.
  readonly test?: boolean;
}

const max = 2n ** 63n - 1n;

// messageFromRequest checks a request of the webhook sink, and returns the record in it. Give it headersDistinct of a
// request of node:http: only that shows a header that came twice. now is the receiver's clock, in seconds since 1970. It
// throws SignatureError, MessageError and VersionError, and Error for a secret that is none.
export function messageFromRequest(headers: Headers, body: Buffer, secret: Secret, now = Date.now() / 1000): Message {
  const keys = parseSecret(secret);
  const found = single(headers);
  if (keys !== unsigned) {
    requireTimely(found, now);
    requireSigned(found, body, keys);
  }
  return messageFromHeaders("", (name) => unescape(Buffer.from(found.get(name) ?? "", "latin1")), body);
}

// messageFromHeaders reads headers, properties or attributes. For NATS, call messageFromNats. value returns one of them: a
// text, a number of AMQP, or the bytes of Kafka; "", null or undefined if it is absent. stream is that of the message: with
// Kafka the topic and the partition, and "" where all records have one order. It throws MessageError and VersionError.
export function messageFromHeaders(stream: string, value: (name: string) => unknown, body: Buffer): Message {
  const get = (name: string) => text(value(name));
  const [process, dedupKey, version] = [get("ordered-process"), get("ordered-dedup-key"), get("ordered-version")];
  if (process !== "" && dedupKey === "" && version === "") {
    throw new ClaimError(); // every record has these two
  }
  requireVersion(version);
  const message = {
    process,
    origin: get("ordered-origin"),
    sequence: number(get, "ordered-sequence"),
    epoch: number(get, "ordered-epoch"),
    dedupKey,
    replay: get("ordered-replay") === "true",
    stream,
    type: get("ordered-type"),
    key: get("ordered-key"),
    claimCheck: get("ordered-claim-check") === "true",
    contentEncoding: get("ordered-content-encoding"),
    body,
    test: get("ordered-test") === "true",
  };
  validate(message);
  return message;
}

// messageFromNats does what messageFromHeaders does with a message of NATS, whose values are percent-encoded. It throws
// ClaimError, too.
export function messageFromNats(stream: string, value: (name: string) => unknown, body: Buffer): Message {
  if (text(value("ordered-version")) === "" && text(value("Nats-Marker-Reason")) !== "") {
    throw new ClaimError();
  }
  return messageFromHeaders(stream, (name) => unescape(Buffer.from(text(value(name)))), body);
}

// requireVersion comes first: in another version, names may be missing or mean something else.
function requireVersion(text: string): void {
  if (text === "") {
    throw new MessageError("it lacks ordered-version");
  }
  if (text !== version) {
    throw new VersionError(text);
  }
}

// validate throws a MessageError for a message that an inbox cannot note.
export function validate(message: Message): void {
  const { process, origin, dedupKey, sequence, epoch, stream } = message;
  if (process === "" || origin === "" || dedupKey === "") {
    throw new MessageError("it lacks a process, an origin or a dedup key");
  }
  if (sequence < 1n || sequence > max || epoch < 1n || epoch > max) {
    throw new MessageError(`its sequence is ${sequence}, and its epoch ${epoch}: they count from 1`);
  }
  for (const text of [process, origin, dedupKey, stream]) {
    if (text.includes("\0") || Buffer.from(text).toString() !== text) {
      throw new MessageError(`${quoted(text)} has a NUL, or is not UTF-8`);
    }
  }
}

function number(get: (name: string) => string, name: string): bigint {
  const value = get(name);
  if (!/^[0-9]{1,19}$/.test(value)) {
    throw new MessageError(`${name} is ${quoted(value)}, which is no number`);
  }
  return BigInt(value);
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

// text returns a value as text. Bytes that are not UTF-8 become lone surrogates, which validate refuses where it matters.
function text(value: unknown): string {
  if (Array.isArray(value)) {
    return text(value[0]); // a client of Kafka shows all values
  }
  if (!(value instanceof Uint8Array)) {
    return String(value ?? "");
  }
  try {
    return decoder.decode(value);
  } catch {
    const bytes = Buffer.from(value).toString("latin1");
    return bytes.replace(/[\x80-\xff]/g, (byte) => String.fromCharCode(0xdc00 + byte.charCodeAt(0)));
  }
}

// unescape undoes what the sinks webhook and nats do to values of a record. What is no escape stays as it is.
function unescape(raw: Buffer): string {
  const value = raw.toString("latin1");
  const plain = /%(?![0-9A-Fa-f]{2})/.test(value) ? value : value.replace(/%(..)/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  return text(Buffer.from(plain, "latin1"));
}
