package daemon_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// ruled parses processes with a rule for public.bookings, or another table.
func ruled(t testing.TB, processes, table, rule string) daemon.Config {
	t.Helper()
	text := "schema: " + schema + "\nprocesses:\n" + processes + "retention:\n  " + table + ": {" + rule + "}\n"
	config, err := daemon.Parse("f.yaml", []byte(text), environment(nil), kinds)
	require.NoError(t, err)
	config.Database = pgtest.URL(t)
	for i := range config.Processes {
		if config.Processes[i].Start == "" {
			config.Processes[i].Start = processor.Beginning
		}
	}
	return config
}

// old inserts bookings that are long ago, one a minute.
func old(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	exec(t, pool, fmt.Sprintf(`INSERT INTO public.bookings (created_at) SELECT timestamptz '2026-01-01 00:00Z' + n * interval '1 minute' FROM generate_series(1, %d) n`, n))
}

// oldAt is the position of the n-th of the old bookings.
func oldAt(n int) cursor.Position {
	at := time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC)
	return cursor.Position(fmt.Sprintf("at.int:%s/%020d", at.Format("2006-01-02T15:04:05.000000Z"), n))
}

// aged is a table with old and new bookings, all of which the processes have delivered.
func aged(t testing.TB, processes, rule string, n int) (*pgxpool.Pool, daemon.Config) {
	t.Helper()
	pool := database(t)
	config := ruled(t, processes, "public.bookings", rule)
	old(t, pool, n)
	insert(t, pool, 3)
	deliver(t, config)
	return pool, config
}

// deliver drains the processes of a configuration, and removes nothing.
func deliver(t testing.TB, config daemon.Config) {
	t.Helper()
	config.Rules = nil
	require.NoError(t, drain(t, config))
}

func prune(t testing.TB, config daemon.Config) (rules.Report, error) {
	t.Helper()
	all, err := daemon.Prune(t.Context(), config, nil, rules.Pass)
	require.Len(t, all, 1)
	return all[0], err
}

func pruned(t testing.TB, config daemon.Config) rules.Report {
	t.Helper()
	report, err := prune(t, config)
	require.NoError(t, err)
	return report
}

func staying(t testing.TB, pool *pgxpool.Pool) int {
	t.Helper()
	return count(t, pool, "SELECT count(*) FROM public.bookings")
}

func TestPrune_RemovesWhatEveryCursorHasPassedAndWhatIsOld(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess+"  b: {source: {table: public.bookings, order: id}, sink: {stdout: {}}, poll: 20ms}\n", "keep: 1h, batch: 10", 25)
	preview, err := daemon.Prune(t.Context(), config, nil, rules.Preview)
	require.NoError(t, err)
	require.EqualValues(t, 25, preview[0].Rows)
	require.Equal(t, 28, staying(t, pool), "a preview removes nothing")

	report := pruned(t, config)
	require.EqualValues(t, 25, report.Rows)
	require.Equal(t, 3, report.Batches)
	require.Equal(t, oldAt(25), report.Through)
	require.Equal(t, 3, staying(t, pool), "the new ones stay")
	require.Equal(t, 2, count(t, pool, "SELECT count(*) FROM od.cursor_pruned WHERE table_name = 'public.bookings' AND removed = 25"), "for each of the two orders")
	require.Zero(t, pruned(t, config).Rows)
	require.Empty(t, partitions(t, config), "the table has no partitions")
}

// The payload that an operator gave to a record goes with its row, and no other does.
func TestPrune_ForgetsWhatWasAmendedWithItsRow(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "keep: 1h, batch: 10", 5)
	process := config.Processes[0].Name
	exec(t, pool, `INSERT INTO od.cursor_amended (process_name, position, dedup_key, table_name, record_id, payload, original, actor, reason)
		SELECT process_name, p, 'k', 'public.bookings', 'r', 'x', 'o', 'alice', 'a test' FROM od.cursor, unnest(ARRAY[position, $1]) p`, string(oldAt(3)))
	require.EqualValues(t, 5, pruned(t, config).Rows)
	require.Equal(t, 1, count(t, pool, "SELECT count(*) FROM od.cursor_amended"))
	require.Equal(t, 1, count(t, pool, "SELECT count(*) FROM od.cursor_amended a JOIN od.cursor c USING (process_name, position) WHERE process_name = '"+process+"'"))
}

