package prove

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const patience = 30 * time.Second

// adopting moves public.orders, ordered by id unless the configuration says otherwise.
func adopting(old Old, c table.Config) AdoptConfig {
	if c.Table == "" {
		c.Table = "public.orders"
	}
	if c.Order == "" {
		c.Order = table.ID
	}
	return AdoptConfig{Table: c, Old: old, Wait: patience, between: func() {}}
}

func adopt(t *testing.T, pool *pgxpool.Pool, c AdoptConfig) Adoption {
	t.Helper()
	a, err := Adopt(t.Context(), pool, c)
	require.NoError(t, err)
	return a
}

// width is that of the pages of tests.
const width = 80

func printed(t *testing.T, a Adoption) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, PrintAdoption(&out, width, a, Commands{Process: "orders", File: "dispatcher.yaml"}))
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "  ordered-dispatcher ") && !strings.HasPrefix(line, "  start: ") { // people paste these
			require.LessOrEqual(t, len(line), width+1, line)
		}
	}
	return flat(out.String())
}

// whole checks that what people paste is in one line each.
func whole(t *testing.T, a Adoption) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, PrintAdoption(&out, width, a, Commands{Process: "orders", File: "dispatcher.yaml"}))
	require.Contains(t, out.String(), "\n  start: "+strconv.Quote(string(a.Start))+"\n")
	require.Regexp(t, "(?m)^  ordered-dispatcher seek orders -c dispatcher.yaml --to-position .* --reason '.*' --dry-run$", out.String())
}

// left is what a process would deliver from the position.
func left(t *testing.T, pool *pgxpool.Pool, c table.Config, at cursor.Position) []string {
	t.Helper()
	o, err := open(t.Context(), pool, c)
	require.NoError(t, err)
	look, err := o.source.Look(t.Context(), at, 100)
	require.NoError(t, err)
	all := []string{}
	for _, r := range look.Records {
		all = append(all, r.ID)
	}
	return all
}

// Rows 1 to 3 and 5 are dispatched, 4 and 6 are not.
func TestAdopt_OfAFlagBeginsBeforeTheFirstRowWithoutIt(t *testing.T) {
	t.Parallel()
	for kind, sent := range map[string]string{"timestamptz": "now()", "boolean": "true", "text": "'sent'", "boolean NOT NULL DEFAULT false": "true"} {
		for _, order := range []table.Order{table.ID, table.CreatedAt} {
			t.Run(kind+" "+string(order), func(t *testing.T) {
				t.Parallel()
				pool := database(t, ordersSQL+`ALTER TABLE public.orders ADD dispatched_at `+kind+`;
					INSERT INTO public.orders (note) SELECT n FROM generate_series(1, 6) n;
					UPDATE public.orders SET dispatched_at = `+sent+` WHERE id IN (1, 2, 3, 5)`)
				a := adopt(t, pool, adopting(Flag{"dispatched_at"}, table.Config{Order: order}))
				require.Equal(t, "3", a.Row.ID)
				require.Equal(t, a.Row.Position, a.Start)
				require.Equal(t, []string{"5"}, names(a.Twice))
				require.EqualValues(t, 1, a.Again)
				require.EqualValues(t, 2, a.Next)
				require.Empty(t, a.Running+a.Unproven+a.Earlier)
				require.Equal(t, []string{"4", "5", "6"}, left(t, pool, table.Config{Table: "public.orders", Order: order}, a.Start))
				whole(t, a)
				text := printed(t, a)
				require.Contains(t, text, "Begin after row 3 of ")
				require.Contains(t, text, "come after it: 1 row, by id: 5 of ")
				require.Contains(t, text, `--to-position '`+string(a.Start)+`'`)
			})
		}
	}
}

func TestAdopt_OfAFlagWithoutRowsToSendOrWithoutSentOnes(t *testing.T) {
	t.Parallel()
	pool := database(t, ordersSQL+`ALTER TABLE public.orders ADD dispatched_at timestamptz`)
	c := adopting(Flag{"dispatched_at"}, table.Config{})
	require.Equal(t, cursor.Position(""), adopt(t, pool, c).Start, "the table is empty")
	pgtest.Exec(t, pool, one+`;`+one)
	a := adopt(t, pool, c)
	require.Equal(t, cursor.Position(""), a.Start)
	require.EqualValues(t, 2, a.Next)
	require.Contains(t, printed(t, a), "start: beginning")
	pgtest.Exec(t, pool, `UPDATE public.orders SET dispatched_at = now()`)
	a = adopt(t, pool, c)
	require.Equal(t, "2", a.Row.ID)
	require.Zero(t, a.Next)
	require.Zero(t, a.Again)
}

