package sql

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

func TestDeliverTx_AStatementThatTouchesNoRowFailsForGoodWhereOneIsRequired(t *testing.T) {
	t.Parallel()
	const table = `CREATE TABLE public.account (id bigint PRIMARY KEY, balance bigint NOT NULL DEFAULT 0)`
	for name, c := range map[string]struct {
		statements []string
		passes     bool
	}{
		"an UPDATE":                      {[]string{`UPDATE public.account SET balance = 1 WHERE id = @id::bigint`}, false},
		"a DELETE":                       {[]string{`DELETE FROM public.account WHERE id = @id::bigint`}, false},
		"an INSERT into what is there":   {[]string{`INSERT INTO public.account VALUES (1)`, `INSERT INTO public.account SELECT 1 WHERE @id::text <> '' ON CONFLICT DO NOTHING`}, false},
		"the second statement":           {[]string{`INSERT INTO public.account VALUES (@id::bigint)`, `UPDATE public.account SET balance = 1 WHERE id = 2`}, false},
		"the first statement":            {[]string{`UPDATE public.account SET balance = 1 WHERE id = 2`, `INSERT INTO public.account VALUES (@id::bigint)`}, false},
		"an UPDATE behind WITH":          {[]string{`WITH wanted AS (SELECT @id::bigint AS id) UPDATE public.account SET balance = 1 FROM wanted WHERE account.id = wanted.id`}, false},
		"a SELECT of no row":             {[]string{`SELECT 1 FROM public.account WHERE id = @id::bigint`}, false},
		"an INSERT":                      {[]string{`INSERT INTO public.account VALUES (@id::bigint)`}, true},
		"a SELECT that calls a function": {[]string{`SELECT pg_catalog.length(@id)`}, true},
		"a statement without a count":    {[]string{`DO 'BEGIN END'`, `INSERT INTO public.account VALUES (@id::bigint)`}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Database(t)
			pgtest.Exec(t, pool, table)
			s, err := New(Config{Statements: c.statements, RequireRow: true})
			require.NoError(t, err)
			err = deliver(t.Context(), pool, s, delivery())
			if c.passes {
				require.NoError(t, err)
				return
			}
			require.True(t, processor.IsPermanent(err), err)
			require.ErrorContains(t, err, "it touched no row, and the sink has `rows: at_least 1`")
			require.Equal(t, []string{"0"}, query(t, pool, "SELECT count(*)::text FROM public.account"))
			require.NoError(t, deliver(t.Context(), pool, newSink(t, c.statements...), delivery()), "without it any count will do")
		})
	}
}
