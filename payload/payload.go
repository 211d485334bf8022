package payload

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
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
		encoding, encoded := r.Headers[zstd.Header]
		if _, claimed := r.Headers[claim.Header]; !encoded || claimed { // the payload is the object's, elsewhere
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
		r.Payload, r.Headers = whole, without(r.Headers, zstd.Header)
		return r, nil
	}
}

// NotWhole returns why the payload of a record is not whole; nil if it is.
func NotWhole(r processor.Record) error {
	if _, claimed := r.Headers[claim.Header]; claimed {
		return errors.New("its payload is a claim check, which this process passes on: resolve it first")
	}
	if _, encoded := r.Headers[zstd.Header]; encoded {
		return errors.New("its payload is compressed, which this process passes on: decompress it first")
	}
	return nil
}

// without returns the headers without one of them. The given headers stay as they are.
func without(headers map[string]string, name string) map[string]string {
	rest := maps.Clone(headers)
	delete(rest, name)
	return rest
}
