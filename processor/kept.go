package processor

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// errKept reports that the row does not take an advance, though the lease has its lock.
var errKept = errors.New("the database left the cursor's row unchanged")

// kept returns errKept with what may keep the row. The advance stays owed.
func (s *shift) kept(err error) error {
	names, lookErr := s.config.Store.Keepers(context.WithoutCancel(s.run))
	switch {
	case lookErr != nil:
		return fmt.Errorf("%w, and the worker could not look for the cause: %w: %w", errKept, lookErr, err)
	case len(names) == 0:
		return fmt.Errorf("%w, and its catalog has no trigger, rule or policy that does this: %w", errKept, err)
	default:
		return fmt.Errorf("%w, because of a trigger, rule or policy on the table cursor: %s; drop it, or have it return NEW: %w", errKept, strings.Join(names, ", "), err)
	}
}
