// Package jsonline is the form in which records go out as lines of JSON: that of
// package stdout and of package exec.
package jsonline

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// head is what a line holds before its payload. The order of the fields is the
// order on the line.
type head struct {
	Process   string            `json:"process"`
	Sequence  int64             `json:"sequence,string"`
	Epoch     int64             `json:"epoch,string"`
	Attempt   int               `json:"attempt"`
	Position  string            `json:"position"`
	ID        string            `json:"id"`
	Key       string            `json:"key"`
	Type      string            `json:"type"`
	CreatedAt *string           `json:"created_at"`
	Headers   map[string]string `json:"headers"`
}

const microseconds = "2006-01-02T15:04:05.000000Z07:00"

func newHead(d processor.Delivery) head {
	h := head{
		Process:  d.Process,
		Sequence: d.Sequence,
		Epoch:    int64(d.Epoch),
		Attempt:  d.Attempt,
		Position: string(d.Position),
		ID:       d.ID,
		Key:      d.Key,
		Type:     d.Type,
		Headers:  d.Headers,
	}
	if !d.CreatedAt.IsZero() {
		createdAt := d.CreatedAt.UTC().Format(microseconds)
		h.CreatedAt = &createdAt
	}
	if h.Headers == nil {
		h.Headers = map[string]string{}
	}
	return h
}

// Append appends the record's line to buf: one object, whose fields are those that
// package stdout lists, and a line feed. A payload that is text and not JSON becomes
// a string; one that is not even UTF-8 becomes base64, in a field of its own. The
// payload is not made a field of head, since encoding/json would copy it twice and
// more: it may have 100 MB.
func Append(buf *bytes.Buffer, d processor.Delivery) error {
	encoder := json.NewEncoder(buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(newHead(d)); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	buf.Truncate(buf.Len() - len("}\n"))

	dedupKey := d.DedupKey()
	grow(buf, len(d.Payload)+6*len(dedupKey)+64) // the rest at once: no string grows by more than that
	if err := appendPayload(buf, encoder, d.Payload); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	buf.WriteString(`,"dedup_key":`)
	if err := encoder.Encode(dedupKey); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	buf.Truncate(buf.Len() - len("\n"))
	buf.WriteString("}\n")
	return nil
}

// appendPayload appends the field payload, and payload_base64 where that says more.
func appendPayload(buf *bytes.Buffer, encoder *json.Encoder, payload []byte) error {
	buf.WriteString(`,"payload":`)
	before := buf.Len()
	if len(payload) == 0 {
		buf.WriteString("null")
		return nil
	}
	if json.Compact(buf, payload) == nil { // leaves tokens as they are
		return nil
	}
	buf.Truncate(before)
	if !utf8.Valid(payload) {
		buf.WriteString(`null,"payload_base64":"`)
		grow(buf, base64.StdEncoding.EncodedLen(len(payload))+1)
		buf.Write(base64.StdEncoding.AppendEncode(buf.AvailableBuffer(), payload))
		buf.WriteByte('"')
		return nil
	}
	if err := encoder.Encode(string(payload)); err != nil {
		return err
	}
	buf.Truncate(buf.Len() - len("\n"))
	return nil
}

// grow makes room for exactly n more bytes, where bytes.Buffer would double.
func grow(buf *bytes.Buffer, n int) {
	if n > buf.Available() {
		*buf = *bytes.NewBuffer(append(make([]byte, 0, buf.Len()+n), buf.Bytes()...))
	}
}
