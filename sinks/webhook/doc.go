// Package webhook delivers each record as one HTTP POST.
//
// # Nouns
//
//   - Sink: one URL, reached over one keep-alive connection.
//   - Attempt: one POST. It carries the payload's bytes, and the record's
//     identity, order and fencing token in headers.
//   - Answer: the receiver's status. It alone decides: 2xx is an
//     acknowledgement, whatever the body says.
//   - Signature: Standard Webhooks v1 (HMAC-SHA256), made with a Secret.
//
// # Diagram
//
//	Deliver ──► POST ──► 2xx ───────────────────────────► nil
//	              │
//	              ├────► 408, 425, 429, 5xx ────────────► error, RetryAfter if the receiver asked
//	              ├────► any other status, 3xx too ─────► Permanent error
//	              └────► no answer: network, time-out ──► error; says if nothing was sent
//
// # Headers
//
//	Content-Type         application/json
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
//   - One record is on the wire at a time, and it is sent once per attempt: the
//     transport never sends a request again by itself, redirects are never
//     followed.
//   - The payload's bytes arrive unchanged.
//   - No data of a record can make a request malformed.
//   - An attempt ends within Timeout, and soon after its context does. What a
//     receiver answers with is read up to 8 KiB and for at most 250 ms.
//   - Only an attempt whose outcome is unknown ends as a time-out, an error whose
//     Timeout method says true. One that never reached the receiver does not.
//   - Errors name the receiver by scheme and host only, not by the URL's path,
//     query or user info. What a receiver echoes of the secret, the configured
//     headers, the query or the user info, letter by letter, is taken out.
//
// # Transport
//
// HTTP/1.1 over TLS 1.2 or later, with the system's roots (SSL_CERT_FILE and
// SSL_CERT_DIR name others). HTTP/2 gains nothing for one request at a time,
// and its rules for sending again are another set. Proxy settings of the
// environment are not used: a proxy answers 502 and 504 for requests that have
// arrived, and sees the records of plain http. A connection is renewed after
// five minutes, so that a change of the host's address is followed, and closed
// when it was idle for 30 s; a receiver that closes it earlier may meet an attempt
// on its way, which then fails and is tried again. Link-local addresses, where
// clouds keep their credentials, are refused.
//
// # Left out
//
// Other methods, batches, HTTP/2, proxies, client certificates, templates for
// the URL or the body, and the headers of the record. Exactly-once: a receiver
// has the key, the sequence and the epoch to do its half.
package webhook
