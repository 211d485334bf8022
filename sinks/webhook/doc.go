// Package webhook delivers each record as one HTTP POST.
//
// # Nouns
//
//   - Sink: one host, reached over one keep-alive connection.
//   - Target: where at the host, one for all or made of the record by a template.
//   - Attempt: one POST. It carries the payload's bytes, and the record's
//     identity, order and fencing token in headers.
//   - Answer: the receiver's status. It alone decides: 2xx is an
//     acknowledgement, whatever the body says.
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
//	Content-Type         application/json, or that of a structured event
//	Idempotency-Key      the dedup key: table/id/created_at in microseconds
//	Ordered-Process      name of the process
//	Ordered-Sequence     count of the process's records, without holes
//	Ordered-Epoch        fencing token: refuse a smaller one than you have seen
//	Ordered-Attempt      counts from 1
//	Ordered-Position     where the cursor stands once this record is acknowledged
//	Ordered-Key          left out when the record has none
//	Ordered-Type         left out when the record has none
//	webhook-id           with a Secret: the Idempotency-Key again
//	webhook-timestamp    with a Secret: Unix seconds of this attempt
//	webhook-signature    with a Secret: "v1,…", one for each key, separated by spaces
//	traceparent          W3C Trace Context: the span of the attempt, or, without
//	tracestate           tracing, what the record's headers say; else left out
//	ce-*                 with Format CloudEvents: id, source, type, time, specversion
//
// Values that come from a record may hold anything, so all of them are
// percent-encoded by the rule of the CloudEvents HTTP binding 1.0.2, section
// 3.1.3.2: every byte outside the printable ASCII range, the space, the double
// quote and the percent sign become %XX. One round of percent-decoding gives
// the value back, byte by byte. In the dedup key the full stops behind the
// table's name are encoded too: Standard Webhooks signs "id.timestamp.payload",
// and a row's id must not be able to move those borders.
//
// # Invariants
//
//   - One record is on the wire at a time, and it is sent once per attempt: nothing
//     of which a byte may have been written is sent again, redirects are never
//     followed.
//   - The payload's bytes arrive unchanged.
//   - No data of a record can make a request malformed.
//   - A request ends within Timeout, and soon after its context does. What a
//     receiver answers with is read up to 8 KiB and for at most 250 ms.
//   - An attempt whose outcome is unknown ends as a time-out, an error whose
//     Timeout method says true, and no other does. One that never reached the
//     receiver has a known outcome.
//   - A record that the receiver may have (processor.Delivery.Unknown) is not sent
//     before it was asked for, if there is a Probe. A probe carries no
//     Idempotency-Key, or a receiver that keeps its answers by it would keep "404".
//   - Errors name the receiver by scheme and host only, not by the URL's path,
//     query or user info. What a receiver echoes of the secret, the configured
//     headers, the path, the query or the user info, letter by letter, is taken
//     out; so is, word by word, what it echoes of the record
//     (processor.Record.Redact).
//
// # URL templates
//
// Scheme, user, host and port are as written. Behind them, {{ }} may stand in path
// and query. Whatever it prints is percent-encoded, all but letters, digits and
// -._~, so it never adds a segment, a parameter or a fragment. A path is decoded by
// many receivers and proxies before they look for "." and ".." in it, so full stops
// at the beginning of a value, or behind a slash or backslash in one, are encoded
// twice there: one round of decoding gives the value back, but for those, which
// come as %2E. A value in a path that is empty would lead elsewhere (/customers//x):
// its record fails for good.
//
// # Transport
//
// HTTP/1.1 over TLS 1.2 or later, with the system's roots (SSL_CERT_FILE and
// SSL_CERT_DIR name others) or those of Config.TLS. HTTP/2 gains nothing
// for one request at a time, and its rules for sending again are another set. Proxy settings of the
// environment are not used: a proxy answers 502 and 504 for requests that have
// arrived, and sees the records of plain http. The connection is an http.ClientConn
// of our own instead of one from a transport's pool, which would send some requests
// again by itself, and does not tell whether it sent one. It is renewed after
// five minutes, so that a change of the host's address is followed, and closed
// when it was idle for 30 s; a receiver that closes it earlier may meet an attempt
// on its way, which then fails and is tried again. Addresses where clouds keep their
// credentials are refused, and with BlockPrivate all that are not public, by the
// address that is dialled. net/http prints to the standard logger what a receiver
// sends without being asked (the daemon leaves out what is quoted there).
//
// # Left out
//
// Other methods, batches, HTTP/2, proxies, templates for the body, baggage, and the other
// headers of the record. Exactly-once: a receiver has the key, the sequence and the epoch to do its half.
package webhook
