package prove

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const ordersSQL = `
CREATE TABLE public.orders (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	note text
);
CREATE INDEX ON public.orders (created_at, id);`

// nowSQL is the same with the time of the transaction's begin.
const nowSQL = ordersSQL + `ALTER TABLE public.orders ALTER created_at SET DEFAULT now();`

const one = `INSERT INTO public.orders DEFAULT VALUES`

func database(t *testing.T, sql string) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, sql)
	return pool
}

func begin(t *testing.T, pool *pgxpool.Pool, c table.Config) *prover {
	t.Helper()
	if c.Table == "" {
		c.Table = "public.orders"
	}
	p, err := newProver(t.Context(), pool, Config{Table: c, Every: time.Millisecond})
	require.NoError(t, err)
	return p
}

func (p *prover) see(t *testing.T) {
	t.Helper()
	require.NoError(t, p.look(t.Context()))
}

// settle looks until nothing waits for the fence.
func (p *prover) settle(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for p.see(t); p.judge.pending > 0 || p.fence.holder != ""; p.see(t) {
		require.True(t, time.Now().Before(deadline), "rows still wait for the fence")
		time.Sleep(time.Millisecond)
	}
}

func (p *prover) done(t *testing.T) Report {
	t.Helper()
	r, err := p.finish(t.Context())
	require.NoError(t, err)
	return r
}

func names(rows []Row) []string {
	all := []string{}
	for _, r := range rows {
		all = append(all, r.ID)
	}
	return all
}

// open is a transaction that has inserted a row, on a connection of its own.
func hold(t *testing.T, pool *pgxpool.Pool, sql string) pgx.Tx {
	t.Helper()
	conn := pgtest.Connect(t, pool.Config().ConnString())
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	pgtest.Exec(t, tx, sql)
	return tx
}

// A transaction inserts 1 and 2, another one inserts 3 and commits, and then the first one commits.
func TestProve_ALateCommitIsLostByTheLoopsAndNotByOurs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql    string
		config table.Config
	}{
		"by created_at":              {ordersSQL, table.Config{Order: table.CreatedAt}},
		"by id":                      {ordersSQL, table.Config{Order: table.ID}},
		"stamps of the begin, by id": {nowSQL, table.Config{Order: table.ID}},
		"stamps of the begin":        {nowSQL, table.Config{Order: table.CreatedAt, Latency: time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t, c.sql+"INSERT INTO public.orders (note) SELECT n FROM generate_series(1, 10) n;")
			p := begin(t, pool, c.config)
			p.settle(t)
			late := hold(t, pool, one+`;`+one)
			pgtest.Exec(t, pool, one)
			p.see(t)
			p.see(t)
			require.Equal(t, 1, p.judge.pending, "ours waits with 13")
			require.NoError(t, late.Commit(t.Context()))
			pgtest.Exec(t, pool, one)
			p.settle(t)

			r := p.done(t)
			require.Equal(t, []string{"11", "12"}, names(r.ByID.Rows))
			require.Equal(t, []string{"11", "12"}, names(r.ByTime.Rows))
			require.Empty(t, r.Ours.Rows)
			require.Equal(t, 4, r.Rows)
			require.Equal(t, 4, r.Delivered)
			require.Zero(t, r.Waiting)
			require.Len(t, r.Holders, 1)
			require.Equal(t, 4, r.Waited.Rows)
			require.Positive(t, r.Waited.Max, "13 waited for the first transaction")
		})
	}
}

// afterCommit is a tracer that does something once after the next transaction of a pool.
type afterCommit struct {
	armed atomic.Bool
	do    func()
	sql   atomic.Value
}

func (a *afterCommit) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	a.sql.Store(data.SQL)
	return ctx
}

func (a *afterCommit) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {
	if strings.EqualFold(a.sql.Load().(string), "commit") && a.armed.CompareAndSwap(true, false) {
		a.do()
	}
}

// The first transaction ends right after the snapshot. A fence that is asked for after that would not show it.
func TestProve_AsksForTheFenceBeforeItLooks(t *testing.T) {
	t.Parallel()
	pool := database(t, ordersSQL)
	config := pool.Config()
	tracer := &afterCommit{}
	config.ConnConfig.Tracer = tracer
	traced, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(traced.Close)
	p := begin(t, traced, table.Config{Order: table.ID})
	p.settle(t)
	late := hold(t, pool, one)
	pgtest.Exec(t, pool, one)
	tracer.do = func() { require.NoError(t, late.Commit(t.Context())) }
	tracer.armed.Store(true)
	p.see(t)
	require.False(t, tracer.armed.Load(), "the first transaction has ended after the snapshot")
	p.settle(t)
	r := p.done(t)
	require.Equal(t, []string{"1"}, names(r.ByID.Rows))
	require.Empty(t, r.Ours.Rows)
}

