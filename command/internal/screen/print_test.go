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
		_, err := page(&b).Found([]daemon.Search{{Process: hostile, Problem: hostile, Found: []daemon.Found{{
			Process: hostile, DedupKey: hostile, Standing: daemon.StandingFailing, Failure: &cursor.Failure{Error: hostile},
			Record: table.Shown{Record: processor.Record{ID: hostile, Key: hostile, Type: hostile, Payload: []byte(hostile), Position: cursor.Position(hostile)}},
		}}}})
		require.NoError(t, err)
		require.NoError(t, page(&b).Tailed(daemon.Tailed{What: hostile, Failure: &cursor.Failure{RecordID: hostile, Error: hostile}}))
		require.NoError(t, page(&b).Tried(hostile, daemon.Tried{Delivery: processor.Delivery{Record: processor.Record{Table: hostile, ID: hostile}}}))
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

// What show, tail and send-test print fits into the page, and further lines stand below the first words.
func TestPrint_FoldsWhereARecordIsAndWhatHappens(t *testing.T) {
	t.Parallel()
	words := strings.TrimSpace(strings.Repeat("full ", 20))
	failing := daemon.Found{
		Process: "a", Record: table.Shown{Record: processor.Record{ID: "3", Payload: []byte(words)}, Bytes: 500}, Standing: daemon.StandingFailing,
		Failure: &cursor.Failure{Attempts: 1, Error: words}, Halts: []operator.Event{{Reason: words}, {Reason: words}},
	}
	var b bytes.Buffer
	p := page(&b)
	p.Width = 40
	found, err := p.Found([]daemon.Search{{Process: "a", Found: []daemon.Found{failing}, More: true}})
	require.NoError(t, err)
	require.True(t, found)
	require.NoError(t, p.Tailed(daemon.Tailed{What: "failed", Failure: &cursor.Failure{RecordID: "3", Attempts: 2, Error: words}}))
	require.NoError(t, p.Tried("a", daemon.Tried{New: true}))
	for _, line := range strings.Split(b.String(), "\n") {
		if !strings.Contains(line, "payload") && !strings.Contains(line, "`") {
			require.LessOrEqual(t, len(line), 40, line)
		}
	}
	require.Contains(t, b.String(), "next:\n  `ordered-dispatcher retry a`,")
	require.Contains(t, b.String(), "  halted      0001")
	require.Contains(t, b.String(), "\n              full full", "below the first word")
	require.Contains(t, b.String(), "  payload     "+words+"\n", "in one line")
	require.Contains(t, b.String(), "these are the first 99\n              of 500 bytes")
	require.Contains(t, b.String(), "failed     record 3,\n                        attempt 2: full\n")
}
