package readmodel_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/payload"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/readmodel"
)

var alice = cursor.Decision{Actor: "alice", Reason: "version 2", Timeout: patience}

func halted(row cursor.Row) bool { return row.State == cursor.Halted }

func applied(n int64) func(cursor.Row) bool {
	return func(row cursor.Row) bool { return row.Sequence >= n }
}

func TestModel_AppliesEachTypeByItsHandler(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	closed := readmodel.On("account.closed", func(ctx context.Context, tx pgx.Tx, c credited, _ processor.Delivery) error {
		_, err := tx.Exec(ctx, "DELETE FROM v1.balance WHERE account = $1", c.Account)
		return err
	})
	w.run(t, "v1", model(t, credit("v1"), closed, readmodel.Ignore("account.renamed")))
	w.add(t, "account.credited", credited{"a", 5}, credited{"b", 7})
	w.add(t, "account.renamed", credited{"b", 0})
	w.add(t, "account.closed", credited{"a", 0})
	w.add(t, "account.credited", credited{"b", 1})
	w.waitFor(t, "v1", applied(5))
	require.EqualValues(t, 0, w.balance(t, "v1.balance", "a"))
	require.EqualValues(t, 8, w.balance(t, "v1.balance", "b"))
}

func TestModel_ATypeWithoutAHandlerHaltsEvenWherePoisonIsPutAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(t, "v1", model(t, credit("v1")))
	w.add(t, "account.credited", credited{"a", 5})
	w.add(t, "account.frozen", credited{"a", 0})
	row := w.waitFor(t, "v1", halted)
	require.Equal(t, cursor.ClassRefused, row.Failure.Class, "the record is not at fault")
	require.Contains(t, row.Failure.Error, `no handler for records of type "account.frozen": deploy a version that has one`)
	require.EqualValues(t, 5, w.balance(t, "v1.balance", "a"))
}

// A reference is JSON, and would be applied as an empty value.
func TestModel_AClaimCheckThatIsNotResolvedHaltsAndIsNotApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := claim.Dir(t.TempDir())
	require.NoError(t, store.Create())
	box, err := outbox.New(outbox.Config{ClaimAbove: 10, Claims: store})
	require.NoError(t, err)
	require.NoError(t, pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		return box.Add(t.Context(), tx, outbox.Record{Type: "account.credited", Payload: credited{"a", 5}})
	}))
	stop := w.run(t, "v1", model(t, credit("v1")))
	row := w.waitFor(t, "v1", func(row cursor.Row) bool { return halted(row) || row.Sequence > 0 })
	require.EqualValues(t, 0, pgtest.Value[int](t, w.pool, "SELECT count(*) FROM v1.balance"), "nothing is applied")
	require.Equal(t, cursor.ClassRefused, row.Failure.Class, "the record is not at fault")
	require.Contains(t, row.Failure.Error, `apply a record of type "account.credited": its payload is a claim check`)
	stop()

	_, err = operator.New(w.store).Retry(t.Context(), "balances@v1", alice)
	require.NoError(t, err)
	w.run(t, "v1", model(t, credit("v1")), func(c *processor.Config) { c.Prepare = payload.Resolve(store, 1<<20) })
	w.waitFor(t, "v1", applied(1))
	require.EqualValues(t, 5, w.balance(t, "v1.balance", "a"))
}

func TestModel_OtherwiseTakesTheRest(t *testing.T) {
	t.Parallel()
	var got []string
	m := model(t, readmodel.Ignore("a"), readmodel.Otherwise(func(_ context.Context, _ pgx.Tx, d processor.Delivery) error {
		got = append(got, d.Type)
		return nil
	}))
	for _, recordType := range []string{"a", "b", ""} {
		require.NoError(t, m.DeliverTx(t.Context(), nil, processor.Delivery{Record: processor.Record{Type: recordType}}))
	}
	require.Equal(t, []string{"b", ""}, got)
	require.NoError(t, model(t, readmodel.IgnoreOthers()).DeliverTx(t.Context(), nil, processor.Delivery{}))
	require.ErrorContains(t, model(t, readmodel.Ignore("a")).DeliverTx(t.Context(), nil, processor.Delivery{}), "no handler for records without a type")
}

