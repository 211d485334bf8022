package daemon_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// A record may have an id of any length, and its position has it too.
func TestPrint_ALongIDIsCutForPeopleAndWholeForPrograms(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("i", 200_000)
	failure := &cursor.Failure{Position: cursor.Position(long), RecordID: long, Error: "no", Attempts: 1}
	letter := cursor.DeadLetter{RecordID: long, Position: cursor.Position(long)}
	event := cursor.Event{Action: "dead_letter", From: cursor.Position(long), To: cursor.Position(long), Detail: json.RawMessage(`{"record_id":"` + long + `"}`)}
	status := daemon.Status{Row: cursor.Row{Process: "a", State: cursor.Halted, Position: cursor.Position(long), Failure: failure}}
	var people, program bytes.Buffer
	require.NoError(t, daemon.PrintDeadLetters(&people, []cursor.DeadLetter{letter, {}}))
	require.NoError(t, daemon.PrintStatus(&people, []daemon.Status{status}))
	require.NoError(t, daemon.PrintHistory(&people, []cursor.Event{event}))
	require.NoError(t, daemon.PrintOutcome(&people, daemon.Outcome{Records: &table.Span{Total: 1, Records: []processor.Record{{ID: long, Position: cursor.Position(long)}}}}))
	require.Less(t, people.Len(), 10_000)
	require.Contains(t, people.String(), "(200000 bytes, sha256 ")

	require.NoError(t, daemon.PrintDeadLettersJSON(&program, []cursor.DeadLetter{letter}))
	require.Equal(t, 2, strings.Count(program.String(), `"`+long+`"`))
}
