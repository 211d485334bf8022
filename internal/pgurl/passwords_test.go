package pgurl_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgurl"
)

// Not parallel: it sets variables.
func TestCheckPasswords_NoHostGetsThePasswordOfAnother(t *testing.T) {
	const refused, taken = true, false
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("PGPASSFILE", filepath.Join(dir, ".pgpass"))
	for file, all := range map[string]map[string]bool{
		"a:5432:d:u:hers\n": {
			"postgres://u@a,b/d": refused, "postgres://u@b,a/d": refused, "postgresql://u@a:5432,a:5433/d?sslmode=disable": refused,
			"host=a,b user=u dbname=d": refused, "postgres://u@a,/d?": refused, "postgres://u@/d?host=a,b&": refused,
			"postgres://u:p@a,b/d": taken, "postgres://u:p?q@a,b/d": taken, "host=a,b user=u dbname=d password='a b'": taken,
			"postgres://u@a/d": taken, "postgres://u@b,c/d": taken, "postgres://v@a,b/d": taken, "postgres://u@a,a/d": taken,
		},
		"a:5432:d:u:hers\nb:*:*:*:his\n":                    {"postgres://u@a,b/d": refused, "host=a,b user=u dbname=d": refused},
		"a:5432:d:u:hers\nb:*:*:*:hers\n":                   {"postgres://u@a,b/d": taken, "host=a,b user=u dbname=d": taken},
		"*:*:d:u:ours\n":                                    {"postgres://u@a,b/d": taken, "postgres://u@[::1],b:7/d": taken, "host=a,/tmp user=u dbname=d": taken},
		"localhost:*:d:u:ours\n127.0.0.1:*:d:u:ours\n#:x\n": {"postgres://u@127.0.0.1,%2Ftmp/d": taken, "host=127.0.0.1,/tmp user=u dbname=d": taken},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".pgpass"), []byte(file), 0o600))
		for connection, want := range all {
			c, err := pgx.ParseConfig(connection)
			require.NoError(t, err, connection)
			_, alone := pgurl.ParseAlone(connection)
			for _, err := range []error{pgurl.CheckPasswords(connection, c), alone} {
				if want == taken {
					require.NoError(t, err, "%s: %s", file, connection)
					continue
				}
				require.ErrorContains(t, err, "give each host a line with the same password", "%s: %s", file, connection)
				require.NotContains(t, err.Error(), "hers")
			}
		}
	}
}

func TestCheckPasswords_APasswordOfTheEnvironmentIsForAllHosts(t *testing.T) {
	t.Setenv("PGPASSWORD", "ours")
	t.Setenv("PGHOST", "a,b")
	c, err := pgx.ParseConfig("postgres://u@/d")
	require.NoError(t, err)
	require.Len(t, c.Fallbacks, 3, "with TLS and without")
	require.NoError(t, pgurl.CheckPasswords("postgres://u@/d", c))
}