// Several records share a transaction. The ones before a poison record are committed, and the halt names that one.
func TestModel_APoisonRecordAmongOthersIsNamedAndKeepsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(t, "account.credited", credited{"a", 1}, credited{"a", 2}, map[string]any{"account": "secret-holder", "cents": "secret-amount"}, credited{"a", 4})
	w.run(t, "v1", model(t, credit("v1")))
	row := w.waitFor(t, "v1", halted)
	require.Equal(t, "3", row.Failure.RecordID)
	require.Equal(t, cursor.ClassPermanent, row.Failure.Class)
	require.Contains(t, row.Failure.Error, `decode the payload of a record of type "account.credited" as readmodel_test.credited`)
	require.NotContains(t, row.Failure.Error, "secret")
	require.EqualValues(t, 3, w.balance(t, "v1.balance", "a"))
}

// A handler may have written before it fails, in the transaction of the records before it. Only what it wrote is undone.
func TestModel_WhatAPoisonRecordHadWrittenIsUndone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(t, "account.credited", credited{"a", 1})
	w.add(t, "account.closed", credited{"a", 0})
	w.add(t, "account.credited", credited{"a", 2})
	closed := readmodel.On("account.closed", func(ctx context.Context, tx pgx.Tx, c credited, _ processor.Delivery) error {
		_, err := tx.Exec(ctx, "UPDATE v1.balance SET cents = -1 WHERE account = $1", c.Account)
		return errors.Join(err, processor.Permanent(errors.New("it has money")))
	})
	w.run(t, "v1", model(t, credit("v1"), closed))
	row := w.waitFor(t, "v1", halted)
	require.Equal(t, "2", row.Failure.RecordID)
	require.Contains(t, row.Failure.Error, "it has money")
	require.EqualValues(t, 1, w.balance(t, "v1.balance", "a"))
}

func TestNew_RefusesWhatIsAmbiguous(t *testing.T) {
	t.Parallel()
	apply := func(context.Context, pgx.Tx, processor.Delivery) error { return nil }
	for want, handlers := range map[string][]readmodel.Handler{
		"it has no handler":                   {},
		`two handlers are for the type "a"`:   {readmodel.Ignore("a"), readmodel.Ignore("b", "a")},
		"two handlers are for the types that": {readmodel.IgnoreOthers(), readmodel.Otherwise(apply)},
		`a handler is for the type ""`:        {readmodel.Ignore("")},
		"a handler has no function":           {readmodel.Otherwise(nil)},
	} {
		_, err := readmodel.New(handlers...)
		require.ErrorContains(t, err, want)
	}
}

// The new version is built while the old one serves and records come in. It is compared, takes over and is taken back.
func TestSwitch_PutsTheNewVersionInThePlaceOfTheOldAndBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(t, "v1", model(t, credit("v1")))
	w.add(t, "account.credited", credited{"a", 1}, credited{"b", 2})
	w.waitFor(t, "v1", applied(2))
	writing, stopWriting := context.WithCancel(t.Context())
	written := make(chan int64)
	go func() {
		n := int64(2)
		for ; writing.Err() == nil; n++ {
			w.add(t, "account.credited", credited{"a", 1})
			w.waitFor(t, "v1", applied(n-20)) // no faster than they are applied
		}
		written <- n
	}()
	w.run(t, "v2", model(t, credit("v2")))

	found, err := readmodel.Compare(t.Context(), w.store, readmodel.Comparison{
		Old: "balances@v1", New: "balances@v2", SQL: "TABLE v1.balance EXCEPT TABLE v2.balance", Hold: "public.outbox", HoldFor: patience, Wait: patience,
	})
	require.NoError(t, err)
	require.Empty(t, found.Rows)

	o := operator.New(w.store)
	to := func(version string) func(context.Context, pgx.Tx) error {
		return func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "CREATE OR REPLACE VIEW public.balance AS SELECT account, cents FROM "+version+".balance")
			return err
		}
	}
	before := w.balance(t, "public.balance", "a")
	for _, step := range [][2]string{{"v1", "v2"}, {"v2", "v1"}, {"v1", "v2"}} {
		s, err := o.Switch(t.Context(), "balances@"+step[0], "balances@"+step[1], alice, to(step[1]))
		require.NoError(t, err)
		t.Logf("%s to %s: held for %v", step[0], step[1], s.Held)
		require.GreaterOrEqual(t, s.To.Position, s.From.Position)
		var definition string
		require.NoError(t, w.pool.QueryRow(t.Context(), "SELECT pg_catalog.pg_get_viewdef('public.balance')").Scan(&definition))
		require.Contains(t, definition, step[1]+".balance")
		after := w.balance(t, "public.balance", "a")
		require.GreaterOrEqual(t, after, before, "readers do not go back in time")
		before = after
	}
	stopWriting()
	n := <-written
	w.waitFor(t, "v1", applied(n))
	w.waitFor(t, "v2", applied(n))
	require.Equal(t, n-1, w.balance(t, "public.balance", "a"), "neither version has lost or doubled anything")
	events, err := o.History(t.Context(), "balances@v2", 2)
	require.NoError(t, err)
	require.Equal(t, "switched_to", events[0].Action)
	require.Equal(t, "switched_from", events[1].Action)
	require.JSONEq(t, `{"from": "balances@v1"}`, string(events[0].Detail))
}

