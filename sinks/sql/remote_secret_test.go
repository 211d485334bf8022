package sql_test

import (
	"fmt"
	"regexp"
	"strings"
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

// The grants of many tables are longer than what is kept of an error. Each command is whole, and has no secret.
func TestNeedsElsewhere_ALongListOfGrantsIsWhole(t *testing.T) {
	t.Parallel()
	const tables = 60
	r := newRemote(t)
	column := strings.Repeat("c", 60)
	var columns, statements []string
	for i := range 10 {
		columns = append(columns, fmt.Sprintf("%s%d", column, i))
	}
	for i := range tables {
		pgtest.Exec(t, r.pool, fmt.Sprintf("CREATE TABLE public.t%d (%s text)", i, strings.Join(columns, " text, ")))
		statements = append(statements, fmt.Sprintf("INSERT INTO public.t%d (%s) VALUES (@id%s)", i, strings.Join(columns, ", "), strings.Repeat(", ''", len(columns)-1)))
	}
	pgtest.Exec(t, r.pool, `CREATE TABLE public."z TOPSECRETkey" (id text)`)
	statements = append(statements, `INSERT INTO public."z TOPSECRETkey" VALUES (@id)`)
	text, err := sql.Config{URL: r.address, Statements: statements, Secrets: []string{"TOPSECRETkey"}}.NeedsElsewhere(t.Context())
	require.NoError(t, err)
	require.Greater(t, len(text), 32<<10)
	require.NotContains(t, text, "…")
	require.NotContains(t, text, "TOPSECRETkey")
	for i := range tables {
		require.Regexp(t, fmt.Sprintf(`(?m)^GRANT INSERT .* ON "public"."t%d" TO .*;$`, i), text)
	}
}

// One command alone may be longer than what is kept of an error: a cut would take its last quote and the end of its line.
func TestNeedsElsewhere_TheGrantOfAWideTableIsWhole(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	var columns, values []string
	for i := range 700 {
		columns, values = append(columns, fmt.Sprintf("%s%d", strings.Repeat("c", 50), i)), append(values, "''")
	}
	pgtest.Exec(t, r.pool, fmt.Sprintf(`CREATE TABLE public.wide (%s text)`, strings.Join(columns, " text, ")))
	role := pgtest.Role(t, r.pool, "sink", "LOGIN PASSWORD 'x'")
	pgtest.Exec(t, r.pool, "GRANT ALL ON public.ordered_dispatcher_applied, public.ordered_dispatcher_refused TO "+role)
	pgtest.Exec(t, r.pool, "GRANT USAGE ON SCHEMA public TO "+role)
	c := sql.Config{
		URL: pgtest.As(t, r.address, role, "x"), Secrets: []string{"TOPSECRETkey"},
		Statements: []string{fmt.Sprintf("INSERT INTO public.wide (%s) VALUES (%s)", strings.Join(columns, ", "), strings.Join(values, ", "))},
	}
	whole := regexp.MustCompile(`(?m)^GRANT INSERT \(("c+[0-9]+"(, )?){700}\) ON "public"\."wide" TO "` + role + `"(;|$)`)
	text, err := c.NeedsElsewhere(t.Context())
	require.NoError(t, err)
	require.Regexp(t, whole, text)
	findings, err := c.Check(t.Context(), "p", sinks.Around{})
	require.NoError(t, err)
	require.Len(t, findings, 1)
	require.Regexp(t, whole, findings[0].Fix)
}
