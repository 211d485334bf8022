package visible

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCut_KeepsWhatMakesTwoLongNamesDiffer(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("i", 100_000)
	require.Equal(t, strings.Repeat("i", 80)+"…"+strings.Repeat("i", 40)+" (100000 bytes, sha256 f1a433e0c5b9)", Cut(long))
	require.NotEqual(t, Cut(long+"a"+long), Cut(long+"b"+long), "they differ in the middle")
	require.Equal(t, long[:200], Cut(long[:200]))
}

func TestStart_EndsAtACharactersBorder(t *testing.T) {
	t.Parallel()
	require.Equal(t, "x…", Start("xé", 2))
	require.Equal(t, "xé", Start("xé", 3))
	require.Equal(t, "é…", Start("éé", 3))
}

func TestCut_IsShortAndBreaksNoCharacter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, -1, 400).Draw(t, "text") + strings.Repeat(rapid.SampledFrom([]string{"é", "€", "😀", "\x01", "\xff"}).Draw(t, "more"), rapid.IntRange(0, 200).Draw(t, "n"))
		cut := Cut(text)
		require.LessOrEqual(t, len(cut), longest)
		require.True(t, utf8.ValidString(cut) || !utf8.ValidString(text), cut)
		require.NotContains(t, Short(text), "\x01")
	})
}
