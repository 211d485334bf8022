// Package jsonline writes records as lines of JSON, for package stdout and package exec.
package jsonline

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/wire"
)

// TooLargeError reports that a line is not made, since it would have more bytes than the limit.
type TooLargeError struct{ Bytes, Limit int }

// Error names both sizes, and the parts that the size counts.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("its line would have %d bytes, with its key, type, id, headers and all escapes, and the limit is %d", e.Bytes, e.Limit)
}

const (
	microseconds = "2006-01-02T15:04:05.000000Z07:00"
	base64Field  = `null,"payload_base64":"`
	small        = 16 << 10 // a line of at most this many bytes is not counted before it is made
)

// Append appends the record's line to buf: one object, with the fields that package stdout lists, and a line feed. A
// payload that is text and not JSON becomes a string. A payload that is not even UTF-8 becomes base64, in a field of
// its own.
//
// For a line of more than limit bytes it returns a *TooLargeError, and appends nothing. An escape takes six bytes for
// one, so Append counts the line before it allocates memory. Then it allocates exactly that size.
func Append(buf *bytes.Buffer, d processor.Delivery, limit int) error {
	size := atMost(d)
	if size > min(small, limit) {
		if size = lineLen(d); size > limit {
			return &TooLargeError{size, limit}
		}
	}
	grow(buf, size)
	line := appendHead(buf.AvailableBuffer(), d)
	line = appendHeaders(append(line, `,"headers":`...), d.Headers)
	line = appendPayload(append(line, `,"payload":`...), d.Payload)
	line = appendText(append(line, `,"dedup_key":`...), d.DedupKey())
	buf.Write(append(line, "}\n"...))
	return nil
}

// lineLen returns how many bytes Append appends.
func lineLen(d processor.Delivery) int {
	bare := d
	bare.Process, bare.Origin, bare.Position, bare.ID, bare.Key, bare.Type = "", "", "", "", "", ""
	size := len(appendHead(nil, bare))
	if wire.IsReplay(d) {
		size -= len("false") - len("true")
	}
	for _, value := range []string{d.Process, d.Origin, string(d.Position), d.ID, d.Key, d.Type} {
		size += textLen(value) - len(`""`)
	}
	size += len(`,"headers":`) + headersLen(d.Headers)
	size += len(`,"payload":`) + payloadLen(d.Payload)
	return size + len(`,"dedup_key":`) + textLen(d.DedupKey()) + len("}\n")
}

// appendHead appends the part before the headers. The order of the fields is the order on the line.
func appendHead(line []byte, d processor.Delivery) []byte {
	line = appendText(append(line, `{"process":`...), d.Process)
	line = strconv.AppendInt(append(line, `,"sequence":"`...), d.Sequence, 10)
	line = strconv.AppendInt(append(line, `","epoch":"`...), int64(d.Epoch), 10)
	line = strconv.AppendInt(append(line, `","attempt":`...), int64(d.Attempt), 10)
	line = appendText(append(line, `,"origin":`...), d.Origin)
	line = strconv.AppendBool(append(line, `,"replay":`...), wire.IsReplay(d))
	if d.Amended {
		line = append(line, `,"amended":true`...)
	}
	if wire.IsTest(d) {
		line = append(line, `,"test":true`...)
	}
	line = appendText(append(line, `,"position":`...), d.Position)
	line = appendText(append(line, `,"id":`...), d.ID)
	line = appendText(append(line, `,"key":`...), d.Key)
	line = appendText(append(line, `,"type":`...), d.Type)
	line = append(line, `,"created_at":`...)
	if d.CreatedAt.IsZero() {
		return append(line, "null"...)
	}
	return appendText(line, d.CreatedAt.UTC().Format(microseconds))
}

// appendPayload appends the payload, and payload_base64 where that holds more.
func appendPayload(line, payload []byte) []byte {
	switch {
	case len(payload) == 0:
		return append(line, "null"...)
	case !utf8.Valid(payload): // before JSON: encoding/json takes such bytes for valid
		line = base64.StdEncoding.AppendEncode(append(line, base64Field...), payload)
		return append(line, '"')
	case json.Valid(payload):
		return appendCompact(line, payload)
	default:
		return appendText(line, payload)
	}
}

// payloadLen returns how many bytes appendPayload appends.
func payloadLen(payload []byte) int {
	switch {
	case len(payload) == 0:
		return len("null")
	case !utf8.Valid(payload):
		return len(base64Field) + base64.StdEncoding.EncodedLen(len(payload)) + len(`"`)
	case json.Valid(payload):
		size := 0
		eachToken(payload, func(run []byte) { size += len(run) })
		return size
	default:
		return textLen(payload)
	}
}

// grow makes room for exactly n more bytes, where bytes.Buffer would double its size.
func grow(buf *bytes.Buffer, n int) {
	if n > buf.Available() {
		*buf = *bytes.NewBuffer(append(make([]byte, 0, buf.Len()+n), buf.Bytes()...))
	}
}
