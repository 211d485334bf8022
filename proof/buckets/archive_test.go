package buckets

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// archived is a table of five old rows and a new one, all of them delivered, and the file with a rule for it.
func archived(t *testing.T, directory string) (address string, pool *pgxpool.Pool, config string) {
	t.Helper()
	address = pgtest.URL(t)
	pool = pgtest.Pool(t, address, pgtest.PoolConfig{})
	must(t, address, "migrate", "up")
	pgtest.Exec(t, pool, `CREATE TABLE public.bookings (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), customer text NOT NULL DEFAULT 'c');
		CREATE UNIQUE INDEX ON public.bookings (created_at, id);
		INSERT INTO public.bookings (created_at) SELECT timestamptz '2026-01-01 00:00Z' + n * interval '1 minute' FROM generate_series(1, 5) n;
		INSERT INTO public.bookings DEFAULT VALUES;`)
	const processes = "processes: {a: {source: {table: public.bookings}, sink: {stdout: {}}, start: beginning, poll: 20ms}}\n"
	must(t, address, "run", "--drain", "-c", file(t, processes))
	return address, pool, file(t, processes+fmt.Sprintf("retention: {public.bookings: {keep: 1h, mode: files, directory: '%s', batch: 2}}\n", directory))
}

func rows(t *testing.T, pool *pgxpool.Pool) int {
	t.Helper()
	return pgtest.Value[int](t, pool, "SELECT count(*) FROM public.bookings")
}

func TestPrune_RowsGoToABucketAndCanBeReadBack(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, s *store) {
		address, pool, config := archived(t, s.url()+"&prefix=bookings/")
		all := pgtest.Value[[]string](t, pool, `SELECT array_agg(row_to_json(t)::text ORDER BY id) FROM public.bookings t WHERE created_at < now() - interval '1 hour'`)
		must(t, address, "doctor", "-c", config)
		require.Empty(t, s.names(), "doctor leaves nothing behind")

		pgtest.Exec(t, pool, `CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.id = 4 THEN RAISE ''crash''; END IF; RETURN OLD; END';
			CREATE TRIGGER crash BEFORE DELETE ON public.bookings FOR EACH ROW EXECUTE FUNCTION public.fail();`)
		code, _, stderr := do(t, address, "prune", "-c", config)
		require.Equal(t, 1, code)
		require.Contains(t, stderr, "crash")
		require.Equal(t, 4, rows(t, pool))
		require.Len(t, s.names(), 2, "the file of rows 3 and 4 is there, and so are the rows")

		pgtest.Exec(t, pool, "DROP TRIGGER crash ON public.bookings; DELETE FROM public.bookings WHERE id = 4")
		require.Contains(t, must(t, address, "prune", "-c", config), "public.bookings (files): 2 rows removed in 1 transaction")
		require.Equal(t, 1, rows(t, pool))
		all = append(all, all[2])
		require.ElementsMatch(t, all, s.lines(), "row 4 is in the file of the failed pass alone, so that stays")
		for _, name := range s.names() {
			require.Regexp(t, `^bookings/public\.bookings,at\.int%3A2026-01-01T00%3A0\d%3A00`, name)
		}

		const inserted = `INSERT INTO public.bookings (id, created_at, customer) OVERRIDING SYSTEM VALUE
			SELECT n, timestamptz '2026-01-01 00:00Z' + n * interval '1 minute', 'again' FROM generate_series(1, 2) n`
		for range 2 { // the second time, the file is there
			pgtest.Exec(t, pool, inserted)
			again := pgtest.Value[[]string](t, pool, "SELECT array_agg(row_to_json(t)::text) FROM public.bookings t WHERE customer = 'again'")
			must(t, address, "prune", "-c", config)
			require.ElementsMatch(t, append(again, all...), s.lines(), "no file is replaced by one of other rows")
		}

		code, _, stderr = do(t, address, "seek", "a", "-c", config, "--to-start", "--reason", "again")
		require.Equal(t, 1, code)
		require.Contains(t, stderr, "are in files in "+strings.SplitAfter(s.url(), "?")[0])
	})
}

