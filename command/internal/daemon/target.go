package daemon

import (
	"context"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Target finds the position to which a seek goes.
type Target func(ctx context.Context, source *table.Source) (cursor.Position, error)

// ToBeginning returns the position before the first record.
func ToBeginning(context.Context, *table.Source) (cursor.Position, error) {
	return "", nil
}

// ToEnd returns the position after everything that is stamped so far.
func ToEnd(ctx context.Context, source *table.Source) (cursor.Position, error) {
	return source.End(ctx)
}

// ToPosition returns the position of p: the record after it is delivered next.
func ToPosition(p cursor.Position) Target {
	return func(context.Context, *table.Source) (cursor.Position, error) { return p, nil }
}

// ToRecord makes the record with that id the next one.
func ToRecord(id string) Target {
	return func(ctx context.Context, source *table.Source) (cursor.Position, error) {
		return source.Before(ctx, id)
	}
}

// ToTime makes the first record that was created at that time or later the next one.
func ToTime(t time.Time) Target {
	return func(ctx context.Context, source *table.Source) (cursor.Position, error) { return source.At(ctx, t) }
}