func TestPrune_StopsAtACursorThatARuleWouldPass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ state, fix string }{
		"paused":  {"paused", "slow (paused) has not passed row 5 of 2026-01-01T00:05:00Z: ordered-dispatcher resume slow"},
		"halted":  {"halted", "slow (halted) has not passed row 5 of 2026-01-01T00:05:00Z: ordered-dispatcher status slow shows why it halted"},
		"running": {"running", "slow (no worker) has not passed row 5 of 2026-01-01T00:05:00Z: start `ordered-dispatcher run`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := aged(t, stdoutProcess+strings.Replace(stdoutProcess, " a:", " slow:", 1), "keep: 1h", 8)
			place(t, pool, "slow", string(oldAt(4)), c.state)
			left(t, pool)
			report, err := prune(t, config)
			var refused *rules.PassesCursor
			require.ErrorAs(t, err, &refused)
			require.ErrorContains(t, err, "retention of public.bookings with keep 1h0m0s would pass the cursor of slow, so it stopped there: "+c.fix)
			require.ErrorContains(t, err, "ordered-dispatcher process forget slow --reason …")
			require.Equal(t, oldAt(4), report.Through)
			require.Equal(t, 7, staying(t, pool))
			require.Equal(t, 5, count(t, pool, "SELECT min(id) FROM public.bookings"), "its next record is there")

			// Every record that it has yet to deliver is there, so the rule goes on once it has.
			const deliveredSQL = "SELECT sequence FROM od.cursor WHERE process_name = 'slow'"
			before := count(t, pool, deliveredSQL)
			place(t, pool, "slow", string(oldAt(4)), "running")
			deliver(t, config)
			require.Equal(t, before+7, count(t, pool, deliveredSQL))
			require.EqualValues(t, 4, pruned(t, config).Rows)
		})
	}
}

// A process that a worker runs may be about to deliver the row, so nobody should forget its cursor.
func TestPrune_NamesNoProcessForgetForAProcessThatAWorkerRuns(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "keep: 1h", 4)
	place(t, pool, "a", string(oldAt(1)), "paused")
	worker := config
	worker.Rules = nil
	working(t, worker)
	untilTrue(t, pool, "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE '% run/%'")
	_, err := prune(t, config)
	require.ErrorContains(t, err, "a (paused) has not passed row 2 of 2026-01-01T00:02:00Z: ordered-dispatcher resume a")
	require.NotContains(t, err.Error(), "process forget")
}

// A worker that connects through a pooler is not seen. It may be there, so the command names that before it names forget.
func TestPrune_NamesThatAWorkerMayBeUnseen(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "keep: 1h", 4)
	exec(t, pool, "INSERT INTO od.cursor_event (process_name, actor, action, detail) VALUES ('a', 'x', 'watch', '{\"set\": \"unseen\"}')")
	for state, want := range map[string]string{"paused": "ordered-dispatcher resume a", "running": "it has yet to come so far"} {
		place(t, pool, "a", string(oldAt(1)), state)
		_, err := prune(t, config)
		require.ErrorContains(t, err, "a ("+state+") has not passed row 2 of 2026-01-01T00:02:00Z: "+want+"; it is not known whether a worker runs it, as through a connection pooler; "+
			"if nobody runs it any more: ordered-dispatcher process forget a --reason …, and remove it from the file")
	}
}

func TestPrune_HoldsBackForAProcessThatHasNotRun(t *testing.T) {
	t.Parallel()
	const late = "  late: {start: %s, source: {table: public.bookings}, sink: {stdout: {}}, poll: 20ms}\n"
	pool, _ := aged(t, stdoutProcess, "keep: 1h", 4)
	_, err := prune(t, ruled(t, stdoutProcess+fmt.Sprintf(late, "beginning"), "public.bookings", "keep: 1h"))
	require.ErrorContains(t, err, "late (not run yet) has not passed row 1")
	require.Equal(t, 7, staying(t, pool))

	_, err = prune(t, ruled(t, stdoutProcess+fmt.Sprintf(late, "'"+string(oldAt(2))+"'"), "public.bookings", "keep: 1h"))
	require.ErrorContains(t, err, "late (not run yet) has not passed row 3")
	require.Equal(t, 5, staying(t, pool), "it starts after row 2")

	require.EqualValues(t, 2, pruned(t, ruled(t, stdoutProcess+fmt.Sprintf(late, "end"), "public.bookings", "keep: 1h")).Rows)
}

