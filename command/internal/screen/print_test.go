package screen_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

func TestPrint_NothingOfARecordReachesATerminalUnseen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hostile := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("\x1b\r\x07\x7f\u0085\u009b\u202e\u2066\u200f\u2028")))).Draw(t, "text")
		var b bytes.Buffer
		require.NoError(t, page(&b).Outcome(daemon.Outcome{Text: hostile, Problem: hostile}))
		require.NoError(t, page(&b).Findings([]daemon.Finding{{Process: hostile, Problem: hostile, Fix: hostile}}))
		require.NoError(t, page(&b).Status([]daemon.Status{{Row: cursor.Row{Process: hostile, Holder: hostile, Position: cursor.Position(hostile)}, Problem: hostile}}, nil))
		require.NoError(t, page(&b).History([]operator.Event{{Process: hostile, Actor: hostile, Action: hostile, Reason: hostile, From: cursor.Position(hostile)}}))
		for _, r := range b.String() {
			if r != '\n' && r != '\t' {
				require.False(t, unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp), "%q", r)
			}
		}
	})
}

// A record may have an id of any length, and its position has it too.
func TestPrint_ALongIDIsCutForPeopleAndWholeForPrograms(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("i", 200_000)
	failure := &cursor.Failure{Position: cursor.Position(long), RecordID: long, Error: "no", Attempts: 1}
	letter := cursor.DeadLetter{RecordID: long, Position: cursor.Position(long)}
	event := operator.Event{Action: "dead_letter", From: cursor.Position(long), To: cursor.Position(long), Detail: json.RawMessage(`{"record_id":"` + long + `"}`)}
	status := daemon.Status{Row: cursor.Row{Process: "a", State: cursor.Halted, Position: cursor.Position(long), Failure: failure}}
	var people, program bytes.Buffer
	require.NoError(t, page(&people).DeadLetters([]cursor.DeadLetter{letter, {}}))
	require.NoError(t, page(&people).Status([]daemon.Status{status}, nil))
	require.NoError(t, page(&people).History([]operator.Event{event}))
	require.NoError(t, page(&people).Outcome(daemon.Outcome{Records: &table.Span{Total: 1, Records: []processor.Record{{ID: long, Position: cursor.Position(long)}}}}))
	require.Less(t, people.Len(), 10_000)
	require.Contains(t, people.String(), "(200000 bytes, sha256 ")

	require.NoError(t, daemon.PrintDeadLettersJSON(&program, []cursor.DeadLetter{letter}))
	require.Equal(t, 2, strings.Count(program.String(), `"`+long+`"`))
}
