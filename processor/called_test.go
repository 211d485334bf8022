package processor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// The process may begin to end between the look at the next records and the first call.
func TestHandedOver_ACallThatWasNotMadeChangesNothing(t *testing.T) {
	t.Parallel()
	s := &shift{Process: &Process{config: Config{Dispatch: Each(nil)}}}
	ds := []Delivery{{Record: Record{Position: "b"}, Sequence: 7}}
	s.handedOver("a", ds, 0, nil)
	require.Empty(t, s.sent.positions)
	s.handedOver("a", ds, 1, nil)
	require.Equal(t, []cursor.Position{"b"}, s.sent.positions)
}