func TestPrune_CountsCursorsOfOtherFiles(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "keep: 1h", 4)
	created := newStore(t, pool)
	_, err := created.Create(t.Context(), "other", "")
	require.NoError(t, err)
	require.NoError(t, drain(t, configure(t, pgtest.URL(t), strings.Replace(stdoutProcess, " a:", " other:", 1))))
	place(t, pool, "other", string(oldAt(1)), "running")
	left(t, pool)
	_, err = prune(t, config)
	require.ErrorContains(t, err, "other (no worker) has not passed row 2 of 2026-01-01T00:02:00Z: it is not in this file; if nobody runs it any more: ordered-dispatcher process forget other --reason …")
	require.Equal(t, 6, staying(t, pool))

	exec(t, pool, "CREATE TABLE public.elsewhere (LIKE public.bookings INCLUDING ALL)")
	require.NoError(t, drain(t, configure(t, pgtest.URL(t), "  elsewhere: {source: {table: public.elsewhere}, sink: {stdout: {}}, poll: 20ms}\n")))
	place(t, pool, "other", string(oldAt(4)), "running")
	require.EqualValues(t, 3, pruned(t, config).Rows, "a cursor on another table holds nothing back")
}

func TestPrune_RefusesWhileATableOfACursorIsNotKnown(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "keep: 1h", 4)
	exec(t, pool, "INSERT INTO od.cursor (process_name, position) VALUES ('library one', '')")
	_, err := prune(t, config)
	require.ErrorIs(t, err, rules.ErrUnknown)
	require.ErrorContains(t, err, "cursor library one has not run, or its table is gone, so it may need any row. Run it once")
	require.ErrorContains(t, err, "ordered-dispatcher process forget 'library one' --reason …")
	require.Equal(t, 7, staying(t, pool))
}

func TestPrune_ACursorOfAPartitionHoldsBackTheTableAbove(t *testing.T) {
	t.Parallel()
	pool := months(t)
	config := ruled(t, monthsProcess, "public.events", "keep: 1h")
	deliver(t, config)
	require.NoError(t, drain(t, configure(t, pgtest.URL(t), "  part: {source: {table: public.jan}, sink: {stdout: {}}, poll: 20ms}\n")))
	place(t, pool, "part", midJanuary, "paused")
	_, err := prune(t, config)
	require.ErrorContains(t, err, "part (paused) has not passed row 2")
	require.Equal(t, 3, count(t, pool, "SELECT count(*) FROM public.events"))
}

// Its cursor never passes a row of another partition, so such a row must not wait for that.
func TestPrune_ACursorOfAPartitionHoldsNoOtherPartitionBack(t *testing.T) {
	t.Parallel()
	const both = monthsProcess + "  part: {source: {table: public.jan}, sink: {stdout: {}}, poll: 20ms}\n"
	t.Run("delete", func(t *testing.T) {
		t.Parallel()
		pool := months(t)
		config := ruled(t, both, "public.events", "keep: 1h")
		deliver(t, config)
		require.EqualValues(t, 4, pruned(t, config).Rows)
		require.Zero(t, count(t, pool, "SELECT count(*) FROM public.events"))
	})
	t.Run("drop", func(t *testing.T) {
		t.Parallel()
		pool := ranges(t, "")
		config := ruled(t, both, "public.events", dropRule)
		deliver(t, config)
		place(t, pool, "part", midJanuary, "paused")
		_, err := prune(t, config)
		require.ErrorContains(t, err, "part (paused) has not passed row 2")
		require.Contains(t, tables(t, pool), "jan")
		place(t, pool, "part", january, "running")
		require.Equal(t, []string{"public.jan", "public.feb"}, pruned(t, config).Partitions)
	})
	t.Run("erase", func(t *testing.T) {
		t.Parallel()
		pool := months(t)
		config := ruled(t, both, "public.events", "keep: 1h")
		deliver(t, config)
		done, err := daemon.Erase(t.Context(), config, "public.events", table.Erase{By: "region", Key: "a"}, cursor.Decision{Actor: "ann", Reason: "asked"})
		require.NoError(t, err)
		require.EqualValues(t, 2, done.Rows)
		require.Equal(t, 2, count(t, pool, "SELECT count(*) FROM public.events"))
	})
}

func TestPrune_AnIdleProcessHoldsNothingBack(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, "  a: {source: {table: public.bookings, where: customer = 'nobody'}, sink: {stdout: {}}, poll: 20ms}\n", "keep: 1h", 4)
	require.Equal(t, "", pgtest.Value[string](t, pool, "SELECT position FROM od.cursor"))
	require.EqualValues(t, 4, pruned(t, config).Rows)
}

