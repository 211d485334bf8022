package console

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

func TestValueOf_ComesBackAsTheName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "a", `a "b" <c>`, `"a"`, `"a\u001bb"`, `a\u000ab`, "null", "a\nb", "a\x1b[2Jb", "a\u202eb", "a\u0085b"} {
		value := valueOf(name)
		require.False(t, strings.ContainsFunc(value, visible.Hidden), "%q", value)
		if name != `"a\u001bb"` { // it is what is sent for another name
			require.Equal(t, name, nameOf(value), "%q", value)
		}
	}
}
