package processor

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// errKept reports that the row does not take an advance, though the lease has its lock.
var errKept = errors.New("the cursor's row is kept as it is")

// kept returns errKept with what may keep the row. The advance stays owed.
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
