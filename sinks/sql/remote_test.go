package sql_test

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/privilege"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// receivedSQL is the statement of these tests.
const receivedSQL = `INSERT INTO public.received (id, type, dedup_key, payload) VALUES (@id, @type, @dedup_key, @payload)`

// remote is a target of one test, reached over a link to be broken.
type remote struct {
	pool    *pgxpool.Pool // past the link
	address string        // past the link
	url     string
	link    *pgtest.Link
}

func newRemote(t testing.TB) *remote {
	t.Helper()
	address := pgtest.URL(t)
	through, link := pgtest.Proxy(t, address)
	r := &remote{pool: pgtest.Database(t), address: address, url: through, link: link}
	r.exec(t, r.sink(t, nil).Tables())
	r.exec(t, `CREATE TABLE public.received (
		n bigint GENERATED ALWAYS AS IDENTITY, id text, type text, dedup_key text, payload text CHECK (octet_length(payload) <= 1000000))`)
	return r
}

func (r *remote) exec(t testing.TB, statements string) {
	t.Helper()
	pgtest.Exec(t, r.pool, statements)
}

func (r *remote) sink(t testing.TB, change func(*sql.Config)) *sql.Remote {
	t.Helper()
	return sinktest.Made(t, sql.NewRemote, sql.Config{URL: r.url, Statements: []string{receivedSQL}}, change)
}

func (r *remote) received(t testing.TB) []sinktest.Message {
	t.Helper()
	rows, err := r.pool.Query(t.Context(), "SELECT dedup_key, coalesce(payload, '') FROM public.received ORDER BY n")
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sinktest.Message])
	require.NoError(t, err)
	return all
}

// ids are those of the records in the target, in its order.
func (r *remote) ids(t testing.TB) string {
	return r.text(t, "SELECT coalesce(string_agg(id, ' ' ORDER BY n), '') FROM public.received")
}

func (r *remote) text(t testing.TB, query string) string {
	t.Helper()
	return pgtest.Value[string](t, r.pool, query)
}

// noted is what the target keeps of the process.
func (r *remote) noted(t testing.TB) string {
	t.Helper()
	return r.text(t, `SELECT format('%s/%s', sequence, epoch) || coalesce(' refused ' ||
		(SELECT string_agg(sequence::text, ' ' ORDER BY sequence) FROM public.ordered_dispatcher_refused WHERE NOT applied), '') FROM public.ordered_dispatcher_applied`)
}

// refuse has records of a type fail for good.
func (r *remote) refuse(t testing.TB, typ string) (restore func()) {
	t.Helper()
	r.exec(t, fmt.Sprintf("ALTER TABLE public.received ADD CONSTRAINT refused CHECK (type <> '%s') NOT VALID", typ))
	return func() { r.exec(t, "ALTER TABLE public.received DROP CONSTRAINT refused") }
}

// away takes the target off the network.
func (r *remote) away(testing.TB) (back func()) { return r.link.Away() }

func TestRemote_KeepsThePromisesOfAllSinks(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, func(t *testing.T) sinktest.Subject {
		r := newRemote(t)
		return sinktest.Subject{
			Sink:     r.sink(t, nil),
			Received: r.received,
			Refuse:   r.refuse,
			Deny: func(t testing.TB) (processor.BatchSink, func()) {
				u, err := url.Parse(r.address)
				require.NoError(t, err)
				u.Path = "/none"
				return r.sink(t, func(c *sql.Config) { c.URL = u.String() }), func() {}
			},
			Away:     r.away,
			Lose:     sinktest.Lose(r.link, sinktest.Payload),
			Another:  func(t testing.TB, _ string) processor.BatchSink { return r.sink(t, nil) },
			Empty:    func(t testing.TB) { r.exec(t, "TRUNCATE public.received") },
			Notes:    true,
			Silence:  func(testing.TB) { r.link.Stall() },
			TooLarge: 1_000_001,
			Order:    true,
		}
	})
}

func TestRemote_AppliesNothingTwiceWhateverTheWorkerHasHeardOfIt(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	sinktest.Delivered(t, r.sink(t, nil), sinktest.Deliveries(1, 7)) // the worker dies before its cursor advances
	sinktest.Delivered(t, r.sink(t, nil), sinktest.Under(4, sinktest.Deliveries(1, 3)))
	sinktest.Delivered(t, r.sink(t, nil), sinktest.Under(5, sinktest.Deliveries(4, 6)))
	require.Equal(t, "1 2 3 4 5 6 7 8 9", r.ids(t))
	require.Equal(t, "9/5", r.noted(t))
}

