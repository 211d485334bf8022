package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

func TestRemote_AStatementThatTouchesNoRowFailsForGoodWhereOneIsRequired(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.exec(t, `CREATE TABLE public.account AS SELECT n AS id, 0 AS balance FROM generate_series(1, 9) n WHERE n <> 5`)
	s := r.sink(t, func(c *sql.Config) {
		c.Statements = append(c.Statements, `UPDATE public.account SET balance = balance + 1 WHERE id = @id::int`)
		c.RequireRow = true
	})
	all := sinktest.Deliveries(1, 9)
	n, err := sinktest.Deliver(t, s, all)
	require.Equal(t, 4, n)
	require.True(t, processor.IsPermanent(err), err)
	require.ErrorContains(t, err, `apply record "5": statement 2 of 2: it touched no row`)
	require.Equal(t, "1 2 3 4", r.ids(t))
	require.Equal(t, "4/3 refused 5", r.noted(t))

	r.exec(t, `INSERT INTO public.account VALUES (5, 0)`) // and an operator's retry
	sinktest.Delivered(t, s, all[4:])
	require.Equal(t, "1 2 3 4 5 6 7 8 9", r.ids(t))
	sinktest.Delivered(t, s, all[4:]) // a worker died before its cursor advanced: no statement runs, and none is asked for rows
	require.Equal(t, "9", r.text(t, `SELECT sum(balance)::text FROM public.account`))
}

func TestRemote_AnUpdateThatFindsNoRowCountsAsAppliedUnlessOneIsRequired(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, func(c *sql.Config) { c.Statements = []string{`UPDATE public.received SET type = 'x' WHERE id = @id`} })
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 3))
	require.Equal(t, "3/3", r.noted(t))
}
