package outbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"unicode/utf8"

	"go.opentelemetry.io/otel/propagation"
)

// Record is one row of an outbox.
type Record struct {
	// Type of the event, as "booking.created". A version may be part of it. Required.
	Type string
	// AggregateType and AggregateID name the business object that the record is about, as "booking" and "4711".
	AggregateType, AggregateID string
	// Key is what a broker partitions by. Default: AggregateID.
	Key string
	// Payload is any value that encoding/json encodes. A json.RawMessage is JSON already. With Config.Raw it is a
	// []byte, and anything else is encoded as JSON.
	Payload any
	// Headers go out with the record: see docs/wire.md. If the context of Add has a trace, and Headers has no
	// "traceparent", Add puts the trace there.
	Headers map[string]string
}

// RecordError is a record that Add refused. Nothing was sent to the database.
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
	Raw           []byte            `json:"raw,omitempty"` // base64
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
	var list bytes.Buffer
	encoder := json.NewEncoder(&list)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(rows); err != nil {
		return "", fmt.Errorf("outbox: %w", err)
	}
	return list.String(), nil
}

func (o *Outbox) row(ctx context.Context, r Record) (row, error) {
	made := row{AggregateType: r.AggregateType, AggregateID: r.AggregateID, Key: cmp.Or(r.Key, r.AggregateID), Type: r.Type, Headers: traced(ctx, r.Headers)}
	if r.Type == "" {
		return row{}, errors.New("it has no Type")
	}
	if err := made.readable(); err != nil {
		return row{}, err
	}
	if err := made.reserved(); err != nil {
		return row{}, err
	}
	raw, isBytes := r.Payload.([]byte)
	switch {
	case isBytes && !o.config.Raw:
		return row{}, errors.New("its payload is a []byte, and this outbox holds JSON: give a json.RawMessage, or set Config.Raw for a table whose payload is a bytea")
	case isBytes:
		made.Raw = raw
	default:
		encoded, err := json.Marshal(r.Payload)
		if err != nil {
			return row{}, fmt.Errorf("encode its payload: %w", err)
		}
		made.Payload = encoded
		if o.config.Raw {
			made.Raw, made.Payload = encoded, nil
		}
	}
	if size := made.size(); size > o.config.MaxBytes {
		return row{}, fmt.Errorf("%w: payload and headers have %d bytes, and may have %d: set Config.MaxBytes, and max_record_bytes of the source", ErrTooLarge, size, o.config.MaxBytes)
	}
	return made, nil
}

// size returns what Config.MaxBytes bounds.
func (r row) size() int {
	size := len(r.Payload) + len(r.Raw)
	for name, value := range r.Headers {
		size += len(name) + len(value)
	}
	return size
}

// readable refuses what encoding/json would change without a word.
func (r row) readable() error {
	texts := []string{r.AggregateType, r.AggregateID, r.Key, r.Type}
	for name, value := range r.Headers {
		texts = append(texts, name, value)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%q is not UTF-8", text)
		}
	}
	return nil
}

// traced returns the headers with the trace of ctx, if it has one and they have none.
func traced(ctx context.Context, headers map[string]string) map[string]string {
	trace := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, trace)
	if len(trace) == 0 || headers["traceparent"] != "" {
		return headers
	}
	maps.Copy(trace, headers)
	return trace
}
