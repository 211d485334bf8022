package outbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxHeaders is how many names the source takes from one record.
const maxHeaders = 1000

// idBytes is the length of the longest id that the table assigns. max_record_bytes counts it.
const idBytes = 19

// Record is one row of an outbox. Its texts are UTF-8 without NUL, because PostgreSQL has no others.
type Record struct {
	// Type of the event, as "booking.created". A version may be part of it. Required.
	Type string
	// AggregateType and AggregateID name the business object that the record is about, as "booking" and "4711".
	AggregateType, AggregateID string
	// Key is what a broker partitions by. Default: AggregateID.
	Key string
	// Payload is any value that encoding/json encodes, written without escapes for HTML. A json.RawMessage is JSON
	// already. With Config.Raw, the bytes of a []byte or of a json.RawMessage are written as they are. A nil []byte is
	// empty there. Without Config.Raw a []byte is refused. A named type of bytes, or a pointer to bytes, is refused in
	// both, because encoding/json makes base64 of it. A type with a MarshalJSON or MarshalText of its own is no such type.
	Payload any
	// Headers go out with the record: see docs/wire.md. At most 1,000 names. If the context of Add has a trace, Add
	// puts it there, as "traceparent" and "tracestate". A "traceparent" of Headers that is not empty comes before: then
	// both are as Headers has them.
	Headers map[string]string
}

// RecordError is a record that Add refused, because of the record itself: it is refused again at each attempt. It names
// the field. Nothing was sent to the database. Commit only if you can do without the record.
type RecordError struct {
	Index int // in the arguments of Add, from 0
	Err   error
}

func (e *RecordError) Error() string { return fmt.Sprintf("outbox: record %d: %v", e.Index, e.Err) }
func (e *RecordError) Unwrap() error { return e.Err }

// ErrTooLarge means that a record has more bytes than Config.MaxBytes.
var ErrTooLarge = errors.New("the record is too large")

// row is a record as the statement reads it. Absent fields are NULL.
type row struct {
	AggregateType string            `json:"aggregate_type,omitempty"`
	AggregateID   string            `json:"aggregate_id,omitempty"`
	Key           string            `json:"key,omitempty"`
	Type          string            `json:"type"`
	Payload       json.RawMessage   `json:"payload,omitempty"`
	Raw           []byte            `json:"raw,omitzero"` // base64; empty bytes are not NULL
	Headers       map[string]string `json:"headers,omitempty"`
}

func (o *Outbox) encode(ctx context.Context, records []Record) (string, error) {
	rows := make([]row, len(records))
	for i, r := range records {
		var err error
		if rows[i], err = o.row(ctx, r); err != nil {
			return "", &RecordError{Index: i, Err: err}
		}
	}
	if err := o.pack(ctx, rows); err != nil {
		return "", err
	}
	list, err := encodeJSON(rows)
	if err != nil {
		return "", fmt.Errorf("outbox: %w", err)
	}
	return string(list), nil
}

func (o *Outbox) row(ctx context.Context, r Record) (row, error) {
	made := row{AggregateType: r.AggregateType, AggregateID: r.AggregateID, Key: cmp.Or(r.Key, r.AggregateID), Type: r.Type, Headers: traced(ctx, r.Headers)}
	if err := made.readable(); err != nil {
		return row{}, err
	}
	if err := made.reserved(); err != nil {
		return row{}, err
	}
	payload, size, err := o.payload(r.Payload)
	if err != nil {
		return row{}, err
	}
	if o.config.Raw {
		made.Raw = payload
	} else {
		made.Payload = payload
	}
	headers, err := made.headerBytes()
	if err != nil {
		return row{}, fmt.Errorf("its Headers %w", err)
	}
	size += idBytes + len(made.Type) + len(made.AggregateType) + len(made.AggregateID) + len(made.Key) + headers
	if size > o.config.MaxBytes {
		return row{}, fmt.Errorf("%w: it has %d bytes, and MaxBytes is %d: make it smaller, or raise Config.MaxBytes, and max_record_bytes of the source with it",
			ErrTooLarge, size, o.config.MaxBytes)
	}
	return made, nil
}

// readable refuses what PostgreSQL cannot hold, and what the source would not take.
func (r row) readable() error {
	if r.Type == "" {
		return errors.New("its Type is empty")
	}
	for _, field := range [][2]string{{"Type", r.Type}, {"AggregateType", r.AggregateType}, {"AggregateID", r.AggregateID}, {"Key", r.Key}} {
		if err := checkText(field[1]); err != nil {
			return fmt.Errorf("its %s %w", field[0], err)
		}
	}
	if len(r.Headers) > maxHeaders {
		return fmt.Errorf("its Headers have %d names, with those of the trace, and the dispatcher takes %d: put the rest into the payload", len(r.Headers), maxHeaders)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		if err := cmp.Or(checkText(name), checkText(r.Headers[name])); err != nil {
			return fmt.Errorf("its Headers[%.100q] %w", name, err)
		}
	}
	return nil
}

// headerBytes returns the size of the headers as the server prints them.
func (r row) headerBytes() (int, error) {
	if len(r.Headers) == 0 {
		return 0, nil
	}
	text, err := encodeJSON(r.Headers)
	if err != nil {
		return 0, err
	}
	return jsonbBytes(text)
}

// Both follow the name of a field.
var (
	errUTF8 = errors.New("is not UTF-8")
	errNUL  = errors.New("has a NUL (U+0000), which PostgreSQL holds in no text")
)

// checkText refuses a text that the server refuses, or that encoding/json changes without a word.
func checkText(text string) error {
	switch {
	case !utf8.ValidString(text):
		return errUTF8
	case strings.ContainsRune(text, 0):
		return errNUL
	default:
		return nil
	}
}

// encodeJSON is json.Marshal without escapes for HTML.
func encodeJSON(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}
