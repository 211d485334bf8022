package daemon_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
)

// The ids begin again, before the place up to which rows were marked. Rows come in two steps, so that the second pass
// begins within the new ones.
func TestPrune_MarksRowsAfterATruncateThatBeginsAgain(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, byID, "keep: 1h, mode: mark, column: mark, batch: 2", 5)
	exec(t, pool, "ALTER TABLE public.bookings ADD mark timestamptz")
	require.EqualValues(t, 5, pruned(t, config).Rows)
	exec(t, pool, "TRUNCATE public.bookings RESTART IDENTITY")
	place(t, pool, "a", "", "running")
	for range 2 {
		old(t, pool, 3)
		deliver(t, config)
		all, err := daemon.Prune(t.Context(), config, nil, rules.Preview)
		require.NoError(t, err)
		require.EqualValues(t, 3, all[0].Rows)
		require.EqualValues(t, 3, pruned(t, config).Rows)
		require.Zero(t, pruned(t, config).Rows)
	}
	require.Equal(t, 6, count(t, pool, "SELECT count(*) FROM public.bookings WHERE mark IS NOT NULL"))
}

// A row that cannot become old ends every pass. It is no error: the rule was carried out as far as it goes.
func TestPrune_NamesARowWhoseTimeCannotBecomeOld(t *testing.T) {
	t.Parallel()
	for stamp, c := range map[string]struct {
		process, want string
		goes          int64
	}{
		"NULL":                      {byID, "NULL", 2},
		"'infinity'":                {byID, "infinity", 2},
		"'-infinity'":               {byID, "-infinity", 2},
		"'2999-01-01Z'":             {byID, "2999-01-01 00:00:00+00", 2},
		"'-infinity' ":              {stdoutProcess, "-infinity", 0},
		"'0044-03-15 00:00:00Z BC'": {stdoutProcess, "0044-03-15 00:00:00+00 BC", 0},
		"now()":                     {byID, "", 2},
	} {
		t.Run(stamp, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			config := ruled(t, c.process, "public.bookings", "keep: 1h")
			old(t, pool, 5)
			deliver(t, config)
			if stamp == "NULL" {
				exec(t, pool, "ALTER TABLE public.bookings ALTER created_at DROP NOT NULL")
			}
			exec(t, pool, "UPDATE public.bookings SET created_at = "+stamp+" WHERE id = 3")
			for _, pass := range []daemon.Pass{rules.Preview, rules.Pass, rules.Pass} {
				all, err := daemon.Prune(t.Context(), config, nil, pass)
				require.NoError(t, err)
				var out bytes.Buffer
				require.NoError(t, daemon.PrintPruned(&out, all, false))
				if c.want == "" {
					require.NotContains(t, out.String(), "created_at")
					continue
				}
				require.Contains(t, out.String(), "\n  row 3 has the created_at "+c.want+", so it is not old enough, and no row after it goes: correct that time, or delete the row\n")
			}
			require.EqualValues(t, 5-c.goes, staying(t, pool))
		})
	}
}

// A trigger that returns NULL keeps a row without an error.
func TestPrune_ATriggerThatKeepsRowsIsAnError(t *testing.T) {
	t.Parallel()
	for mode, rule := range map[string]string{
		"delete":  "keep: 1h",
		"mark":    "keep: 1h, mode: mark, column: mark",
		"archive": "keep: 1h, mode: archive, archive: public.archive",
		"files":   "keep: 1h, mode: files, directory: '" + t.TempDir() + "'",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			pool, config := aged(t, stdoutProcess, rule, 5)
			exec(t, pool, `ALTER TABLE public.bookings ADD mark timestamptz; CREATE TABLE public.archive (LIKE public.bookings);
				CREATE FUNCTION public.keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.id IN (2, 4) THEN RETURN NULL; ELSIF TG_OP = ''DELETE'' THEN RETURN OLD; END IF; RETURN NEW; END';
				CREATE TRIGGER keep BEFORE DELETE OR UPDATE ON public.bookings FOR EACH ROW EXECUTE FUNCTION public.keep();`)
			for range 2 {
				report, err := prune(t, config)
				require.ErrorContains(t, err, "a trigger or a rule (CREATE RULE) of public.bookings kept 2 of 5 rows as they are, so none of them was removed")
				require.Zero(t, report.Rows)
				require.Equal(t, 8, count(t, pool, "SELECT count(*) FROM public.bookings WHERE mark IS NULL"))
				require.Zero(t, count(t, pool, "SELECT count(*) FROM public.archive"))
			}
			exec(t, pool, "DROP TRIGGER keep ON public.bookings")
			require.EqualValues(t, 5, pruned(t, config).Rows)
		})
	}
}

// Retention waits for other sessions of the program without a word, since these end. A session of others may not.
func TestRun_LogsOnceThatAStrangerKeepsRetentionFromItsLock(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "keep: 1h", 2)
	stranger := session(t, "SELECT pg_advisory_lock(hashtextextended('ordered-dispatcher seek', 0))")
	log := &buffer{}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- daemon.Run(ctx, quiet(daemon.RunConfig{Config: config, Logger: slog.New(slog.NewTextHandler(log, nil))}.PruningEvery(time.Millisecond)))
	}()
	const fix = "SELECT pg_terminate_backend("
	require.Eventually(t, func() bool { return strings.Contains(log.String(), fix) }, patience, 5*time.Millisecond)
	exec(t, stranger, "SELECT pg_advisory_unlock_all()")
	untilTrue(t, pool, "SELECT NOT EXISTS (SELECT FROM public.bookings WHERE created_at < now() - interval '1 hour')")
	stop()
	require.NoError(t, waittest.Receive(t, done, "the run ends"))
	require.Equal(t, 1, strings.Count(log.String(), fix))
}
