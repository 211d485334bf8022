package screen_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
)

func TestHistory_ShowsWhoWasLoggedInBesideTheActor(t *testing.T) {
	t.Parallel()
	events := []operator.Event{{Action: "skip", Actor: "claims to be alice", User: "mallory", Reason: "r"}}
	var table, document strings.Builder
	require.NoError(t, page(&table).History(events))
	require.Regexp(t, `ACTOR +USER +ACTION[\s\S]+claims to be alice +mallory +skip`, table.String())
	require.NoError(t, daemon.PrintHistoryJSON(&document, events))
	require.Contains(t, document.String(), `"actor":"claims to be alice","db_user":"mallory"`)
}