func TestRemote_RefusesAWorkerOfAnOlderEpochAndWritesNothing(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	zombie := r.sink(t, nil)
	sinktest.Delivered(t, zombie, sinktest.Deliveries(1, 2))
	sinktest.Delivered(t, r.sink(t, nil), sinktest.Under(4, sinktest.Deliveries(1, 2))) // has nothing new, and takes over
	n, err := sinktest.Deliver(t, zombie, sinktest.Deliveries(3, 2))
	require.ErrorIs(t, err, sql.ErrFenced)
	require.False(t, processor.IsPermanent(err))
	require.Zero(t, n)
	require.Equal(t, "1 2", r.ids(t))
	require.Equal(t, "2/4", r.noted(t))
}

// A worker that is stopped between the lock and its statements keeps nobody out
// for long, and applies nothing when it goes on.
func TestRemote_AZombieWithinItsTransactionIsPutOutOfIt(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	sinktest.Delivered(t, r.sink(t, nil), sinktest.Deliveries(1, 1))
	zombie := r.sink(t, nil)
	r.link.OnData(func(fromServer bool, data []byte) {
		if !fromServer && bytes.Contains(data, []byte("public.received")) {
			r.link.Stall()
		}
	})
	stopped := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		_, err := zombie.DeliverBatch(ctx, sinktest.Deliveries(2, 1))
		stopped <- err
	}()
	require.Eventually(t, func() bool {
		return r.text(t, "SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'") == "1"
	}, time.Minute, 5*time.Millisecond)
	other := r.sink(t, func(c *sql.Config) { c.URL = r.address })
	sinktest.Delivered(t, other, sinktest.Under(4, sinktest.Deliveries(2, 2)))
	r.link.OnData(nil)
	r.link.Resume()
	require.Error(t, <-stopped)
	require.Equal(t, "1 2 3", r.ids(t))
}

func TestRemote_FindsOutWhetherACommitWithoutAnAnswerHappened(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fromServer bool // the answer is lost, and not the commit
		want       string
	}{"commit lost": {false, "1"}, "answer lost": {true, "1 2 3"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			s := r.sink(t, nil)
			sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
			what := map[bool]string{false: "COMMIT\x00", true: "COMMIT\x00Z"}[c.fromServer]
			var lost atomic.Bool
			r.link.OnData(func(fromServer bool, data []byte) {
				if fromServer == c.fromServer && bytes.Contains(data, []byte(what)) && lost.CompareAndSwap(false, true) {
					r.link.Cut()
				}
			})
			n, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, 2))
			require.ErrorContains(t, err, "which the next attempt finds out")
			require.Zero(t, n)
			require.True(t, lost.Load())
			require.Eventually(t, func() bool { return r.ids(t) == c.want }, time.Minute, 5*time.Millisecond)
			sinktest.Delivered(t, s, sinktest.Deliveries(2, 2))
			require.Equal(t, "1 2 3", r.ids(t))
		})
	}
}

func TestRemote_CommitsWhatStandsBeforeTheFailingRecordAndNothingBehindIt(t *testing.T) {
	t.Parallel()
	for name, constraint := range map[string]string{
		"at once":  "ALTER TABLE public.received ADD CHECK (id <> '5')",
		"deferred": "CREATE TABLE public.ids (id text PRIMARY KEY); INSERT INTO public.ids SELECT i FROM generate_series(1, 20) i WHERE i <> 5;\n" + "ALTER TABLE public.received ADD FOREIGN KEY (id) REFERENCES public.ids DEFERRABLE INITIALLY DEFERRED",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			r.exec(t, constraint)
			n, err := sinktest.Deliver(t, r.sink(t, nil), sinktest.Deliveries(1, 9))
			require.Equal(t, 4, n)
			require.True(t, processor.IsPermanent(err), err)
			require.ErrorContains(t, err, `apply record "5"`)
			require.NotContains(t, err.Error(), "1e400")
			require.Equal(t, "1 2 3 4", r.ids(t))
			require.Equal(t, "4/3 refused 5", r.noted(t))
		})
	}
}

// What an operator passes over after it has failed here is no gap.
func TestRemote_GoesOnBehindARecordThatFailedHereAndWasPassedOver(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	restore := r.refuse(t, "refused")
	s := r.sink(t, nil)
	ds := sinktest.Deliveries(1, 6)
	for _, i := range []int{1, 2, 4} {
		ds[i].Type = "refused"
	}
	for i, d := range ds {
		n, err := sinktest.Deliver(t, s, []processor.Delivery{d})
		require.Equal(t, d.Type != "refused", err == nil, "%d: %v", i+1, err)
		require.Equal(t, err == nil, n == 1)
	}
	require.Equal(t, "1 4 6", r.ids(t))
	require.Equal(t, "6/3 refused 2 3 5", r.noted(t))

	restore()
	replay := ds[2]
	replay.After, replay.Epoch = replay.Position, 4
	for range 2 { // the second attempt finds that the first was committed
		sinktest.Delivered(t, s, []processor.Delivery{replay})
	}
	require.Equal(t, "1 4 6 3", r.ids(t))
	require.Equal(t, "6/4 refused 2 5", r.noted(t))
	sinktest.Delivered(t, s, sinktest.Under(4, sinktest.Deliveries(7, 1)))
	require.Equal(t, "1 4 6 3 7", r.ids(t))
}

