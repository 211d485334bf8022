package daemon_test

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// remoteProcess delivers to the database of an address.
func remoteProcess(address string) string {
	return fmt.Sprintf("  a:\n    source: {table: public.bookings}\n    poll: 20ms\n    checkpoint: 5\n    sink:\n      sql:\n        url: %q\n"+
		"        schema: kept\n        statement: \"INSERT INTO model.applied (id) VALUES (@id)\"\n", address)
}

func TestRemoteSQL_DoctorsFixesAndGrantsAreAllThatTheTargetNeeds(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"doctor", "grants"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 12)
			server := pgtest.Server(t, nil)
			target := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
			exec(t, target, "CREATE SCHEMA model; CREATE TABLE model.applied (n bigserial, id bigint); CREATE SCHEMA kept; CREATE ROLE sink LOGIN PASSWORD 'secret-password'; GRANT USAGE ON SCHEMA model TO sink")
			u, err := url.Parse(server.URL())
			require.NoError(t, err)
			u.User = url.UserPassword("sink", "secret-password")
			config := configure(t, pgtest.URL(t), remoteProcess(u.String()))

			if by == "doctor" {
				for rounds := 0; ; rounds++ {
					findings := doctor(t, config)
					if len(findings) == 0 {
						require.Positive(t, rounds)
						break
					}
					require.Less(t, rounds, 10, findings)
					for _, f := range findings {
						require.NotContains(t, f.Problem+f.Fix, "secret-password")
						exec(t, target, f.Fix)
					}
				}
			} else {
				var text bytes.Buffer
				require.NoError(t, daemon.Grants(t.Context(), &text, daemon.GrantsConfig{Config: config, Role: "worker"}))
				require.NotContains(t, text.String(), "secret-password")
				_, sql, ok := strings.Cut(text.String(), "-- To be run in another place")
				require.True(t, ok, text.String())
				_, sql, _ = strings.Cut(sql, "\n")
				exec(t, target, strings.ReplaceAll("\n"+sql, "\n-- ", "\n"))
			}
			require.NoError(t, drain(t, config))
			var ids string
			require.NoError(t, target.QueryRow(t.Context(), "SELECT string_agg(id::text, ' ' ORDER BY n) FROM model.applied").Scan(&ids))
			require.Equal(t, "1 2 3 4 5 6 7 8 9 10 11 12", ids)
			require.Empty(t, doctor(t, config))
		})
	}
}

func TestRemoteSQL_ConfigurationSaysWhatIsWrongAndNoSecret(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{statement: SELECT 1, url: 'postgres://u:secret password@h:x/d'}":      "url cannot be read",
		"{statement: SELECT 1, schema: s}":                                      "url",
		"{statement: 'SELECT @idd', url: 'postgres://u:${SECRET}@h/d'}":         "sql.statement: configure sql sink: line 1, column 8: there is no argument @idd",
		"{statement: SELECT 1, url: 'postgres://u:secret@h/d', timeout: 2h}":    "timeout",
		"{statement: SELECT 1, url: 'postgres://u:secret@h/d', tables: public}": "tables",
	} {
		_, err := daemon.Parse("f.yaml", []byte("processes: {a: {source: {table: t}, sink: {sql: "+text+"}}}"), environment(map[string]string{"SECRET": "secret"}))
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret")
	}
}
