// Package stdout writes each record as one line of JSON.
//
// # Nouns
//
//   - Sink: a writer that lines go to.
//   - Line: one JSON object and a line feed.
//   - Torn line: the remainder of a write that failed in the middle of a line.
//
// # A line
//
//	process      string
//	sequence     string: 64 bits are more than a JSON number holds everywhere
//	epoch        string, likewise
//	attempt      number
//	origin       string: identifies the process's cursor
//	replay       true for a dead letter that is replayed out of its turn, otherwise false
//	position     string
//	id           string
//	key          string, "" when the record has none
//	type         string, "" when the record has none
//	created_at   RFC 3339 in UTC, to the microsecond; null when the record has none
//	headers      object of strings
//	payload      the record's JSON; null when it is empty; a string when it is text
//	             that is not JSON
//	dedup_key    string
//
// in this order. A payload that is neither JSON nor UTF-8 is null, and payload_base64 comes after it, with its bytes
// in base64.
//
// # Invariants
//
//   - One object is one line, no matter what the record holds. White space between the tokens of a payload is left out. Its
//     numbers, strings and escapes, and the order and duplicates of its keys, stay as they are.
//   - A line is one Write, so lines of several processes on one file do not mix.
//   - A line has at most 128 MiB, or twice the bytes of its record if that is more. It is measured before it is made; a
//     longer one is a Permanent error.
//   - Deliver returns nil after the writer has taken the whole line and, if it has a Flush method, has flushed it.
//   - A torn line is ended before the next one is written. It is on a line of its own, and is not JSON.
//   - Deliver returns when its context ends, even if no one reads the other end. The write goes on, and the next
//     delivery waits for it, so order holds.
//
// # Errors
//
// JSON that is nested deeper than 10,000 levels, the bound of encoding/json, becomes a string. A failed write is not
// Permanent, not even a broken pipe (EPIPE): the record is fine, so it waits until the process is started again with
// a reader. (If file descriptor 1 of a Go program is a broken pipe, SIGPIPE ends the program unless it catches that
// signal; then nothing was delivered either.)
//
// # Left out
//
// Files, rotation, other encodings, and fsync: a line is handed to the operating system, which may lose it in a power
// failure.
package stdout