// The pass fails, and a later one goes on.
func TestPrune_AStoreThatIsAwayKeepsTheRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault fault
		want  string
	}{
		"refuses us": {refusing(http.StatusForbidden, "AccessDenied"), "AccessDenied"},
		"read only":  {writesRefused, "AccessDenied"},
		"hangs":      {hanging, "the store took longer than 8s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			address, pool, config := archived(t, s.url())
			s.behave(c.fault)
			began := time.Now()
			code, _, stderr := do(t, address, "prune", "-c", config)
			require.Equal(t, 1, code)
			require.Contains(t, stderr, "write an archive file, before its rows are deleted: ")
			require.Contains(t, stderr, c.want)
			require.Less(t, time.Since(began), 25*time.Second)
			require.Equal(t, 6, rows(t, pool))

			code, stdout, _ := do(t, address, "doctor", "-c", config)
			require.Equal(t, 1, code)
			require.Contains(t, stdout, "retention of public.bookings cannot write to s3://kept?")

			s.behave(nil)
			must(t, address, "prune", "-c", config)
			require.Equal(t, 1, rows(t, pool))
			require.Len(t, s.lines(), 5)
		})
	}
}

// While the worker runs, rows go by themselves, and a store that is away stops no delivery.
func TestRun_ArchivesToABucket(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	address, pool, config := archived(t, s.url())
	s.behave(refusing(http.StatusServiceUnavailable, "SlowDown"))
	w := &world{t: t, address: address}
	stop := w.run(config)
	require.Eventually(t, func() bool {
		return pgtest.Value[int](t, pool, "SELECT count(*) FROM public.bookings") == 6 && delivered(t, pool) == 6
	}, patience, tick)
	pgtest.Exec(t, pool, "INSERT INTO public.bookings DEFAULT VALUES")
	require.Eventually(t, func() bool { return delivered(t, pool) == 7 }, patience, tick)
	s.behave(nil)
	require.Eventually(t, func() bool { return rows(t, pool) == 2 }, patience, tick)
	stop()
	require.Len(t, s.lines(), 5)
}

func delivered(t *testing.T, pool *pgxpool.Pool) int64 {
	t.Helper()
	return pgtest.Value[int64](t, pool, "SELECT sequence FROM public.cursor WHERE process_name = 'a'")
}

func TestCheck_NamesTheStoresThatAreKnown(t *testing.T) {
	t.Parallel()
	for place, want := range map[string]string{
		"ftp://h/x":                       "this program knows no store whose URLs begin with ftp://: write a path, s3://bucket?region=eu-central-1, ",
		"s3://":                           "it names no bucket: write s3://bucket?region=eu-central-1",
		"s3://b/sub/":                     "a path after the name of the bucket has no meaning: write it as the parameter prefix, as in s3://b?prefix=sub/",
		"s3://b?regoin=x":                 "the parameter regoin is not known here: the parameters of s3:// are prefix, region, ",
		"s3://u:CANARY@b":                 "it has a login: leave it out, and give credentials in the environment",
		"s3://b?endpoint=http://u:p@h":    "its endpoint has a login: set AWS_ACCESS_KEY_ID",
		"s3://b?endpoint=localhost:9000":  "its endpoint is not an address: write endpoint=https://host:port",
		"file://srv/claims":               "it is not an absolute path: write file:///srv/claims, with three slashes",
		"s3://b?region=eu-central-1#part": "it has a #, which has no meaning in the URL of a store: write it as %23",
	} {
		for key, text := range map[string]string{
			"processes.a.claims":    "processes: {a: {source: {table: t}, sink: {stdout: {}}, claims: '%s'}}\n",
			"retention.t.directory": "processes: {a: {source: {table: t}, sink: {stdout: {}}}}\nretention: {t: {keep: 1h, mode: files, directory: '%s'}}\n",
		} {
			code, _, stderr := do(t, "", "check", "-c", file(t, fmt.Sprintf(text, place)))
			require.Equal(t, 2, code, place)
			require.Contains(t, stderr, key+": "+want)
		}
	}
}