func TestSwitch_RefusesAVersionThatIsBehindAndChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(t, "v1", model(t, credit("v1")))
	w.add(t, "account.credited", credited{"a", 1}, credited{"a", 2})
	w.waitFor(t, "v1", applied(2))
	o := operator.New(w.store)
	change := func(context.Context, pgx.Tx) error { return errors.New("was called") }
	hurried := alice
	hurried.Timeout = 100 * 1e6
	_, err := o.Switch(t.Context(), "balances@v1", "balances@v2", hurried, change)
	require.ErrorIs(t, err, operator.ErrBehind)
	require.ErrorContains(t, err, "balances@v2 is running at")

	w.run(t, "v2", model(t, readmodel.Ignore("another")))
	w.waitFor(t, "v2", halted)
	began := time.Now()
	_, err = o.Switch(t.Context(), "balances@v1", "balances@v2", alice, change)
	require.ErrorIs(t, err, operator.ErrBehind)
	require.Less(t, time.Since(began), patience/2, "it is not waited for")
	require.ErrorContains(t, err, "balances@v2 is halted at")

	_, err = o.Pause(t.Context(), "balances@v1", alice) // it is ahead, and does not go on
	require.NoError(t, err)
	_, err = o.Switch(t.Context(), "balances@v2", "balances@v1", alice, change)
	require.ErrorIs(t, err, operator.ErrBehind)
	require.ErrorContains(t, err, "balances@v1 is paused at")
	for _, names := range [][2]string{{"balances@v1", "balances@v1"}, {"balances@v1", "none"}, {"none", "balances@v1"}} {
		_, err = o.Switch(t.Context(), names[0], names[1], alice, change)
		require.Error(t, err)
	}
}

// A worker holds its row for as long as it applies records. So a switch that waited for the row of the new version would
// hold the old one for that long.
func TestSwitch_DoesNotWaitForTheWorkerOfTheNewVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	busy, err := w.pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, busy.Rollback(context.WithoutCancel(t.Context()))) }()
	_, err = busy.Exec(t.Context(), "SELECT FROM public.cursor WHERE process_name = 'balances@v2' FOR UPDATE")
	require.NoError(t, err)
	s, err := operator.New(w.store).Switch(t.Context(), "balances@v1", "balances@v2", alice, func(context.Context, pgx.Tx) error { return nil })
	require.NoError(t, err)
	require.Equal(t, "balances@v2", s.To.Process)
}

// What happens to the new version while the change runs counts, too.
func TestSwitch_RefusesAVersionThatIsPausedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := operator.New(w.store)
	_, err := o.Switch(t.Context(), "balances@v1", "balances@v2", alice, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "CREATE OR REPLACE VIEW public.balance AS SELECT account, cents FROM v2.balance")
		_, paused := o.Pause(ctx, "balances@v2", alice)
		return errors.Join(err, paused)
	})
	require.ErrorIs(t, err, operator.ErrBehind)
	require.ErrorContains(t, err, "balances@v2 is paused at")
	require.Contains(t, pgtest.Value[string](t, w.pool, "SELECT pg_catalog.pg_get_viewdef('public.balance')"), "v1.balance")
}