// Row 1 is of a transaction that is open. Row 2 is dispatched, but a process that begins after it would lose 1.
func TestAdopt_NeverGoesPastATransactionThatIsOpen(t *testing.T) {
	t.Parallel()
	for _, order := range []table.Order{table.ID, table.CreatedAt} {
		t.Run(string(order), func(t *testing.T) {
			t.Parallel()
			pool := database(t, ordersSQL+`ALTER TABLE public.orders ADD dispatched_at timestamptz DEFAULT now();`+one)
			c := adopting(lateWriter{Flag{"dispatched_at"}, func() {
				hold(t, pool, one)
				pgtest.Exec(t, pool, one)
			}}, table.Config{Order: order})
			a := adopt(t, pool, c)
			require.Equal(t, "1", a.Row.ID, "the fence was asked for before the rows were looked at")
			require.Equal(t, []string{"3"}, names(a.Twice))
		})
	}
}

// lateWriter does something between the question for the fence and the look at the rows.
type lateWriter struct {
	Flag
	do func()
}

func (l lateWriter) delivered(ctx context.Context, m *move) (known, error) {
	l.do()
	return l.Flag.delivered(ctx, m)
}

// The first transaction ends after the look at the rows. A fence that is asked for after that would not show it.
func TestAdopt_AsksForTheFenceBeforeItLooks(t *testing.T) {
	t.Parallel()
	pool := database(t, ordersSQL+`ALTER TABLE public.orders ADD dispatched_at timestamptz;`+one+`; UPDATE public.orders SET dispatched_at = now()`)
	var late pgx.Tx
	c := adopting(lateWriter{Flag{"dispatched_at"}, func() {
		late = hold(t, pool, one)
		pgtest.Exec(t, pool, `INSERT INTO public.orders (dispatched_at) VALUES (now())`)
	}}, table.Config{})
	c.looked = func() { require.NoError(t, late.Commit(t.Context())) }
	a := adopt(t, pool, c)
	require.Equal(t, "1", a.Row.ID)
	require.Equal(t, []string{"2", "3"}, left(t, pool, table.Config{Table: "public.orders", Order: table.ID}, a.Start))
}

// A transaction that was open before has no bound, so adopt waits for it, and names it in the end.
func TestAdopt_RefusesBesideATransactionWithoutABound(t *testing.T) {
	t.Parallel()
	pool := database(t, ordersSQL+`ALTER TABLE public.orders ADD dispatched_at timestamptz DEFAULT now();`)
	open := hold(t, pool, one)
	pgtest.Exec(t, pool, one)
	c := adopting(Flag{"dispatched_at"}, table.Config{})
	c.Wait = 0
	_, err := Adopt(t.Context(), pool, c)
	require.ErrorIs(t, err, ErrFenceHeld)
	require.ErrorContains(t, err, fmt.Sprintf("pid %d", open.Conn().PgConn().PID()))
	require.NoError(t, open.Commit(t.Context()))
	require.Equal(t, "2", adopt(t, pool, c).Row.ID)
}

func TestAdopt_SeesThatTheLoopRuns(t *testing.T) {
	t.Parallel()
	pool := database(t, ordersSQL+`ALTER TABLE public.orders ADD dispatched_at timestamptz;`+one+`;`+one)
	c := adopting(Flag{"dispatched_at"}, table.Config{})
	c.between = func() { pgtest.Exec(t, pool, `UPDATE public.orders SET dispatched_at = now() WHERE id = 1`) }
	a := adopt(t, pool, c)
	require.Contains(t, a.Running, "delivered 1 row")
	text := printed(t, a)
	require.Contains(t, text, "Stop the loop that sets dispatched_at, and run adopt again")
	require.NotContains(t, text, "start:", "a position would be of no use yet")
}

func TestAdopt_RefusesAMarkThatDoesNotSayWhatWasSent(t *testing.T) {
	t.Parallel()
	pool := database(t, ordersSQL+`ALTER TABLE public.orders ADD sent integer, ADD at timestamptz NOT NULL DEFAULT now();`)
	for column, want := range map[string]string{"sent": "whether 0 means sent", "at": "NOT NULL", "none": "has no column none", "a.b": "not the name of a column"} {
		_, err := Adopt(t.Context(), pool, adopting(Flag{column}, table.Config{}))
		require.ErrorIs(t, err, ErrOld, column)
		require.ErrorContains(t, err, want)
	}
}

