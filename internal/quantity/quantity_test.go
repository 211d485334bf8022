package quantity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/quantity"
)

func TestOf_OnlyOneIsSingular(t *testing.T) {
	t.Parallel()
	require.Equal(t, "0 records", quantity.Of(0, "record"))
	require.Equal(t, "1 record", quantity.Of(1, "record"))
	require.Equal(t, "2 dead letters", quantity.Of(int64(2), "dead letter"))
	require.Equal(t, "1 process", quantity.Of(1, "process"))
	require.Equal(t, "3 processes", quantity.Of(3, "process"))
}
