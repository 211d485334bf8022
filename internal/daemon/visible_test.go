package daemon_test

import (
	"bytes"
	osexec "os/exec"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon"
)

func TestPrint_NothingOfARecordReachesATerminalUnseen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hostile := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("\x1b\r\x07\x7f\u0085\u009b\u202e\u2066\u200f\u2028")))).Draw(t, "text")
		var b bytes.Buffer
		require.NoError(t, daemon.PrintOutcome(&b, daemon.Outcome{Text: hostile, Problem: hostile}))
		require.NoError(t, daemon.PrintFindings(&b, []daemon.Finding{{Process: hostile, Problem: hostile, Cure: hostile}}))
		require.NoError(t, daemon.PrintStatus(&b, []daemon.Status{{Row: cursor.Row{Process: hostile, Holder: hostile, Position: cursor.Position(hostile)}, Problem: hostile}}))
		require.NoError(t, daemon.PrintHistory(&b, []cursor.Event{{Process: hostile, Actor: hostile, Action: hostile, Reason: hostile, From: cursor.Position(hostile)}}))
		for _, r := range b.String() {
			if r != '\n' && r != '\t' {
				require.False(t, unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp), "%q", r)
			}
		}
	})
}

func TestShell_AWordStaysOneWord(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"sms", "a b", "$(touch x)", "`id`", "a'b", "; rm -rf .", "-x", "", "*", "a\\b", "a\"b"} {
		out, err := osexec.Command("sh", "-c", "printf %s "+daemon.Shell(word)).Output()
		require.NoError(t, err, word)
		require.Equal(t, word, string(out))
	}
}

func TestVisible_EscapesWhatMovesATerminal(t *testing.T) {
	t.Parallel()
	require.Equal(t, `a\u001b[2J\u000d\u009b\u202eb é`, daemon.Visible("a\x1b[2J\r\u009b\u202eb é"))
	require.Equal(t, "two\n\tlines", daemon.Visible("two\n\tlines"))
}
