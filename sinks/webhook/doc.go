// Package webhook delivers each record as one HTTP POST.
//
// # Nouns
//
//   - Sink: one host, reached over one keep-alive connection.
//   - Target: the address at the host. It is the same for all records, or a template makes it from the record.
//   - Attempt: one POST. It carries the payload's bytes, and the record's identity, order and fencing token in headers.
//   - Answer: the receiver's status. It alone decides: 2xx is an acknowledgement, no matter what the body contains.
//   - Signature: Standard Webhooks v1 (HMAC-SHA256), made with a Secret.
//   - Probe: one GET that asks for a record, before it is sent a second time.
//
// # Diagram
//
//	Deliver ──► may it have it? ──► GET ──► 2xx ────────────► nil
//	              │ no, or no Probe  ├────► 404, 410 ───────► POST
//	              │                  └────► anything else ──► time-out: still unknown
//	              ▼
//	             POST ──► 2xx ──────────────────────────────► nil
//	              ├─────► 408, 425, 429, 5xx ───────────────► error, RetryAfter if the receiver asked
//	              ├─────► 429 of them ──────────────────────► no attempt of the record
//	              ├─────► 502, 504 of them, of a gateway ───► time-out: unknown
//	              ├─────► any other status, 3xx too ────────► Permanent error
//	              └─────► no answer ──► nothing was sent ───► error
//	                              └───► something was ──────► time-out: unknown
//
// # Headers
//
//	Content-Type         application/json, or the type of a structured event
//	Content-Encoding     how the body is encoded, if the process passes on a payload that is; else left out
//	Idempotency-Key      the dedup key: table/id/created_at in microseconds
//	Ordered-Process      name of the process
//	Ordered-Origin       identifies the process's cursor
//	Ordered-Sequence     number of the record in its process: see processor.Delivery
//	Ordered-Version      of the contract: see docs/wire.md
//	Ordered-Epoch        fencing token: refuse a smaller one than you have seen
//	Ordered-Attempt      counts from 1
//	Ordered-Position     the cursor's position once this record is acknowledged
//	Ordered-Dedup-Key    the dedup key, as Idempotency-Key
//	Ordered-Created-At   when the row was created, RFC 3339; left out when that is not known
//	Ordered-Replay       true for a dead letter that is replayed; else left out
//	Ordered-Claim-Check  true if the payload is a reference to an object; else left out
//	Ordered-Content-Encoding  how the payload is encoded, or that object; else left out
//	Ordered-Key          left out when the record has none
//	Ordered-Type         left out when the record has none
//	webhook-id           with a Secret: the Idempotency-Key again
//	webhook-timestamp    with a Secret: Unix seconds of this attempt
//	webhook-signature    with a Secret: "v1,…", one for each key, separated by spaces
//	ordered-signature    with a Secret: the same, of all Ordered- headers: see docs/wire.md
//	traceparent          W3C Trace Context: the span of the attempt, or, without
//	tracestate           tracing, the trace in the record's headers; else left out
//	ce-*                 with Format CloudEvents: id, source, type, time, specversion
//
// Values that come from a record may hold anything, so all of them are percent-encoded by the rule of the CloudEvents
// HTTP binding 1.0.2, section 3.1.3.2. Every byte outside the printable ASCII range, the space, the double quote and
// the percent sign become %XX. One round of percent-decoding gives the value back, byte by byte. In the dedup key the
// full stops after the table's name are encoded too: Standard Webhooks signs "id.timestamp.payload", and a row's id
// must not be able to move those borders.
//
// # Invariants
//
//   - One record is on the wire at a time, and it is sent once per attempt. A request of which a byte may have been
//     written is never sent again, and redirects are never followed.
//   - The payload's bytes arrive unchanged.
//   - No data of a record can make a request malformed.
//   - A request ends within Timeout, and soon after its context does. The sink reads at most 8 KiB of a receiver's
//     answer, for at most 250 ms.
//   - An attempt whose outcome is unknown ends as a time-out, an error whose Timeout method returns true. No other
//     attempt does. An attempt that never reached the receiver has a known outcome.
//   - If there is a Probe, the sink asks for a record that the receiver may have (processor.Delivery.Unknown) before it
//     sends that record. A probe carries no Idempotency-Key. Otherwise a receiver that keeps its answers by that key
//     would keep "404".
//   - Errors name the receiver by scheme and host only, not by the URL's path, query or user info. The sink takes out
//     anything that a receiver echoes, letter by letter, of the secret, the configured headers, the path, the query or
//     the user info. Word by word, it also takes out anything that the receiver echoes of the record
//     (processor.Record.Redact).
//
// # URL templates
//
// Scheme, user, host and port are as written. After them, {{ }} may appear in path and query. Its output is
// percent-encoded, all except letters, digits and -._~, so it never adds a segment, a parameter or a fragment. Many
// receivers and proxies decode a path before they look for "." and ".." in it. So full stops at the beginning of a
// value in a path, or after a slash or backslash in it, are encoded twice there. One round of decoding gives the
// value back, except for those full stops, which come as %2E. An empty value in a path would lead elsewhere
// (/customers//x), so its record fails for good.
//
// # Transport
//
// HTTP/1.1 over TLS 1.2 or later, with the system's roots (SSL_CERT_FILE and SSL_CERT_DIR name others) or those of
// Config.TLS. HTTP/2 gains nothing for one request at a time, and has different rules for sending again.
//
// The sink does not use proxy settings of the environment: a proxy answers 502 and 504 for requests that have
// arrived, and sees the records of plain http.
//
// The connection is an http.ClientConn of our own. A connection from a transport's pool would send some requests
// again by itself, and does not report whether it sent one. The connection is renewed after five minutes, so that it
// follows a change of the host's address. It is closed after it was idle for 30 s. If a receiver closes it earlier,
// that may meet an attempt on its way, which then fails and is tried again.
//
// Addresses where clouds keep their credentials are refused, and with BlockPrivate all addresses that are not public.
// The sink checks the address that is dialled. net/http prints to the standard logger anything that a receiver sends
// without being asked (the daemon leaves out the part that is quoted there).
//
// # Left out
//
// Other methods, batches, HTTP/2, proxies, templates for the body, baggage, and the other headers of the record.
// Exactly-once: a receiver has the key, the sequence and the epoch to do its half.
package webhook
