package mapping

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/itchyny/gojq"

	"github.com/ordered-dispatcher/ordered-dispatcher/upcast"
)

// Bounds are what one run of a mapping may take.
type Bounds struct {
	Time  time.Duration
	Bytes int // of the result
}

// Compile returns the upcaster that a jq program describes. The error may quote the program.
func Compile(program string, bounds Bounds) (upcast.Func, error) {
	query, err := gojq.Parse(program)
	if err != nil {
		return nil, fmt.Errorf("it is not a jq program: %w", err)
	}
	code, err := compile(query)
	if err != nil {
		return nil, fmt.Errorf("it is not a jq program: %w", err)
	}
	return func(payload json.RawMessage) (json.RawMessage, error) {
		value, err := decode(payload)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(context.Background(), bounds.Time)
		defer cancel()
		made, err := one(ctx, code.RunWithContext(ctx, value))
		if ctx.Err() != nil {
			return nil, fmt.Errorf("the mapping took more than %v", bounds.Time)
		}
		if err != nil {
			return nil, err
		}
		text, err := gojq.Marshal(made)
		if err == nil && len(text) > bounds.Bytes {
			return nil, fmt.Errorf("the result of the mapping has %d bytes, and may have %d", len(text), bounds.Bytes)
		}
		return text, err
	}, nil
}

// decode keeps the digits of numbers, and refuses numbers that are too long to be computed with.
func decode(payload []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return nil, errors.New("the payload is not JSON")
	}
	if hasLongNumber(value) {
		return nil, errNumber
	}
	return value, nil
}

// one returns the only result of a mapping.
func one(ctx context.Context, results gojq.Iter) (any, error) {
	made, ok := results.Next()
	if !ok {
		return nil, errors.New("the mapping has no result, and needs one")
	}
	if err, failed := made.(error); failed {
		return nil, reason(err)
	}
	if _, more := results.Next(); more && ctx.Err() == nil {
		return nil, errors.New("the mapping has several results, and may have one")
	}
	return made, nil
}

// reason returns what jq says of a failure, without the values that it quotes. The values come after the words: in
// brackets, in quotes, or as digits. What the mapping itself raises may be data as a whole.
func reason(err error) error {
	var raised gojq.ValueError
	if errors.Is(err, errNumber) {
		return errNumber
	}
	if errors.As(err, &raised) {
		return errors.New("the mapping raised an error (its text is not shown, since it may be data)")
	}
	text := err.Error()
	if end := strings.IndexAny(text, "\"'`([{0123456789\n"); end >= 0 {
		text = strings.TrimRight(text[:end], " :-") + " […]"
	}
	return fmt.Errorf("jq: %s", text)
}
