import type { IncomingMessage, ServerResponse } from "node:http";

import { InboxError, MessageError } from "./errors.js";
import { messageFromRequest, type Message } from "./message.js";
import { parseSecret } from "./signature.js";

export interface HandlerConfig {
  // secret is the one of the sink, or several with spaces between. With null, no signature is checked, and anybody who
  // reaches the handler can send records.
  secret: string | null;
  // maxBytes bounds a body. Default 64 MiB, as max_record_bytes of the dispatcher.
  maxBytes?: number;
  // now is the clock, in seconds since 1970. Default: the present.
  now?: () => number;
  // log gets what an effect threw, if it is not an InboxError. Default console.error.
  log?: (error: unknown) => void;
}

// handler answers requests. apply commits a record, or rejects.
export function handler(config: HandlerConfig, apply: (message: Message) => Promise<void>) {
  if (config.secret !== null) {
    parseSecret(config.secret); // a bad one shows at the start, not at the first record
  }
  const log = config.log ?? console.error;
  const maxBytes = config.maxBytes ?? 64 * 2 ** 20;
  return (req: IncomingMessage, res: ServerResponse): void => {
    read(req, maxBytes)
      .then((body) => apply(messageFromRequest(req.headers, body, config.secret, config.now?.())))
      .then(
        () => res.writeHead(200).end(),
        (error: unknown) => refuse(res, error, log),
      );
  };
}

async function read(req: IncomingMessage, maxBytes: number): Promise<Buffer> {
  if (req.method !== "POST") {
    throw new MessageError(`its method is ${req.method}`);
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) {
      throw new MessageError(`its body is longer than ${maxBytes} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function refuse(res: ServerResponse, error: unknown, log: (error: unknown) => void): void {
  const headers = { "Content-Type": "text/plain; charset=utf-8" };
  if (error instanceof InboxError) {
    res.writeHead(error.status, { ...headers, ...error.headers }).end(error.message);
    return;
  }
  log(error);
  res.writeHead(503, headers).end("the record was not applied: try again");
}
