package pgtest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHostile_EveryUnqualifiedNameIsATrap(t *testing.T) {
	t.Parallel()
	sprung := Hostile(t)
	for sql, trap := range map[string]string{
		`SELECT 2::bigint * 3::bigint`:                                      "operator *",
		`SELECT extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000`: "operator *",
		`SELECT 'a' IN ('b', 'c')`:                                          "operator =",
		`SELECT has_table_privilege('pg_catalog.pg_class', 'SELECT')`:       "has_table_privilege",
		`SELECT count(*) FROM pg_catalog.pg_am`:                             "count",
		`SELECT 'x'::text`:                                                  "type",
		`SELECT FROM pg_locks`:                                              "relation",
		`SELECT FROM pg_catalog.unnest('{a}'::pg_catalog.text[]) u GROUP BY u HAVING max(1::bigint) > 0`: "max",
		`SELECT set_config('work_mem', '1MB', true)`:                                                     "set_config",
	} {
		conn := Pool(t, URL(t), PoolConfig{SearchPath: "public, pg_catalog", MaxConns: 1, ApplicationName: "victim"})
		Exec(t, conn, sql)
		conn.Close()
		require.Contains(t, concat(sprung()), trap, sql)
	}
	require.Empty(t, sprung())
}

func TestHostile_NamesOfPgCatalogAreNone(t *testing.T) {
	t.Parallel()
	sprung := Hostile(t)
	conn := Pool(t, URL(t), PoolConfig{SearchPath: "public, pg_catalog", MaxConns: 1, ApplicationName: "victim"})
	Exec(t, conn, `SELECT pg_catalog.count(*), 2 OPERATOR(pg_catalog.*) 3, 'x'::pg_catalog.text FROM pg_catalog.pg_locks`)
	conn.Close()
	require.Empty(t, sprung())
}

func concat(all []string) (text string) {
	for _, one := range all {
		text += one + "\n"
	}
	return text
}
