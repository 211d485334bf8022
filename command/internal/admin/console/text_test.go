package console

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLong_IsCutWithAllOfItOneStepAway(t *testing.T) {
	t.Parallel()
	require.Equal(t, long{Short: "short"}, newLong("a", "short"))
	all := strings.Repeat("x", 5000)
	cut := newLong("a", all)
	require.Less(t, len(cut.Short), 300)
	require.Equal(t, all, cut.Full)
	lines := newLong("a", "first\nsecond")
	require.Equal(t, "first …", lines.Short)
	require.Equal(t, "first\nsecond", lines.Full)
}

func TestLong_HiddenCharactersAreShownByTheirNumbers(t *testing.T) {
	t.Parallel()
	require.Equal(t, `a\u202eb`, newLong("a", "a\u202eb").Short)
	require.Equal(t, `a\u000db`+"\nc", newLong("a", "a\rb\nc").Full)
}

func TestProse_CommandsAreApart(t *testing.T) {
	t.Parallel()
	require.Equal(t, []words{{"run ", false}, {"ordered-dispatcher retry a", true}, {" now", false}}, newProse("run `ordered-dispatcher retry a` now"))
	before, sql := nextStep("wait, or end it: SELECT pg_terminate_backend(7)")
	require.Equal(t, "wait, or end it", before)
	require.Equal(t, "SELECT pg_terminate_backend(7)", sql)
}

func TestTook_HasOneUnit(t *testing.T) {
	t.Parallel()
	for seconds, text := range map[float64]string{0.2: "under 1 s", 59: "59 s", 120: "2 min", 7200: "2 h", 200000: "2 d"} {
		require.Equal(t, text, took(seconds))
	}
}

func TestSpark_ATimeInWhichNobodyLookedIsAGap(t *testing.T) {
	t.Parallel()
	v := func(f float64) *float64 { return &f }
	s := newSpark([]*float64{v(1), v(2), nil, v(1), v(0)})
	require.Equal(t, 2, strings.Count(s.Edge, "M"))
	require.Equal(t, 2, strings.Count(s.Area, "Z"))
	require.Empty(t, newSpark(nil).Edge)
}
