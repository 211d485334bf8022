package console

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
)

func TestRefusal_AsksForTheWordThatAllowsIt(t *testing.T) {
	t.Parallel()
	for kind, want := range map[desk.Kind]string{desk.KindOldPrimary: "fenced", desk.KindPruned: "pruned", desk.KindRefused: "", desk.KindAway: ""} {
		f := refusal(&desk.Error{Kind: kind}, desk.Order{Verb: desk.Seek, To: &desk.Target{Kind: desk.ToStart}}, room{}, "").Form
		if want == "" {
			require.Nil(t, f, kind)
			continue
		}
		require.Len(t, f.Checks, 1, kind)
		require.Equal(t, want, f.Checks[0].Name)
	}
}