// A row of a transaction that began before the last poll has a stamp of that time, also if it was inserted after it.
func TestProve_TheTimeReaderLosesWhatABeginStamps(t *testing.T) {
	t.Parallel()
	pool := database(t, nowSQL)
	p := begin(t, pool, table.Config{Order: table.ID})
	late := hold(t, pool, "SELECT 1")
	p.settle(t)
	pgtest.Exec(t, late, one)
	require.NoError(t, late.Commit(t.Context()))
	p.settle(t)
	r := p.done(t)
	require.Equal(t, []string{"1"}, names(r.ByTime.Rows))
	require.Empty(t, r.ByID.Rows, "no other transaction took an id")
	require.Empty(t, r.Ours.Rows)
}

func TestProve_NamesWhoHoldsTheFence(t *testing.T) {
	t.Parallel()
	pool := database(t, ordersSQL)
	conn := pgtest.Connect(t, pgtest.With(t, pool.Config().ConnString(), "application_name", "the importer"))
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	pgtest.Exec(t, tx, one)
	p := begin(t, pool, table.Config{})
	p.see(t)
	pgtest.Exec(t, pool, one)
	p.see(t)
	r := p.done(t)
	require.Equal(t, 1, r.Waiting)
	require.Zero(t, r.Delivered)
	require.Len(t, r.Holders, 1)
	h := r.Holders[0]
	require.Equal(t, int(conn.PgConn().PID()), h.PID)
	require.Equal(t, "the importer", h.Application)
	require.Equal(t, "idle in transaction", h.State)
	require.Equal(t, "INSERT", h.Command)
	require.NotNil(t, h.Since)
	require.NotNil(t, h.QueryStart)
	require.Positive(t, h.Held)
	require.Equal(t, 2, h.Looks)
	var out bytes.Buffer
	require.NoError(t, Print(&out, width, r))
	require.Contains(t, flat(out.String()), fmt.Sprintf(`pid %d, application "the importer", user`, h.PID))
	require.Contains(t, flat(out.String()), "1 visible row waited for the fence at the end")
}

// A role with SELECT alone can measure. It is not shown when a transaction of another role began.
func TestProve_NeedsNoMoreThanSelect(t *testing.T) {
	t.Parallel()
	pool := database(t, ordersSQL)
	role := pgtest.Role(t, pool, "prover_", "LOGIN PASSWORD 'secret'")
	pgtest.Exec(t, pool, fmt.Sprintf("GRANT USAGE ON SCHEMA public TO %[1]s; GRANT SELECT ON public.orders TO %[1]s", role))
	p := begin(t, pgtest.Pool(t, pgtest.As(t, pool.Config().ConnString(), role, "secret"), pgtest.PoolConfig{}), table.Config{})
	p.settle(t)
	late := hold(t, pool, one)
	pgtest.Exec(t, pool, one)
	p.see(t)
	p.see(t)
	require.NoError(t, late.Commit(t.Context()))
	p.settle(t)
	r := p.done(t)
	require.Equal(t, []string{"1"}, names(r.ByID.Rows))
	require.Empty(t, r.Ours.Rows)
	require.Equal(t, role, r.Holders[0].HiddenFrom)
	var out bytes.Buffer
	require.NoError(t, Print(&out, width, r))
	require.Contains(t, flat(out.String()), "grant pg_read_all_stats")
}

// Ours loses what an application stamps itself, and that is said.
func TestProve_SaysIfOursLosesRows(t *testing.T) {
	t.Parallel()
	pool := database(t, ordersSQL+one)
	p := begin(t, pool, table.Config{Order: table.CreatedAt})
	p.settle(t)
	pgtest.Exec(t, pool, `INSERT INTO public.orders (created_at) VALUES (now() - interval '1 hour')`)
	p.settle(t)
	r := p.done(t)
	require.Equal(t, []string{"2"}, names(r.Ours.Rows))
	require.Empty(t, r.ByID.Rows)
	var out bytes.Buffer
	require.NoError(t, Print(&out, width, r))
	require.Contains(t, flat(out.String()), "Ours lost rows, too")
}

// A row that appears far before the place of ours is found at the end.
func TestProve_TheLastPassFindsWhatNoLookShows(t *testing.T) {
	t.Parallel()
	pool := database(t, ordersSQL+one)
	p := begin(t, pool, table.Config{Order: table.CreatedAt})
	p.settle(t)
	pgtest.Exec(t, pool, fmt.Sprintf(`INSERT INTO public.orders (note) SELECT n FROM generate_series(1, %d) n`, lookBack+10))
	p.settle(t)
	pgtest.Exec(t, pool, `INSERT INTO public.orders (created_at) SELECT created_at + interval '1 microsecond' FROM public.orders WHERE id = 1`)
	p.see(t)
	require.Empty(t, p.judge.ours.Rows)
	require.Equal(t, []string{fmt.Sprint(lookBack + 12)}, names(p.done(t).Ours.Rows))
}

