package payload

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/packed"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/zstd"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Chain prepares a record with one function after another, in this order.
func Chain(steps ...processor.Prepare) processor.Prepare {
	return func(ctx context.Context, r processor.Record) (processor.Record, error) {
		for _, step := range steps {
			var err error
			if r, err = step(ctx, r); err != nil {
				return r, err
			}
		}
		return r, nil
	}
}

// Resolve replaces a claim by the payload in the store, if that has at most limit bytes. A payload that is missing,
// altered or too large is the record's failure; any other error of the store is an outage.
func Resolve(store claim.Store, limit int) processor.Prepare {
	return func(ctx context.Context, r processor.Record) (processor.Record, error) {
		object, claimed := r.Headers[claim.Header]
		if !claimed {
			return r, nil
		}
		reference, err := claim.Parse(object, r.Payload)
		if err != nil {
			return r, processor.Permanent(fmt.Errorf("resolve its claim check: %w", err))
		}
		whole, err := reference.Resolve(ctx, store, limit)
		switch {
		case errors.Is(err, claim.ErrTooLarge):
			err = fmt.Errorf("%w: it has %d bytes, and may have %d", err, reference.Bytes, limit)
			fallthrough
		case claim.IsAboutObject(err):
			return r, processor.Permanent(fmt.Errorf("resolve its claim check %s: %w", reference.Object, err))
		case err != nil:
			return r, fmt.Errorf("resolve its claim check %s: the store failed: %w", reference.Object, err)
		}
		r.Payload, r.Headers = whole, without(r.Headers, claim.Header)
		return r, nil
	}
}

// Decompress decompresses a payload whose header content-encoding is zstd, if it has at most limit bytes then.
func Decompress(limit int) processor.Prepare {
	return func(_ context.Context, r processor.Record) (processor.Record, error) {
		encoding := packed.Encoded(r.Headers)
		if encoding == "" || packed.Claimed(r.Headers) { // of a claim check, the object is encoded, elsewhere
			return r, nil
		}
		if encoding != zstd.Name {
			return r, processor.Permanent(errors.New("decompress its payload: its header content-encoding is not zstd"))
		}
		whole, err := zstd.Decompress(r.Payload, limit)
		if errors.Is(err, zstd.ErrTooLarge) {
			err = fmt.Errorf("%w: it may have %d bytes", err, limit)
		}
		if err != nil {
			return r, processor.Permanent(fmt.Errorf("decompress its payload: %w", err))
		}
		r.Payload, r.Headers = whole, without(r.Headers, packed.Encoding)
		return r, nil
	}
}

// without returns the headers without one of them. The given headers stay as they are.
func without(headers map[string]string, name string) map[string]string {
	rest := maps.Clone(headers)
	delete(rest, name)
	return rest
}
