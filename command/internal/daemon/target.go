package daemon

import (
	"context"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Target finds the position to seek to.
type Target func(ctx context.Context, source *table.Source) (cursor.Position, error)

// ToBeginning is before the first record there is.
func ToBeginning(context.Context, *table.Source) (cursor.Position, error) {
	return "", nil
}

// ToEnd is behind everything stamped so far.
func ToEnd(ctx context.Context, source *table.Source) (cursor.Position, error) {
	return source.End(ctx)
}

// ToPosition is behind the record of that position.
func ToPosition(p cursor.Position) Target {
	return func(context.Context, *table.Source) (cursor.Position, error) { return p, nil }
}

// ToRecord has the record of that id delivered next.
func ToRecord(id string) Target {
	return func(ctx context.Context, source *table.Source) (cursor.Position, error) {
		return source.Before(ctx, id)
	}
}

// ToTime has the first record created at that time or later delivered next.
func ToTime(t time.Time) Target {
	return func(ctx context.Context, source *table.Source) (cursor.Position, error) { return source.At(ctx, t) }
}