func TestSwitch_AFailedChangeLeavesReadersWhereTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := operator.New(w.store)
	for want, change := range map[string]func(context.Context, pgx.Tx) error{
		"does not exist": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "CREATE OR REPLACE VIEW public.balance AS SELECT account, cents FROM v3.balance")
			return err
		},
		operator.ErrSwitchTx.Error(): func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "CREATE OR REPLACE VIEW public.balance AS SELECT account, cents FROM v2.balance")
			return errors.Join(err, tx.Commit(ctx))
		},
	} {
		_, err := o.Switch(t.Context(), "balances@v1", "balances@v2", alice, change)
		require.ErrorContains(t, err, want)
		var definition string
		require.NoError(t, w.pool.QueryRow(t.Context(), "SELECT pg_catalog.pg_get_viewdef('public.balance')").Scan(&definition))
		require.Contains(t, definition, "v1.balance")
	}
	for _, ending := range []string{"ROLLBACK", "ROLLBACK AND CHAIN", "ROLLBACK; BEGIN"} {
		_, err := o.Switch(t.Context(), "balances@v1", "balances@v2", alice, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, ending)
			return err
		})
		require.ErrorIs(t, err, operator.ErrSwitchEnded)
	}
	events, err := o.History(t.Context(), "balances@v1", 10)
	require.NoError(t, err)
	require.Equal(t, "create", events[0].Action)
}

func TestCompare_ShowsWhatDiffersAtOneRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(t, "account.credited", credited{"a", 1}, credited{"b", 2}, credited{"c", 3})
	w.run(t, "v1", model(t, credit("v1")))
	w.run(t, "v2", model(t, credit("v2")))
	w.waitFor(t, "v1", applied(3))
	row := w.waitFor(t, "v2", applied(3))
	pgtest.Exec(t, w.pool, "UPDATE v2.balance SET cents = cents + 1 WHERE account <> 'a'")
	c := readmodel.Comparison{Old: "balances@v1", New: "balances@v2", SQL: "(TABLE v1.balance EXCEPT TABLE v2.balance) ORDER BY account", Limit: 1}
	d, err := readmodel.Compare(t.Context(), w.store, c)
	require.NoError(t, err)
	require.Equal(t, readmodel.Difference{Position: row.Position, Columns: []string{"account", "cents"}, Rows: [][]string{{"b", "2"}}, More: true}, d)

	c.SQL = "DELETE FROM v1.balance RETURNING NULL"
	_, err = readmodel.Compare(t.Context(), w.store, c)
	require.Error(t, err)
	for _, two := range []string{"SELECT 1 WHERE false; SELECT 1", "SELECT 1 WHERE false; COMMIT; DELETE FROM v1.balance"} {
		c.SQL = two
		_, err = readmodel.Compare(t.Context(), w.store, c)
		require.ErrorContains(t, err, "cannot insert multiple commands")
	}
	require.EqualValues(t, 1, w.balance(t, "v1.balance", "a"))
	c.SQL, c.New = "SELECT 1", "balances@v3"
	_, err = readmodel.Compare(t.Context(), w.store, c)
	require.ErrorIs(t, err, cursor.ErrUnknown)
	c.New, c.SQL = c.Old, " "
	_, err = readmodel.Compare(t.Context(), w.store, c)
	require.ErrorContains(t, err, "both versions are")
}

// A role that may create in the search_path could put an operator there after which no row differs.
func TestCompare_SeesOnlyPgCatalogWithoutASchema(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pgtest.Exec(t, w.pool, `
		CREATE TABLE public.one (total varchar);
		CREATE TABLE public.two (total varchar);
		INSERT INTO public.one VALUES ('10');
		INSERT INTO public.two VALUES ('99');
		CREATE FUNCTION public.ne(varchar, varchar) RETURNS bool LANGUAGE plpgsql AS 'BEGIN RETURN false; END';
		CREATE OPERATOR public.<> (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = public.ne)`)
	open := pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{SearchPath: "public"})
	store, err := cursor.NewStore(open, cursor.Config{})
	require.NoError(t, err)
	c := readmodel.Comparison{Old: "balances@v1", New: "balances@v2", SQL: "SELECT a.total, b.total FROM public.one a, public.two b WHERE a.total <> b.total"}
	d, err := readmodel.Compare(t.Context(), store, c)
	require.NoError(t, err)
	require.Equal(t, [][]string{{"10", "99"}}, d.Rows)

	for _, unqualified := range []string{"TABLE one", "SELECT ne('a'::varchar, 'b'::varchar)"} {
		c.SQL = unqualified
		_, err = readmodel.Compare(t.Context(), store, c)
		require.ErrorContains(t, err, "the search_path is pg_catalog: write the schema before each other name")
	}
}