// The loop has sent up to id 4. By time, 3 comes after 4: it is sent twice.
func TestAdopt_OfALoopByIDInAnotherOrder(t *testing.T) {
	t.Parallel()
	pool := database(t, ordersSQL+`INSERT INTO public.orders (note) SELECT n FROM generate_series(1, 4) n;
		UPDATE public.orders SET created_at = clock_timestamp() WHERE id = 3;`+one)
	a := adopt(t, pool, adopting(IDLoop{"4"}, table.Config{Order: table.CreatedAt}))
	require.Equal(t, "3", a.Row.ID, "1, 2, 4, 3, and then 5")
	require.Zero(t, a.Again)
	require.Contains(t, printed(t, a), "rows that the loop has lost before 4 stay lost")
	a = adopt(t, pool, adopting(IDLoop{"2"}, table.Config{Order: table.CreatedAt}))
	require.Equal(t, "2", a.Row.ID)
	a = adopt(t, pool, adopting(IDLoop{"3"}, table.Config{Order: table.CreatedAt}))
	require.Equal(t, "2", a.Row.ID)
	require.Equal(t, []string{"3"}, names(a.Twice))
	require.NotContains(t, strings.Join(a.Notes, "\n"), "or a higher one")
	a = adopt(t, pool, adopting(IDLoop{"400"}, table.Config{Order: table.CreatedAt}))
	require.Contains(t, a.Notes, "no row has the id 400 or a higher one: see whether it is the last id that the loop has sent")
	_, err := Adopt(t.Context(), pool, adopting(IDLoop{"x"}, table.Config{}))
	require.ErrorIs(t, err, ErrOld)
	pgtest.Exec(t, pool, `CREATE TABLE public.visits (id uuid PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp()); CREATE INDEX ON public.visits (created_at, id)`)
	_, err = Adopt(t.Context(), pool, adopting(IDLoop{"3"}, table.Config{Table: "public.visits", Order: table.CreatedAt}))
	require.ErrorIs(t, err, ErrOld)
	require.ErrorContains(t, err, "--after-id is for ids that are integers, and id of public.visits is of type uuid")
}

func TestAdopt_OfAPositionIsCheckedAgainstTheFence(t *testing.T) {
	t.Parallel()
	pool := database(t, ordersSQL+`INSERT INTO public.orders (note) SELECT n FROM generate_series(1, 4) n`)
	at := func(id int) cursor.Position { return cursor.Position(fmt.Sprintf("int:%020d", id)) }
	a := adopt(t, pool, adopting(Given{at(3)}, table.Config{}))
	require.Equal(t, at(3), a.Start)
	require.EqualValues(t, 1, a.Next)
	require.Empty(t, a.Earlier)
	require.Contains(t, a.Unproven, "only you know")
	a = adopt(t, pool, adopting(Given{""}, table.Config{}))
	require.EqualValues(t, 4, a.Next)

	a = adopt(t, pool, adopting(Given{at(9)}, table.Config{}))
	require.Equal(t, at(4), a.Start, "5 to 9 may still come")
	require.Contains(t, a.Earlier, "at or after the fence")
	_, err := Adopt(t.Context(), pool, adopting(Given{"at.int:x"}, table.Config{}))
	require.ErrorContains(t, err, "does not belong to this source")
}

// The tables of watermill-sql 4.1.2, as DefaultPostgreSQLSchema and DefaultPostgreSQLOffsetsAdapter make them (MIT):
// https://github.com/ThreeDotsLabs/watermill-sql/tree/v4.1.2/pkg/sql, schema_adapter_postgresql.go and
// offsets_adapter_postgresql.go. The index is ours: docs/moving.md.
const watermillSQL = `
CREATE TABLE public."watermill_orders" (
	"offset" BIGSERIAL,
	"uuid" VARCHAR(36) NOT NULL,
	"created_at" TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
	"payload" JSON DEFAULT NULL,
	"metadata" JSON DEFAULT NULL,
	"transaction_id" xid8 NOT NULL,
	PRIMARY KEY ("transaction_id", "offset")
);
CREATE TABLE public."watermill_offsets_orders" (
	consumer_group VARCHAR(255) NOT NULL,
	offset_acked BIGINT,
	last_processed_transaction_id xid8 NOT NULL,
	PRIMARY KEY(consumer_group)
);
CREATE INDEX ON public.watermill_orders ("offset");`