// A seek moves the sequence on by cursor.SeekGap and begins an epoch.
func TestRemote_FollowsASeek(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ from, to int }{"back": {5, 3}, "forward": {5, 9}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			s := r.sink(t, nil)
			sinktest.Delivered(t, s, sinktest.Deliveries(1, c.from))
			sought := sinktest.Under(4, sinktest.Deliveries(c.to, 2))
			for i := range sought {
				sought[i].Sequence = int64(c.from + cursor.SeekGap + 1 + i)
			}
			sinktest.Delivered(t, s, sought)
			sinktest.Delivered(t, s, sought)
			require.Equal(t, fmt.Sprintf("1 2 3 4 5 %d %d", c.to, c.to+1), r.ids(t))
		})
	}
}

func TestRemote_RefusesToGoOnWhereTheTargetLacksRecords(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 3))
	r.exec(t, `CREATE TABLE public.backup AS SELECT * FROM public.ordered_dispatcher_applied`)
	sinktest.Delivered(t, s, sinktest.Deliveries(4, 3))
	r.exec(t, `DELETE FROM public.received WHERE id::int > 3; DELETE FROM public.ordered_dispatcher_applied;
		INSERT INTO public.ordered_dispatcher_applied SELECT * FROM public.backup`)

	for _, epoch := range []cursor.Epoch{3, 4} { // by the same worker or by another
		n, err := sinktest.Deliver(t, s, sinktest.Under(epoch, sinktest.Deliveries(7, 2)))
		require.ErrorIs(t, err, sql.ErrMissing)
		require.False(t, processor.IsPermanent(err))
		require.ErrorContains(t, err, "seek sms --to-position 'int:00000000000000000003'")
		require.Zero(t, n)
	}
	require.Equal(t, "1 2 3", r.ids(t))

	sought := sinktest.Under(5, sinktest.Deliveries(4, 3))
	for i := range sought {
		sought[i].Sequence = int64(6 + cursor.SeekGap + 1 + i)
	}
	sinktest.Delivered(t, s, sought)
	require.Equal(t, "1 2 3 4 5 6", r.ids(t))
}

// TestRemote_RestoredToBeforeTheFirstRecordHasAllOfThemComeAgain: the SQL of the first error leaves them out. Behind a seek to the
// start, that of the next one does not.
func TestRemote_RestoredToBeforeTheFirstRecordHasAllOfThemComeAgain(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 3))
	r.exec(t, `DELETE FROM public.received; DELETE FROM public.ordered_dispatcher_applied`)
	_, err := sinktest.Deliver(t, s, sinktest.Deliveries(4, 2))
	require.ErrorIs(t, err, sql.ErrMissing)
	require.ErrorContains(t, err, "restored to before the first record: `ordered-dispatcher seek sms --to-start -c FILE --reason …`, and then what the next error names")

	sought := sinktest.Under(5, numbered(3+cursor.SeekGap+1, sinktest.Deliveries(1, 5)))
	_, err = sinktest.Deliver(t, s, sought)
	require.ErrorIs(t, err, sql.ErrMissing)
	r.obey(t, err, "INSERT ")
	sinktest.Delivered(t, s, sought)
	require.Equal(t, "1 2 3 4 5", r.ids(t))
}

// The SQL in the error is what it says: these need not come.
func TestRemote_GoesOnWhenToldThatWhatIsMissingNeedNotCome(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	obey := func(ds []processor.Delivery) {
		_, err := sinktest.Deliver(t, s, ds)
		require.ErrorIs(t, err, sql.ErrMissing)
		at := strings.LastIndex(err.Error(), ": INSERT ")
		require.Positive(t, at, err)
		r.exec(t, err.Error()[at+2:])
		sinktest.Delivered(t, s, ds)
	}
	const first = cursor.SeekGap + 1 // by a process that was delivered elsewhere before
	obey(sinktest.Deliveries(first, 2))
	obey(sinktest.Deliveries(first+7, 2))
	require.Equal(t, "10001 10002 10008 10009", r.ids(t))
}

