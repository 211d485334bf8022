package sql_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// The target quotes the statement in what it refuses: to grants, to doctor, to a worker.
func TestRemote_KeepsSecretsOfTheStatement(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, func(c *sql.Config) {
		c.Statements, c.Secrets = []string{"SELECT 'TOPSECRETkey'::uuid"}, []string{"TOPSECRETkey"}
	})
	_, err := s.Needs(t.Context())
	require.ErrorContains(t, err, "invalid input syntax")
	require.NotContains(t, err.Error(), "TOPSECRETkey")
	_, err = s.Lacking(t.Context())
	require.ErrorContains(t, err, "invalid input syntax")
	require.NotContains(t, err.Error(), "TOPSECRETkey")
	require.NotContains(t, fmt.Sprint(s.Check(t.Context())), "TOPSECRETkey")
	_, err = s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "invalid input syntax")
	require.NotContains(t, err.Error(), "TOPSECRETkey")
}

// An operator reads what the target calls its objects, in findings of doctor and in grants.
func TestNeedsElsewhere_KeepsASecretThatTheTargetHasForAName(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	pgtest.Exec(t, r.pool, `CREATE DOMAIN public."TOPSECRETkey" AS text;
		CREATE FUNCTION public.f(public."TOPSECRETkey") RETURNS int LANGUAGE sql AS 'SELECT 1';
		REVOKE EXECUTE ON FUNCTION public.f FROM PUBLIC`)
	role := pgtest.Role(t, r.pool, "sink", "LOGIN PASSWORD 'x'")
	pgtest.Exec(t, r.pool, "GRANT ALL ON ALL TABLES IN SCHEMA public TO "+role)
	pgtest.Exec(t, r.pool, "GRANT USAGE ON SCHEMA public TO "+role)
	c := sql.Config{URL: pgtest.As(t, r.address, role, "x"), Statements: []string{`SELECT public.f(@id::text)`}, Secrets: []string{"TOPSECRETkey"}}
	text, err := c.NeedsElsewhere(t.Context())
	require.NoError(t, err)
	require.Contains(t, text, `GRANT EXECUTE ON FUNCTION "public"."f"("public"."`)
	require.NotContains(t, text, "TOPSECRETkey")
	findings, err := c.Check(t.Context(), "p", sinks.Around{})
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(findings), `lacks EXECUTE on "public"."f"("public"."`)
	require.NotContains(t, fmt.Sprint(findings), "TOPSECRETkey")
}
