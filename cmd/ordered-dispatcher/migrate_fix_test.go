package main_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func TestDoctor_MigrateUpAsItIsPrintedMakesTheTablesWhereTheyBelong(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	address := pgtest.URL(t)
	execute(t, pool, "CREATE SCHEMA od; CREATE TABLE public.bookings (id bigserial PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp()); CREATE UNIQUE INDEX ON public.bookings (created_at, id)")
	config := file(t, "schema: od\nprocesses:\n  a: {source: {table: public.bookings}, sink: {stdout: {}}, start: beginning}\n")
	_, stdout, _ := do(t, address, "doctor", "-c", config)
	fix := regexp.MustCompile(`fix: ordered-dispatcher (migrate up .*)`).FindStringSubmatch(stdout)
	require.NotNil(t, fix, stdout)
	code, _, stderr := do(t, address, strings.Fields(fix[1])...)
	require.Zero(t, code, stderr)
	code, stdout, _ = do(t, address, "doctor", "-c", config)
	require.Zero(t, code, stdout)
}
