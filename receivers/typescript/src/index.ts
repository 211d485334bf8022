export {
  ClaimError,
  GapError,
  InboxError,
  LateError,
  MessageError,
  OriginError,
  PoisonError,
  RefusedError,
  RequestError,
  SignatureError,
  StaleError,
  VersionError,
} from "./errors.js";
export { Inbox, type Effect, type InboxConfig, type Outcome } from "./inbox.js";
export { messageFromHeaders, messageFromNats, messageFromRequest, type Message } from "./message.js";
export { unsigned, type Headers, type Secret } from "./signature.js";
export { type HandlerConfig } from "./handler.js";