func TestProve_WithoutALossSaysHowLittleThatProves(t *testing.T) {
	t.Parallel()
	pool := database(t, ordersSQL)
	p := begin(t, pool, table.Config{Order: table.ID})
	p.settle(t)
	var out bytes.Buffer
	require.NoError(t, Print(&out, width, p.done(t)))
	require.Contains(t, flat(out.String()), "No row became visible, so nothing could be lost")
	const ahead = `INSERT INTO public.orders (created_at) VALUES (clock_timestamp() + interval '1 hour')` // no poll passes it
	a, b := hold(t, pool, ahead), hold(t, pool, ahead)
	p.see(t)
	require.NoError(t, a.Commit(t.Context()))
	require.NoError(t, b.Commit(t.Context()))
	p.settle(t)
	r := p.done(t)
	require.Equal(t, 2, r.Overlap.Overlapping)
	require.Equal(t, 2, r.Overlap.Most)
	require.Equal(t, 1, r.Overlap.WithSeveral)
	out.Reset()
	require.NoError(t, Print(&out, width, r))
	require.Contains(t, flat(out.String()), "That proves little")
	require.Contains(t, flat(out.String()), "Of these, 2 overlapped with another one")
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, len(line), width+1, line)
	}
	out.Reset()
	require.NoError(t, PrintJSON(&out, r))
	var again Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &again))
	require.Equal(t, r.Overlap, again.Overlap)
}

// What would need more memory ends the measurement, and the figures so far are kept.
func TestProve_ATableThatIsTooFastEndsItEarly(t *testing.T) {
	t.Parallel()
	pool := database(t, ordersSQL)
	p := begin(t, pool, table.Config{Order: table.ID})
	p.settle(t)
	late := hold(t, pool, one)
	pgtest.Exec(t, pool, one)
	p.see(t)
	require.NoError(t, late.Commit(t.Context()))
	p.settle(t)
	hold(t, pool, one)
	pgtest.Exec(t, pool, fmt.Sprintf(`INSERT INTO public.orders (note) SELECT n FROM generate_series(1, %d) n`, maxLook))
	require.NoError(t, p.measure(t.Context(), Config{For: time.Hour, Every: time.Millisecond}))
	r := p.done(t)
	require.Contains(t, r.Early, "too fast")
	require.Equal(t, 1, r.ByID.Lost)
}

func TestSpread(t *testing.T) {
	t.Parallel()
	var s spread
	require.Zero(t, s.latency())
	s.add(time.Millisecond / 2)
	require.Zero(t, s.at(0.5), "less than a look")
	s = spread{}
	for n := range 100 {
		s.add(time.Duration(n+1) * 10 * time.Millisecond)
	}
	l := s.latency()
	require.Equal(t, 100, l.Rows)
	require.InEpsilon(t, 500*time.Millisecond, l.P50, 0.05)
	require.InEpsilon(t, 950*time.Millisecond, l.P95, 0.05)
	require.Equal(t, time.Second, l.Max)
	s.add(-time.Second)
	s.add(1000 * time.Hour)
	require.Equal(t, 1000*time.Hour, s.latency().Max)
}

// A table without an index for (created_at, id) can be read by id.
func TestProve_TakesAnOrderThatTheTableAllows(t *testing.T) {
	t.Parallel()
	pool := database(t, `CREATE TABLE public.orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz DEFAULT now())`)
	require.Equal(t, "id", begin(t, pool, table.Config{}).report.Order)
	pgtest.Exec(t, pool, `CREATE TABLE public.bare (id uuid PRIMARY KEY)`)
	_, err := newProver(t.Context(), pool, Config{Table: table.Config{Table: "public.bare"}})
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "ordered by the id alone: column id of public.bare is of type uuid: order id is for integers that a sequence assigns")
	require.NotContains(t, err.Error(), "fix: order by created_at", "this order has just failed")
	pgtest.Exec(t, pool, `CREATE TABLE public.bookings (booking_id uuid NOT NULL DEFAULT gen_random_uuid(), made timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (made, booking_id))`)
	p, err := newProver(t.Context(), pool, Config{Table: table.Config{Table: "public.bookings"}})
	require.NoError(t, err)
	require.Equal(t, "made, booking_id", p.report.Order)
}

// Ids that are no numbers do not grow, so no loop can read them with id >.
func TestProve_SaysWhichReaderATableCannotHave(t *testing.T) {
	t.Parallel()
	pool := database(t, `CREATE TABLE public.orders (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), created_at timestamptz NOT NULL DEFAULT clock_timestamp());
		CREATE INDEX ON public.orders (created_at, id); INSERT INTO public.orders DEFAULT VALUES;
		CREATE TABLE public.plain (id bigserial PRIMARY KEY)`)
	p := begin(t, pool, table.Config{})
	p.settle(t)
	r := p.done(t)
	require.Contains(t, r.ByID.Unfit, "no integers")
	require.Empty(t, r.ByTime.Unfit)
	p = begin(t, pool, table.Config{Table: "public.plain"})
	p.settle(t)
	pgtest.Exec(t, pool, `INSERT INTO public.plain DEFAULT VALUES`)
	p.settle(t)
	require.Contains(t, p.done(t).ByTime.Unfit, "no column with the time")
}

// flat undoes the folding.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }
