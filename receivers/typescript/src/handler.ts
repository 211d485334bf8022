import type { IncomingMessage, ServerResponse } from "node:http";

import { InboxError, quoted, RefusedError, RequestError } from "./errors.js";
import { messageFromRequest, type Message } from "./message.js";
import { parseSecret, requireTimely, single, unsigned, type Secret } from "./signature.js";

export interface HandlerConfig {
  // secret is the one of the sink, or several with spaces between. With unsigned, no signature is checked, and anybody
  // who reaches the handler can send records.
  secret: Secret;
  // maxBytes bounds a body. Default 64 MiB, as max_record_bytes of the dispatcher.
  maxBytes?: number;
  // now is the clock, in seconds since 1970. Default: the present.
  now?: () => number;
  // log gets each record that was not applied, and each POST that was refused, and why. Default console.
  log?: Pick<Console, "warn" | "error">;
}

// handler answers requests. apply commits a record, or rejects.
export function handler(config: HandlerConfig, apply: (message: Message) => Promise<void>) {
  parseSecret(config.secret); // a bad one shows at the start, not at the first record
  const { secret, maxBytes = 64 * 2 ** 20, now = () => Date.now() / 1000, log = console } = config;
  return (req: IncomingMessage, res: ServerResponse): void => {
    readLogged(log, req, read(req, secret, maxBytes, now()))
      .then((message) => (message.test ? undefined : logged(log, message, apply(message))))
      .then(
        () => res.writeHead(200).end(),
        (error: unknown) => refuse(res, error),
      );
  };
}

// readLogged reports a request that is refused before its record is looked at: otherwise a wrong secret would leave no
// trace here. Another method than POST is no record, but a health check or a probe.
async function readLogged(log: Pick<Console, "warn" | "error">, req: IncomingMessage, message: Promise<Message>): Promise<Message> {
  try {
    return await message;
  } catch (error) {
    const remote = req.socket.remoteAddress;
    if (!(error instanceof InboxError)) {
      log.error("the request could not be read", { remote }, error);
    } else if (error.status !== 405) {
      log.warn("the request was refused", { remote, status: error.status }, error.message);
    }
    throw error;
  }
}

// logged reports a record that was not applied: the sender gets no details of what failed here.
async function logged(log: Pick<Console, "warn" | "error">, message: Message, applied: Promise<void>): Promise<void> {
  try {
    await applied;
  } catch (error) {
    const { process, sequence, epoch, dedupKey } = message;
    const of = { process, sequence, epoch, dedupKey };
    if (error instanceof RefusedError) {
      log.warn("the record was refused", of, error.message);
    } else {
      log.error("the record was not applied", of, error);
    }
    throw error;
  }
}

// read checks a request, and returns the record in it. It reads the body last, so that a request without a signature, or
// an old one, costs nothing.
async function read(req: IncomingMessage, secret: Secret, maxBytes: number, now: number): Promise<Message> {
  if (req.method !== "POST") {
    throw new RequestError(`send records with POST, and not with ${quoted(req.method)}`, 405, { Allow: "POST" });
  }
  const headers = req.headersDistinct;
  if (secret !== unsigned) {
    requireTimely(single(headers), now);
  }
  return messageFromRequest(headers, await readBody(req, maxBytes), secret, now);
}

async function readBody(req: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxBytes) {
        break;
      }
      chunks.push(chunk);
    }
  } catch {
    throw new RequestError("the body did not come in whole", 408); // not the record's fault, so it may come again
  }
  if (bytes > maxBytes) {
    throw new RequestError(`the body is too large: it may have ${maxBytes} bytes`, 413, { Connection: "close" });
  }
  return Buffer.concat(chunks);
}

function refuse(res: ServerResponse, error: unknown): void {
  const headers = { "Content-Type": "text/plain; charset=utf-8" };
  if (error instanceof InboxError) {
    res.writeHead(error.status, { ...headers, ...error.headers }).end(error.message);
    return;
  }
  res.writeHead(503, headers).end("the record was not applied: try again");
}
