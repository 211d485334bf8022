package retention

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// A mode that somebody adds, and for which one place has no case, must not delete.
func TestRemove_OfAModeWithoutACaseRemovesNothing(t *testing.T) {
	t.Parallel()
	p := pass{Config: Config{Rule: Rule{Mode: "new"}}}
	_, err := p.remove(t.Context(), nil, table.Stretch{})
	require.EqualError(t, err, "mode new removes no rows")
}