// Two versions may differ in every row. Only what is shown is fetched, and the server ends a query that takes too long.
func TestCompare_FetchesOnlyWhatItShowsAndEndsInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := readmodel.Comparison{Old: "balances@v1", New: "balances@v2", Limit: 20,
		SQL: "WITH n AS (SELECT generate_series(1, 1000000) AS i) SELECT i, nextval('public.seen') FROM n; -- all"}
	pgtest.Exec(t, w.pool, "CREATE SEQUENCE public.seen")
	_, err := readmodel.Compare(t.Context(), w.store, c)
	require.ErrorContains(t, err, "read-only transaction")

	c.SQL = "SELECT i, CASE WHEN i > 100 THEN 1 / (i - i) END FROM generate_series(1, 1000000) AS i -- a row that is fetched too far fails"
	d, err := readmodel.Compare(t.Context(), w.store, c)
	require.NoError(t, err)
	require.Len(t, d.Rows, 20)
	require.Equal(t, []string{"1", "NULL"}, d.Rows[0])
	require.True(t, d.More)

	c.SQL, c.Timeout = "SELECT pg_sleep(60)", 50*time.Millisecond
	began := time.Now()
	_, err = readmodel.Compare(t.Context(), w.store, c)
	require.ErrorContains(t, err, "statement timeout")
	require.Less(t, time.Since(began), patience)
}

func TestCompare_OfVersionsThatAreNeverAtTheSameRecordSaysWhereTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(t, "account.credited", credited{"a", 1})
	w.run(t, "v1", model(t, credit("v1")))
	w.waitFor(t, "v1", applied(1))
	_, err := readmodel.Compare(t.Context(), w.store, readmodel.Comparison{Old: "balances@v1", New: "balances@v2", SQL: "SELECT 1", Wait: 50 * 1e6})
	require.ErrorIs(t, err, readmodel.ErrApart)
	require.ErrorContains(t, err, `balances@v2 at ""`)
}

// One that stands behind the other never comes to where that is: nothing is waited for.
func TestCompare_OfAHaltedVersionSaysSoAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(t, "account.credited", credited{"a", 1}, "no account", credited{"a", 2})
	poison := readmodel.On("account.credited", func(context.Context, pgx.Tx, json.RawMessage, processor.Delivery) error { return nil })
	w.run(t, "v1", model(t, credit("v1")))
	w.run(t, "v2", model(t, poison))
	w.waitFor(t, "v1", halted)
	w.waitFor(t, "v2", applied(3))
	c := readmodel.Comparison{Old: "balances@v1", New: "balances@v2", SQL: "SELECT 1", Wait: time.Hour}
	for _, c.Hold = range []string{"", "public.outbox"} {
		_, err := readmodel.Compare(t.Context(), w.store, c)
		require.ErrorIs(t, err, readmodel.ErrApart)
		require.ErrorContains(t, err, "balances@v1 is halted at")
	}
	c.Old, c.New, c.Hold = c.New, c.Old, ""
	_, err := readmodel.Compare(t.Context(), w.store, c)
	require.ErrorContains(t, err, "balances@v1 is halted at")

	c.New = "balances@v3"
	_, err = w.store.Create(t.Context(), c.New, "")
	require.NoError(t, err)
	_, err = operator.New(w.store).Pause(t.Context(), c.New, alice)
	require.NoError(t, err)
	_, err = readmodel.Compare(t.Context(), w.store, c)
	require.ErrorContains(t, err, "balances@v3 is paused at")
}
