package outbox

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/packed"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/zstd"
)

// validatePacking returns the first fault of the settings for large payloads.
func (c Config) validatePacking() error {
	switch {
	case c.CompressAbove < 0 || c.ClaimAbove < 0:
		return errors.New("outbox: CompressAbove and ClaimAbove must not be negative")
	case c.CompressAbove > 0 && !c.Raw:
		return errors.New("outbox: CompressAbove needs Config.Raw, a table whose payload is a bytea: PostgreSQL compresses a jsonb itself")
	case (c.ClaimAbove > 0) != (c.Claims != nil):
		return errors.New("outbox: ClaimAbove needs Claims, the store of the objects, and Claims needs ClaimAbove")
	default:
		return nil
	}
}

// pack compresses large payloads, and puts what is still large into the store. It begins with the store when all
// records are accepted. A record that fails after that leaves objects that no row refers to: see Collect.
func (o *Outbox) pack(ctx context.Context, rows []row) error {
	for i := range rows {
		if o.config.CompressAbove > 0 && len(rows[i].Raw) > o.config.CompressAbove {
			rows[i].compress()
		}
	}
	for i := range rows {
		size := len(rows[i].Raw) + len(rows[i].Payload)
		if o.config.ClaimAbove == 0 || size <= o.config.ClaimAbove {
			continue
		}
		if err := rows[i].claim(ctx, o.config.Claims); err != nil {
			return fmt.Errorf("outbox: record %d: %w", i, err) // the store's failure: the record is as it should be
		}
	}
	return nil
}

// compress replaces the payload by a smaller one, if there is one.
func (r *row) compress() {
	if r.Headers[packed.Encoding] != "" {
		return // the caller has encoded it
	}
	if small := zstd.Compress(r.Raw); len(small) < len(r.Raw) {
		r.Raw = small
		r.header(packed.Encoding, zstd.Name)
	}
}

// claim puts the payload into the store, and its reference into the row.
func (r *row) claim(ctx context.Context, store claim.Store) error {
	payload := []byte(r.Payload)
	if r.Raw != nil {
		payload = r.Raw
	}
	reference, err := claim.Put(ctx, store, payload)
	if err != nil {
		return err
	}
	if r.Raw != nil {
		r.Raw = reference.JSON()
	} else {
		r.Payload = reference.JSON()
	}
	r.header(claim.Header, reference.Object)
	return nil
}

// header sets a header without changing the caller's.
func (r *row) header(name, value string) {
	headers := maps.Clone(r.Headers)
	if headers == nil {
		headers = map[string]string{}
	}
	headers[name] = value
	r.Headers = headers
}

// reserved refuses a header of the caller that only a claim check has.
func (r row) reserved() error {
	if _, given := r.Headers[claim.Header]; given {
		return fmt.Errorf("its header %q is that of a claim check, which Add sets itself", claim.Header)
	}
	return nil
}
