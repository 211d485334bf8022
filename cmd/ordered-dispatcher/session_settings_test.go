package main_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// otherSettings change how the server prints and reads values, and what it says.
var otherSettings = []string{
	"DateStyle = 'SQL, DMY'", "TimeZone = 'Europe/Amsterdam'", "IntervalStyle = 'sql_standard'", "bytea_output = 'escape'",
	"extra_float_digits = -15", "standard_conforming_strings = off", "xmlbinary = hex", "lc_messages = 'C'",
}

// TestCommands_TakeNoNoticeOfTheSettingsOfARole: with a DateStyle of its own, dead letters
// could not be listed; with a bytea_output, they could not be replayed.
func TestCommands_TakeNoNoticeOfTheSettingsOfARole(t *testing.T) {
	t.Parallel()
	address, config, pool, takes, taken := refused(t, 3)
	for _, setting := range otherSettings {
		execute(t, pool, fmt.Sprintf("DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET ', current_database()) || $s$%s$s$; END $$", setting))
	}
	require.Regexp(t, `1 +a +1 .* 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ +1 +permanent +open`, must(t, address, "dead-letter", "list"))
	require.Contains(t, must(t, address, "dead-letter", "list", "--json"), `"record_id":"1"`)
	require.Contains(t, must(t, address, "dead-letter", "show", "1", "--payload"), `{"id":1,`)
	must(t, address, "dead-letter", "discard", "2", "--reason=tests")
	all := "123 10004 10005 10006"
	takes.Store(&all)
	must(t, address, "dead-letter", "replay", "1", "-c", config)
	require.Equal(t, []string{"1"}, taken())
	require.Contains(t, must(t, address, "dead-letter", "list", "--all"), "discarded")

	for _, args := range [][]string{
		{"migrate", "status"}, {"migrate", "up"}, {"check", "-c", config}, {"status"}, {"status", "--json"}, {"history", "a"},
		{"pause", "a", "--reason=tests"}, {"resume", "a"}, {"seek", "a", "-c", config, "--to-time=2020-01-01T00:00:00Z", "--reason=tests"},
		{"run", "--drain", "-c", config}, {"status", "-c", config}, {"doctor", "-c", config}, {"partitions", "-c", config},
	} {
		must(t, address, args...)
	}
	require.Len(t, taken(), 4, "all came once more")
}
