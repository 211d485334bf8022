package table

import (
	"context"
	"slices"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// Count implements processor.Counter. It counts up to MaxLagRecords records, whether or not they may be read yet.
func (s *Source) Count(ctx context.Context) (records int64, more bool, err error) {
	lag, err := s.Lag(ctx, "")
	return lag.Records, lag.Records >= MaxLagRecords, err
}

// IsPosition reports whether a source of this package may have made a position, judging by its beginning.
func IsPosition(p cursor.Position) bool {
	tag, _, found := strings.Cut(string(p), ":")
	return found && slices.Contains([]kind{kindAtInt, kindAtUUID, kindAtText, kindInt}, kind(tag))
}

// RecordAt returns the id of the record at a position; "" if the position is at none, as after a seek to a time, or if
// no source of this package made it.
func RecordAt(p cursor.Position) string {
	tag, _, _ := strings.Cut(string(p), ":")
	key, err := kind(tag).parse(p)
	if !IsPosition(p) || err != nil || key.id == kind(tag).lowestID() {
		return ""
	}
	return key.id
}
