package processor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// errKept: the row does not take an advance though the lease has its lock.
var errKept = errors.New("the cursor's row is kept as it is")

// rehearse has the row show, once in an epoch and before anything is sent, that it takes the
// advance behind the first record. A debt dies with its epoch: without that, each of two
// workers that take over from one another in turn would send the record once more.
func (s *shift) rehearse(records []Record) error {
	if len(records) == 0 || s.rehearsed == s.lease.Epoch() {
		return nil
	}
	err := s.write(func(ctx context.Context) error { return s.lease.Rehearse(ctx, records[0].Position) })
	switch {
	case err == nil:
		s.rehearsed = s.lease.Epoch()
		return nil
	case errors.Is(err, cursor.ErrUnmoved):
		return s.kept(err)
	default:
		return err
	}
}

// kept is errKept with what may keep the row. The advance stays owed.
func (s *shift) kept(err error) error {
	names, lookErr := s.config.Store.Keepers(context.WithoutCancel(s.run))
	switch {
	case lookErr != nil:
		return fmt.Errorf("%w; by what could not be found: %w: %w", errKept, lookErr, err)
	case len(names) == 0:
		return fmt.Errorf("%w, by no trigger, rule or policy that the catalog has: %w", errKept, err)
	default:
		return fmt.Errorf("%w by code of others on the table cursor: %s; drop it, or have it return NEW: %w", errKept, strings.Join(names, ", "), err)
	}
}