func TestRemote_RefusesAnotherRecordUnderANumberThatIsTaken(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 5))
	stranger := sinktest.Deliveries(20, 1)
	stranger[0].Sequence = 1 // the first of another source with a process of that name
	again := sinktest.Deliveries(5, 1)
	again[0].CreatedAt = again[0].CreatedAt.Add(time.Hour) // its id came again after a failover
	for _, ds := range [][]processor.Delivery{stranger, again} {
		n, err := sinktest.Deliver(t, s, sinktest.Under(4, ds))
		require.ErrorIs(t, err, sql.ErrForeign)
		require.False(t, processor.IsPermanent(err))
		require.Zero(t, n)
	}
	require.Equal(t, "1 2 3 4 5", r.ids(t))
}

func TestRemote_TheServerEndsAStatementThatTakesTooLong(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, func(c *sql.Config) {
		c.Statements = append(c.Statements, `SELECT pg_sleep(60) WHERE @id = '2'`)
		c.Timeout = 5 * time.Second // record 1 is to have time on a busy machine
	})
	n, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 3))
	require.Equal(t, 1, n)
	require.ErrorContains(t, err, "57014")
	require.False(t, processor.IsPermanent(err))
	require.Equal(t, "1", r.ids(t))
}

func TestRemote_LooksForAnotherServerWhenItsOwnCannotBeWrittenTo(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	r.exec(t, "CREATE FUNCTION public.demoted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'demoted' USING ERRCODE = '25006'; END $$;"+
		"CREATE TRIGGER demoted BEFORE INSERT ON public.received FOR EACH ROW EXECUTE FUNCTION public.demoted()")
	session := func() string {
		return r.text(t, "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE application_name = 'ordered-dispatcher sink' AND datname = current_database()")
	}
	before := session()
	_, err := sinktest.Deliver(t, s, sinktest.Deliveries(2, 1))
	require.ErrorContains(t, err, "point url at the primary")
	require.False(t, processor.IsPermanent(err))
	r.exec(t, "DROP TRIGGER demoted ON public.received")
	sinktest.Delivered(t, s, sinktest.Deliveries(2, 1))
	require.NotEqual(t, before, session(), "the demoted server was asked again on the same connection")
}

func TestRemote_NeedsIsAllThatItsRoleNeeds(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	role := pgtest.Role(t, r.pool, "remote_", "LOGIN PASSWORD 'secret-password'")
	s := r.sink(t, func(c *sql.Config) { c.URL = pgtest.As(t, r.address, role, "secret-password") })
	lacking, err := s.Lacking(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, lacking)
	_, err = sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "42501")
	require.True(t, processor.IsRefused(err))

	needs, err := r.sink(t, nil).Needs(t.Context())
	require.NoError(t, err)
	for _, on := range privilege.ByObject(needs.Privileges) {
		r.exec(t, privilege.Grant(s.Role(), on...))
	}
	lacking, err = s.Lacking(t.Context())
	require.NoError(t, err)
	require.Empty(t, lacking)
	require.NoError(t, s.Check(t.Context()))
	restore := r.refuse(t, "refused")
	ds := sinktest.Deliveries(1, 3)
	ds[1].Type = "refused"
	n, err := sinktest.Deliver(t, s, ds)
	require.Equal(t, 1, n)
	require.True(t, processor.IsPermanent(err), err)
	restore()
	sinktest.Delivered(t, s, ds[1:])
	require.Equal(t, "3/3", r.noted(t))
}

func TestRemote_CheckFindsWhatIsWrongWithTheTarget(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	require.NoError(t, r.sink(t, nil).Check(t.Context()))
	elsewhere := r.sink(t, func(c *sql.Config) { c.Schema = "Else where" })
	require.ErrorIs(t, elsewhere.Check(t.Context()), sql.ErrNoTables)
	r.exec(t, `CREATE SCHEMA "Else where"; `+elsewhere.Tables())
	require.NoError(t, elsewhere.Check(t.Context()))
	sinktest.Delivered(t, elsewhere, sinktest.Deliveries(1, 2))

	wrong := r.sink(t, func(c *sql.Config) { c.Statements = []string{"INSERT INTO public.nowhere VALUES (@id)"} })
	require.ErrorContains(t, wrong.Check(t.Context()), "42P01")
	r.away(t)
	require.ErrorContains(t, r.sink(t, nil).Check(t.Context()), "nothing was sent")
}

func TestNewRemote_NamesEveryFaultAndNoSecret(t *testing.T) {
	t.Parallel()
	_, err := sql.NewRemote(sql.Config{URL: "postgres://u:secret-pass word@h:x/d", Statements: []string{"COPY"}, Schema: strings.Repeat("s", 64), Timeout: -1})
	for _, want := range []string{"url cannot be read", "COPY has no place", "schema has 64 bytes", "timeout"} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "secret-pass")
	config := sql.Config{URL: "postgres://u:secret-password@h/d", Statements: []string{receivedSQL}}
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", config, config, config), "secret-password")
}
