package table

import (
	"context"
	"errors"
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

// CheckPosition refuses a position that no source of this package can have made. Whether a source made it depends on its
// table, too: see InspectRows.
func CheckPosition(p cursor.Position) error {
	tag, _, _ := strings.Cut(string(p), ":")
	if !IsPosition(p) {
		return errors.New("this is not a position")
	}
	_, err := kind(tag).parse(p)
	return err
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