func TestPrune_RefusesWhileRowsBeforeACursorMayBeUndelivered(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, stdoutProcess, "keep: 1h", 4)
	exec(t, pool, "UPDATE od.cursor SET state = 'halted', failed_class = 'restored', failed_error = 'x', failed_attempts = 1, failed_position = '', failed_record_id = '', first_failed_at = now(), last_failed_at = now()")
	_, err := prune(t, config)
	require.ErrorIs(t, err, rules.ErrUnknown)
	require.ErrorContains(t, err, "rows before its cursor may be undelivered")
	require.Equal(t, 7, staying(t, pool))
}

// No worker takes over a process that does not run, so nothing comes of a wait for its next look.
func TestPrune_AfterAPromotionNamesWhatLetsAProcessRun(t *testing.T) {
	t.Parallel()
	for state, next := range map[string]string{"running": "then try again", "paused": "ordered-dispatcher resume a", "halted": "ordered-dispatcher status a shows why"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			pool, config := aged(t, stdoutProcess, "keep: 1h", 4)
			exec(t, pool, "UPDATE od.cursor SET timeline = timeline + 1, state = $1", state)
			report, err := prune(t, config)
			require.ErrorIs(t, err, rules.ErrUnknown)
			require.Regexp(t, next+"$", err.Error())
			require.Equal(t, rules.ModeDelete, report.Mode, "the line of the table has its mode")
			require.Equal(t, 7, staying(t, pool))
		})
	}
}

// The transaction that removes rows looks at the cursors itself.
func TestPrune_RefusesWhatHappensToCursorsMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, want string }{
		"a halt": {`UPDATE od.cursor SET state = 'halted', failed_class = 'restored', failed_error = 'x', failed_attempts = 1, failed_position = '', failed_record_id = '', first_failed_at = now(), last_failed_at = now()`,
			"process a is halted over its database (restored), so rows before its cursor may be undelivered: decide on that halt first"},
		"a dump in another cluster":  {"UPDATE od.cursor SET system_identifier = system_identifier - 1", "the database is not the one the cursor of process a belongs to"},
		"a dump in another database": {"UPDATE od.cursor SET database_oid = database_oid::bigint - 1", "the database is not the one the cursor of process a belongs to"},
		"a cursor":                   {"INSERT INTO od.cursor (process_name, position) VALUES ('another', '')", "another has appeared"},
		"a restore":                  {"UPDATE od.cursor SET timeline = 2147483647", "rows before the cursor of process a may be undelivered: its worker looks for them at its next round"}, // restored --all
		"a restore, paused":          {"UPDATE od.cursor SET timeline = 2147483647, state = 'paused'", "its worker looks for them once it runs, and it is paused: ordered-dispatcher resume a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := aged(t, stdoutProcess, "keep: 1h", 4)
			_, err := daemon.Prune(t.Context(), config, nil, func(ctx context.Context, pass rules.Config) (rules.Report, error) {
				exec(t, pool, c.sql)
				return rules.Pass(ctx, pass)
			})
			require.ErrorIs(t, err, rules.ErrUnknown)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, 7, staying(t, pool))
		})
	}
}

func TestSeek_BackToRemovedRowsSaysSo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ make, rule, fate string }{
		"deleted":  {"", "keep: 1h", "were removed (retention, mode delete)"},
		"archived": {"CREATE TABLE public.archive (LIKE public.bookings)", "keep: 1h, mode: archive, archive: public.archive", "are in table public.archive (retention, mode archive)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := aged(t, stdoutProcess, c.rule, 4)
			exec(t, pool, c.make)
			pruned(t, config)
			o := operatorOf(t, config)
			d := cursor.Decision{Actor: "ann", Reason: "again"}
			for _, dry := range []bool{true, false} {
				d.DryRun = dry
				for _, to := range []cursor.Position{"", oldAt(3)} {
					_, err := o.Seek(t.Context(), daemon.ToPosition(to), d)
					var gone *operator.PrunedError
					require.ErrorAs(t, err, &gone)
					require.ErrorContains(t, err, "records of public.bookings up to position "+string(oldAt(4))+" "+c.fate+", so this replay would lack them")
					require.ErrorContains(t, err, "seek a --to-position "+string(oldAt(4)))
				}
			}
			require.NotEqual(t, string(oldAt(3)), pgtest.Value[string](t, pool, "SELECT position FROM od.cursor"))
			outcome, err := o.Seek(t.Context(), daemon.ToPosition(oldAt(4)), d)
			require.NoError(t, err, "all rows after this place are there")
			require.Contains(t, outcome.Text, "3 records are sent again")
			d.Pruned = true
			_, err = o.Seek(t.Context(), daemon.ToPosition(oldAt(2)), d)
			require.NoError(t, err)
		})
	}
}