const (
	publishSQL = `INSERT INTO public."watermill_orders" (uuid, payload, metadata, transaction_id) VALUES (gen_random_uuid()::text, '{}', '{}', pg_current_xact_id())`
	ackSQL     = `INSERT INTO public."watermill_offsets_orders" (offset_acked, last_processed_transaction_id, consumer_group)
		SELECT "offset", transaction_id, 'billing' FROM public."watermill_orders" WHERE "offset" = $1
		ON CONFLICT (consumer_group) DO UPDATE SET offset_acked = excluded.offset_acked, last_processed_transaction_id = excluded.last_processed_transaction_id`
)

var watermillTable = table.Config{Table: "public.watermill_orders", Columns: table.Columns{ID: "offset"}}

// Watermill reads by transaction. A long transaction has 1 and 4, a short one 2 and 3: it has read 1, 4 and 2.
func TestAdopt_OfWatermillFollowsItsOrder(t *testing.T) {
	t.Parallel()
	pool := database(t, watermillSQL)
	long := hold(t, pool, publishSQL)
	short := hold(t, pool, publishSQL+`;`+publishSQL)
	pgtest.Exec(t, long, publishSQL)
	require.NoError(t, short.Commit(t.Context()))
	require.NoError(t, long.Commit(t.Context()))
	pgtest.Exec(t, pool, ackSQL, 2)

	c := adopting(Watermill{Group: "billing"}, watermillTable)
	a := adopt(t, pool, c)
	require.Equal(t, "2", a.Row.ID)
	require.Equal(t, []string{"4"}, names(a.Twice), "watermill has read it before 2")
	require.EqualValues(t, 1, a.Next)

	c.between = func() { pgtest.Exec(t, pool, ackSQL, 3) }
	require.Contains(t, adopt(t, pool, c).Running, "state has changed")
	c.between = func() {}
	a = adopt(t, pool, c)
	require.Equal(t, "4", a.Row.ID)
	require.Zero(t, a.Again+a.Next)

	for _, old := range []Watermill{{Group: "others"}, {Group: "billing", Offsets: "public.a b"}} {
		_, err := Adopt(t.Context(), pool, adopting(old, watermillTable))
		require.ErrorIs(t, err, ErrOld)
	}
	pgtest.Exec(t, pool, `ALTER TABLE public.watermill_orders RENAME TO messages`)
	renamed := watermillTable
	renamed.Table = "public.messages"
	_, err := Adopt(t.Context(), pool, adopting(Watermill{Group: "billing"}, renamed))
	require.ErrorContains(t, err, "--watermill-offsets")
	require.Equal(t, "4", adopt(t, pool, adopting(Watermill{Group: "billing", Offsets: "public.watermill_offsets_orders"}, renamed)).Row.ID)
}

// A subscriber that has begun and acknowledged nothing has "zero offsets".
func TestAdopt_OfWatermillThatHasReadNothing(t *testing.T) {
	t.Parallel()
	pool := database(t, watermillSQL+publishSQL+`; INSERT INTO public."watermill_offsets_orders" (consumer_group, offset_acked, last_processed_transaction_id) VALUES ('', 0, '0') ON CONFLICT DO NOTHING`)
	a := adopt(t, pool, adopting(Watermill{}, watermillTable))
	require.Equal(t, cursor.Position(""), a.Start)
	require.EqualValues(t, 1, a.Next)
}

// outboxSQL is Debezium's table, with the time and the index that docs/producers.md gives it.
const outboxSQL = `
CREATE TABLE public.outbox (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), aggregatetype varchar(255) NOT NULL, aggregateid varchar(255) NOT NULL,
	type varchar(255) NOT NULL, payload jsonb, created_at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE INDEX ON public.outbox (created_at, id);`

func event(id string) string {
	return `INSERT INTO public.outbox (aggregatetype, aggregateid, type, payload) VALUES ('order', '` + id + `', 'order.created', '{}')`
}

var outbox = table.Config{Table: "public.outbox", Order: table.CreatedAt, Preset: table.Debezium}

// key is the aggregate id of the row of a position.
func key(t *testing.T, pool *pgxpool.Pool, row *Row) string {
	t.Helper()
	return pgtest.Value[string](t, pool, `SELECT aggregateid FROM public.outbox WHERE id = $1`, row.ID)
}

