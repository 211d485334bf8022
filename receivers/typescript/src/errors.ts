// The base of all errors of this package. status is the answer, and headers belong to it. The sink acts on both: see
// docs/wire.md of ordered-dispatcher.
export class InboxError extends Error {
  readonly status: number = 503;
  readonly headers: Record<string, string> = {};
}

// The signature is missing, wrong, or too far from the clock.
export class SignatureError extends InboxError {
  override readonly status = 401;
  constructor() {
    super("the signature is missing, wrong, or too far from the clock");
  }
}

// A header is missing or wrong, the method is not POST, or the body is too large.
export class MessageError extends InboxError {
  override readonly status = 400;
  constructor(why: string) {
    super(`the request is no record: ${why}`);
  }
}

// The record can never be applied. An effect throws it, and its text goes into the answer.
export class PoisonError extends InboxError {
  override readonly status = 422;
}

// A worker sent the message that has been superseded. seen is the largest epoch of the process.
export class StaleError extends InboxError {
  override readonly status = 409;
  override readonly headers: Record<string, string>;
  constructor(text: string, readonly seen: bigint) {
    super(text);
    this.headers = { "Ordered-Epoch": String(seen) };
  }
}

// Records before the message have not come. last is the largest sequence that was applied.
export class GapError extends InboxError {
  override readonly status = 428;
  override readonly headers: Record<string, string>;
  constructor(text: string, readonly last: bigint) {
    super(text);
    this.headers = { "Ordered-Sequence": String(last) };
  }
}
