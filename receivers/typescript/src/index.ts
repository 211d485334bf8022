export { GapError, InboxError, MessageError, PoisonError, SignatureError, StaleError } from "./errors.js";
export { Inbox, type Effect, type InboxConfig, type Outcome } from "./inbox.js";
export { messageFromHeaders, messageFromRequest, type Headers, type Message } from "./message.js";
export { type HandlerConfig } from "./handler.js";