// The number of the transaction is a column of partitions, too.
func TestAdopt_ReadsTheTransactionsOfPartitions(t *testing.T) {
	t.Parallel()
	pool := database(t, `CREATE TABLE public.outbox (id bigint GENERATED ALWAYS AS IDENTITY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (created_at, id)) PARTITION BY RANGE (created_at);
		CREATE TABLE public.outbox_1 PARTITION OF public.outbox DEFAULT`)
	pgtest.Exec(t, pool, `INSERT INTO public.outbox DEFAULT VALUES`)
	pgtest.Exec(t, pool, `INSERT INTO public.outbox DEFAULT VALUES`)
	xmin := pgtest.Value[string](t, pool, `SELECT xmin::text FROM public.outbox WHERE id = 2`)
	a := adopt(t, pool, adopting(before(xmin), table.Config{Table: "public.outbox", Order: table.CreatedAt}))
	require.Equal(t, "1", a.Row.ID)
	require.EqualValues(t, 1, a.Next)
}

// before is a slot that needs a transaction and those after it.
type before string

func (b before) Name() string { return "a slot" }
func (b before) Stop() string { return "it" }

func (b before) delivered(context.Context, *move) (known, error) {
	return known{condition: endedBefore(string(b)), unwatched: true}, nil
}

// The slot is confirmed as a connector confirms it: up to a place of the log.
func TestAdopt_OfASlotProvesWhatWasConfirmed(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, map[string]string{"wal_level": "logical"})
	pool := pgtest.Pool(t, server.URL(), pgtest.PoolConfig{})
	pgtest.Exec(t, pool, outboxSQL)
	pgtest.Exec(t, pool, `SELECT pg_create_logical_replication_slot('debezium', 'pgoutput')`)
	c := adopting(Debezium("debezium", ""), outbox)
	c.Wait = 0
	confirm := func() { pgtest.Exec(t, pool, `SELECT pg_replication_slot_advance('debezium', pg_current_wal_lsn())`) }

	// The server itself may write to the log in between.
	confirmed := func(c AdoptConfig) (a Adoption) {
		require.Eventually(t, func() bool {
			confirm()
			a = adopt(t, pool, c)
			return a.Earlier == ""
		}, patience, time.Millisecond)
		return a
	}

	pgtest.Exec(t, pool, event("1"))
	pgtest.Exec(t, pool, `CHECKPOINT`) // writes which transactions are open
	confirm()
	pgtest.Exec(t, pool, event("2"))
	a := adopt(t, pool, c)
	require.Contains(t, a.Earlier, "only the rows of transactions before")
	require.Equal(t, "1", key(t, pool, a.Row), "2 is not confirmed")
	require.EqualValues(t, 1, a.Next)

	a = confirmed(c)
	require.Empty(t, a.Unproven)
	require.Equal(t, "2", key(t, pool, a.Row))
	require.Zero(t, a.Next)

	// The connector has stored more than it has confirmed to the slot.
	pgtest.Exec(t, pool, event("3"))
	stored := c
	stored.Old = Debezium("debezium", pgtest.Value[string](t, pool, `SELECT (pg_current_wal_insert_lsn() + 100000)::text`))
	require.Equal(t, "3", key(t, pool, adopt(t, pool, stored).Row))
	require.NotEqual(t, "3", key(t, pool, adopt(t, pool, c).Row), "the slot alone proves less")

	// Sequin keeps what it could not deliver.
	sequin := c
	sequin.Old = Sequin("debezium")
	require.Contains(t, confirmed(sequin).Unproven, "its own database")
	pgtest.Exec(t, pool, `CREATE SCHEMA sequin_streams;
		CREATE TABLE sequin_streams.consumer_events (consumer_id uuid NOT NULL, id bigserial PRIMARY KEY, state text NOT NULL DEFAULT 'available');
		INSERT INTO sequin_streams.consumer_events (consumer_id, state) VALUES (gen_random_uuid(), 'acked')`)
	a = confirmed(sequin)
	require.Empty(t, a.Unproven)
	require.Equal(t, "3", key(t, pool, a.Row))
	pgtest.Exec(t, pool, `INSERT INTO sequin_streams.consumer_events (consumer_id) VALUES (gen_random_uuid())`)
	a = adopt(t, pool, sequin)
	require.Contains(t, a.Unproven, "1 records that sequin_streams.consumer_events holds")
	require.Contains(t, printed(t, a), "Not proven")

	pgtest.Exec(t, pool, `SELECT pg_create_physical_replication_slot('physical')`)
	for slot, want := range map[string]string{"none": "no replication slot", "physical": "not a logical slot"} {
		_, err := Adopt(t.Context(), pool, adopting(Debezium(slot, ""), outbox))
		require.ErrorIs(t, err, ErrOld)
		require.ErrorContains(t, err, want)
	}
}