func TestParse_RulesOfRetention(t *testing.T) {
	t.Parallel()
	const processes = "processes: {a: {source: {table: t}, sink: {stdout: {}}}}\nretention:\n  "
	for text, want := range map[string]string{
		"t: {keep: 1h, mode: drop, batch: 5}":             "3:29: retention.t.batch: mode drop removes whole partitions, and not rows",
		"u: {keep: 1h}":                                   "3:3: retention.u: no process reads a table of this name: write it as source.table of a process has it",
		"t: {}":                                           "retention.t: the key \"keep\" is missing: add it, as in keep: 168h",
		"t: {keep: 0s}":                                   `retention.t.keep: "0s" is out of bounds: write a duration from 1s to 876000h0m0s`,
		"t: {keep: 1h, mode: forget}":                     `retention.t.mode: "forget" is not known here: write delete or drop or mark or archive or files`,
		"t: {keep: 1h, mode: mark}":                       "retention.t: mode mark needs the key column",
		"t: {keep: 1h, column: gone}":                     "retention.t: column is only for mode mark, and the mode is delete: remove one of them",
		"t: {keep: 1h, mode: archive, archive: old}":      "retention.t: archive old has no schema: write public.old",
		"t: {keep: 1h, mode: files, directory: archives}": "retention.t: directory archives is not an absolute path",
	} {
		_, err := daemon.Parse("f.yaml", []byte(processes+text), environment(nil), kinds)
		require.ErrorContains(t, err, want, text)
	}
	config, err := daemon.Parse("f.yaml", []byte(processes+"t: {keep: 1h}"), environment(nil), kinds)
	require.NoError(t, err)
	require.Equal(t, []daemon.TableRule{{Table: "t", Rule: rules.Rule{Keep: time.Hour}}}, config.Rules)
}

// A role that has what grants prints carries out the rules, and doctor names each right that it lacks.
func TestGrants_LetARoleCarryOutTheRules(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ rule, lacks string }{
		"delete":  {"keep: 1h", "DELETE"},
		"mark":    {"keep: 1h, mode: mark, column: gone", "UPDATE (gone)"},
		"archive": {"keep: 1h, mode: archive, archive: app.archive", "DELETE"},
		"files":   {"keep: 1h, mode: files, directory: '" + t.TempDir() + "'", "DELETE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := confined(t)
			exec(t, pool, `CREATE TABLE app.archive (LIKE app.plain);
				ALTER TABLE app.plain ADD gone boolean;
				ALTER TABLE app.archive ADD gone boolean;
				UPDATE app.plain SET created_at = '2026-01-01';`)
			config := ruled(t, "  a: {source: {table: app.plain, columns: {payload: note}}, sink: {stdout: {}}, start: beginning, poll: 20ms}\n", "app.plain", c.rule)
			role, config := granted(t, pool, config)
			deliver(t, config)
			require.False(t, daemon.Wrong(doctor(t, config)), "%+v", doctor(t, config))
			require.EqualValues(t, 3, pruned(t, config).Rows)

			exec(t, pool, "REVOKE "+c.lacks+" ON app.plain FROM "+`"`+role+`"`)
			findings := doctor(t, config)
			require.True(t, daemon.Wrong(findings))
			require.Contains(t, findings[len(findings)-1].Problem, "lacks "+strings.ReplaceAll(strings.ReplaceAll(c.lacks, "(", `("`), ")", `")`)+" on app.plain")
		})
	}
}

func TestDoctor_NamesARoleThatCannotDropPartitions(t *testing.T) {
	t.Parallel()
	pool := confined(t)
	config := ruled(t, "  a: {source: {table: app.parted}, sink: {stdout: {}}, start: beginning, poll: 20ms}\n", "app.parted", "keep: 1h, mode: drop")
	_, config = granted(t, pool, config)
	deliver(t, config)
	findings := doctor(t, config)
	require.Contains(t, findings[len(findings)-1].Problem, "does not own app.parted, and only an owner can drop its partitions")
	require.Contains(t, findings[len(findings)-1].Fix, "ordered-dispatcher prune app.parted")
}
