package daemon_test

import (
	"bytes"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

func TestPrint_NothingOfARecordReachesATerminalUnseen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hostile := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("\x1b\r\x07\x7f\u0085\u009b\u202e\u2066\u200f\u2028")))).Draw(t, "text")
		var b bytes.Buffer
		require.NoError(t, daemon.PrintOutcome(&b, daemon.Outcome{Text: hostile, Problem: hostile}))
		require.NoError(t, daemon.PrintFindings(&b, []daemon.Finding{{Process: hostile, Problem: hostile, Fix: hostile}}))
		require.NoError(t, daemon.PrintStatus(&b, []daemon.Status{{Row: cursor.Row{Process: hostile, Holder: hostile, Position: cursor.Position(hostile)}, Problem: hostile}}))
		require.NoError(t, daemon.PrintHistory(&b, []cursor.Event{{Process: hostile, Actor: hostile, Action: hostile, Reason: hostile, From: cursor.Position(hostile)}}))
		for _, r := range b.String() {
			if r != '\n' && r != '\t' {
				require.False(t, unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp), "%q", r)
			}
		}
	})
}
