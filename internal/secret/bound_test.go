package secret_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
)

const (
	mebibyte = 1 << 20
	shown    = 32 << 10 // of a text
)

// A message of a server may have megabytes, and escapes take the most.
func TestReplace_OfALongTextTheBeginningIsSearched(t *testing.T) {
	s := secret.New("swordfish-9")
	text := "swordfish-9 " + strings.Repeat("&", mebibyte)
	var got string
	result := testing.Benchmark(func(b *testing.B) {
		for range b.N {
			got = s.Replace(text)
		}
	})
	require.Less(t, result.AllocedBytesPerOp(), int64(32*mebibyte))
	require.Less(t, len(got), shown+100)
	require.True(t, strings.HasPrefix(got, "[secret] &&&"), got[:20])
	require.True(t, strings.HasSuffix(got, "&…"))
	require.Len(t, secret.Set{}.Replace(text), shown+len("…"))
}

// Where a text is cut, no part of a secret is left: of none of its forms.
func TestReplace_TheEndOfWhatIsShownHasNoPartOfASecret(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a secret of many words; ", 200) // twice what is searched behind the end
	for _, value := range []string{"swordfish-9", long} {
		s := secret.New(value)
		for _, name := range []string{"as it is", "JSON in ASCII", "HTML by number", "all of it in a URL"} {
			spelled := forms[name](value)
			twice := forms["JSON in ASCII"](spelled)
			for _, form := range []string{spelled, twice} {
				for _, before := range []int{0, 1, 5, 7, 33, 100} {
					got := s.Replace(strings.Repeat(".", shown-before) + form + strings.Repeat(".", mebibyte))
					require.Empty(t, strings.Trim(strings.ReplaceAll(got, secret.Mask, ""), ".…"), "%s, %d bytes before the end", name, before)
				}
			}
		}
	}
}

func TestReplace_CutsALongTextAtACharacter(t *testing.T) {
	t.Parallel()
	for _, s := range []secret.Set{{}, secret.New("swordfish-9")} {
		require.Equal(t, "."+strings.Repeat("é", shown/2-1)+"…", s.Replace("."+strings.Repeat("é", shown)))
		require.Len(t, s.Replace(strings.Repeat("\x80", mebibyte)), shown-4+len("…"))
		whole := strings.Repeat("é", shown/2)
		require.Equal(t, whole, s.Replace(whole))
	}
}
