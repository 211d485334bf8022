package console

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
)

// A page does not say that nothing happened where it is not known what did.
func TestParts_AProblemIsShownBesideWhatIsKnown(t *testing.T) {
	t.Parallel()
	quiet := newParts(desk.Process{Head: &desk.Record{ID: "1"}}, nil, nil)
	require.Equal(t, "Nothing was done to it yet.", quiet.History.None)
	require.Equal(t, "No delivery was seen yet.", quiet.Tail.None)
	unread := newParts(desk.Process{Head: &desk.Record{ID: "1"}, HeadProblem: "permission denied"}, nil, nil)
	require.Contains(t, unread.Head.Facts, said("problem", "permission denied"))
	require.Equal(t, "Nothing is known that was done to it.", unread.History.None)
	require.Equal(t, "No delivery is known.", unread.Tail.None)
}
