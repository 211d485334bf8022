package daemon_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
	"github.com/ordered-dispatcher/ordered-dispatcher/shadow"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

func TestParse_RefusesTwoRulesForOneTableAndAnArchiveThatIsTheTable(t *testing.T) {
	t.Parallel()
	const processes = "processes: {a: {source: {table: public.o}, sink: {stdout: {}}}, b: {source: {table: o}, sink: {stdout: {}}}, " +
		"c: {source: {table: '\"public\".\"o\"'}, sink: {stdout: {}}}, d: {source: {table: app.o}, sink: {stdout: {}}}}\nretention: "
	for text, want := range map[string]string{
		"{public.o: {keep: 1h}, o: {keep: 2h}}":                    "retention.public.o is a rule for the same table: remove one of them",
		`{o: {keep: 1h}, '"public"."o"': {keep: 2h}}`:              "is a rule for the same table",
		"{public.o: {keep: 1h, mode: archive, archive: public.o}}": ": archive public.o is the table itself: name another one",
		"{o: {keep: 1h, mode: archive, archive: PUBLIC.O}}":        "retention.o: archive PUBLIC.O is the table itself: name another one",
	} {
		_, err := daemon.Parse("f.yaml", []byte(processes+text), environment(nil), kinds)
		require.ErrorContains(t, err, want, text)
	}
	_, err := daemon.Parse("f.yaml", []byte(processes+"{app.o: {keep: 1h}, o: {keep: 1h, mode: archive, archive: app.o}}"), environment(nil), kinds)
	require.NoError(t, err)
}

// Two names may mean one table through the search_path.
func TestPrune_RefusesTwoRulesForOneTable(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "CREATE SCHEMA app; ALTER TABLE public.bookings SET SCHEMA app; CREATE TABLE app.archive (LIKE app.bookings)")
	const processes = "  a: {source: {table: app.bookings}, sink: {stdout: {}}, poll: 20ms}\n  b: {source: {table: bookings}, sink: {stdout: {}}, poll: 20ms}\n"
	config := ruled(t, processes, "app.bookings", "keep: 1h}\n  bookings: {keep: 2h, mode: archive, archive: app.archive")
	config.Database = with(t, pgtest.URL(t), "search_path", "app")
	exec(t, pool, "INSERT INTO app.bookings (created_at) VALUES ('2026-01-01')")
	deliver(t, config)
	const want = "retention.app.bookings and retention.bookings are rules for one table"
	_, err := daemon.Prune(t.Context(), config, nil, rules.Pass)
	require.ErrorContains(t, err, want)
	require.Equal(t, 1, count(t, pool, "SELECT count(*) FROM app.bookings"))
	found := finding(t, doctor(t, config), "are rules for one table")
	require.Equal(t, daemon.Refuse, found.Severity)
	require.Contains(t, found.Problem, want)

	config.Rules = config.Rules[1:]
	pruned(t, config)
	exec(t, pool, "UPDATE app.archive SET customer = 'ann'")
	done, err := daemon.Erase(t.Context(), config, "app.bookings", table.Erase{By: "customer", Key: "ann"}, cursor.Decision{Actor: "ann", Reason: "request 7"})
	require.NoError(t, err)
	require.EqualValues(t, 1, done.Archived, "the rule has another name of the table")
}

func finding(t testing.TB, all []daemon.Finding, problem string) daemon.Finding {
	t.Helper()
	for _, f := range all {
		if strings.Contains(f.Problem, problem) {
			return f
		}
	}
	require.Fail(t, "no such finding", "%s: %+v", problem, all)
	return daemon.Finding{}
}

// The archive may be a table above the source, or beside it, where its rows come back to the source.
func TestPrune_RefusesAnArchiveInTheTreeOfItsTable(t *testing.T) {
	t.Parallel()
	months(t)
	config := ruled(t, "  a: {source: {table: public.jan}, sink: {stdout: {}}, poll: 20ms}\n", "public.jan", "keep: 1h, mode: archive, archive: public.events")
	deliver(t, config)
	const want = "archive public.events is a table of the tree of public.jan"
	for range 2 {
		_, err := prune(t, config)
		require.ErrorContains(t, err, want)
	}
	require.Contains(t, finding(t, doctor(t, config), want).Fix, "CREATE TABLE")
}

// prune and doctor say the same of a rule that can never be carried out, also while no row is old enough.
func TestDoctor_NamesARuleThatCanNeverBeCarriedOut(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]struct{ problem, fix string }{
		"mode: mark, column: nope":               {"public.bookings has no column nope that can be written", "correct the rule in the file, or the table"},
		"mode: mark, column: customer":           {"column customer of public.bookings is a text", "correct the rule in the file, or the table"},
		"mode: drop":                             {"public.bookings has no partitions by ranges of created_at", "correct the rule in the file, or the table"},
		"mode: archive, archive: public.nope":    {"there is no table public.nope", "CREATE TABLE public.nope (LIKE public.bookings)"},
		"mode: archive, archive: public.archive": {"archive public.archive lacks columns of public.bookings", `ALTER TABLE public.archive ADD COLUMN "Z" numeric(5,2), ADD COLUMN y text`},
		"mode: archive, archive: public.rounds": {"archive public.rounds may change values of public.bookings: created_at is timestamp with time zone, " +
			`and timestamp(0) with time zone in the archive; "Z" is numeric(5,2), and numeric(5,1) in the archive; y is text, and character varying in the archive`,
			`ALTER TABLE public.rounds ALTER COLUMN created_at TYPE timestamp with time zone, ALTER COLUMN "Z" TYPE numeric, ALTER COLUMN y TYPE text`},
		"mode: archive, archive: public.unlogged": {"public.unlogged is an unlogged or temporary table", "ALTER TABLE public.unlogged SET LOGGED"},
		"mode: archive, archive: public.view":     {"public.view is not a table", "name another one, made by CREATE TABLE public.bookings_archive (LIKE public.bookings)"},
		"mode: archive, archive: public.remote":   {"public.remote is not a table", "name another one, made by CREATE TABLE public.bookings_archive (LIKE public.bookings)"},
		"mode: archive, archive: public.years":    {"public.old is not a table", "name another one, made by CREATE TABLE public.bookings_archive (LIKE public.bookings)"},
		"mode: archive, archive: public.months":   {"public.january is an unlogged or temporary table", "ALTER TABLE public.january SET LOGGED"},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			exec(t, pool, `CREATE TABLE public.archive (LIKE public.bookings); ALTER TABLE public.bookings ADD "Z" numeric(5,2), ADD y text;
				CREATE TABLE public.rounds (LIKE public.bookings);
				ALTER TABLE public.rounds ALTER created_at TYPE timestamptz(0), ALTER "Z" TYPE numeric(5,1), ALTER y TYPE varchar;
				CREATE UNLOGGED TABLE public.unlogged (LIKE public.bookings);
				CREATE TABLE public.months (LIKE public.bookings) PARTITION BY RANGE (created_at);
				CREATE UNLOGGED TABLE public.january PARTITION OF public.months DEFAULT;
				CREATE VIEW public.view AS SELECT * FROM public.bookings;
				CREATE FOREIGN DATA WRAPPER nowhere; CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere;
				CREATE FOREIGN TABLE public.remote (id bigint NOT NULL, created_at timestamptz NOT NULL, customer text, "Z" numeric(5,2), y text) SERVER nowhere;
				CREATE TABLE public.years (LIKE public.bookings) PARTITION BY RANGE (created_at);
				CREATE FOREIGN TABLE public.old PARTITION OF public.years DEFAULT SERVER nowhere`)
			config := ruled(t, stdoutProcess, "public.bookings", "keep: 1h, "+rule)
			deliver(t, config)
			_, err := prune(t, config)
			require.ErrorContains(t, err, want.problem)
			_, err = daemon.Prune(t.Context(), config, nil, rules.Preview)
			require.ErrorContains(t, err, want.problem)
			found := finding(t, doctor(t, config), want.problem)
			require.Equal(t, daemon.Refuse, found.Severity)
			require.Contains(t, found.Problem, "retention of public.bookings: ")
			require.Contains(t, found.Fix, want.fix)
			for _, f := range doctor(t, config) {
				require.NotContains(t, f.Problem, "ask what the role may do")
			}
		})
	}
}

// An archive may have more room than the table, and an unlogged table an unlogged archive.
func TestPrune_AnArchiveThatChangesNoValueFits(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `ALTER TABLE public.bookings ADD z numeric(5,2) DEFAULT 1.25, ADD c char(3) DEFAULT 'a', ADD d bit(3) DEFAULT '101';
		ALTER TABLE public.bookings SET UNLOGGED;
		CREATE UNLOGGED TABLE public.archive (LIKE public.bookings);
		ALTER TABLE public.archive ALTER z TYPE numeric(3,0), ALTER c TYPE char(1), ALTER d TYPE bit(1) USING d::bit(1)`)
	config := ruled(t, stdoutProcess, "public.bookings", "keep: 1h, mode: archive, archive: public.archive")
	old(t, pool, 1)
	deliver(t, config)
	_, err := prune(t, config)
	var misfit *table.Misfit
	require.ErrorAs(t, err, &misfit)
	fix, _, found := strings.Cut(misfit.Fix, ";")
	require.True(t, found)
	exec(t, pool, fix)
	require.EqualValues(t, 1, pruned(t, config).Rows)
	require.Equal(t, 1, count(t, pool, "SELECT count(*) FROM public.archive WHERE z = 1.25 AND c = 'a' AND d::text = '101'"))
}

func TestPrintPruned_NamesPartitionsAndSaysWhatBecameOfRows(t *testing.T) {
	t.Parallel()
	many := strings.Split("a b c d e f g h i j k", " ")
	for want, c := range map[string]struct {
		report rules.Report
		dry    bool
	}{
		"t (drop): 2 partitions would be removed: a, b\n":                    {rules.Report{Mode: rules.ModeDrop, Partitions: many[:2]}, true},
		"t (drop): 11 partitions removed: a, b, c, d, e, f, g, h, i, j, …\n": {rules.Report{Mode: rules.ModeDrop, Partitions: many}, false},
		"t (drop): 0 partitions removed\n":                                   {rules.Report{Mode: rules.ModeDrop}, false},
		"t (mark): 1 row would be marked\n":                                  {rules.Report{Mode: rules.ModeMark, Rows: 1}, true},
		"t (mark): 2 rows marked\n":                                          {rules.Report{Mode: rules.ModeMark, Rows: 2}, false},
		"t (archive): 2 rows removed\n":                                      {rules.Report{Mode: rules.ModeArchive, Rows: 2}, false},
	} {
		var b strings.Builder
		c.report.Table = "t"
		require.NoError(t, daemon.PrintPruned(&b, []rules.Report{c.report}, c.dry))
		require.Equal(t, want, b.String())
	}
}

func TestErase_TakesTheKeyOfAPreset(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "CREATE TABLE public.outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), "+
		"key text NOT NULL, type text NOT NULL, headers jsonb, payload jsonb); CREATE UNIQUE INDEX ON public.outbox (created_at, id); "+
		"INSERT INTO public.outbox (key, type) VALUES ('ann', 't'), ('bob', 't')")
	config := configure(t, pgtest.URL(t), "  a: {source: {table: public.outbox, preset: outbox}, sink: {stdout: {}}, poll: 20ms}\n")
	deliver(t, config)
	done, err := daemon.Erase(t.Context(), config, "public.outbox", table.Erase{Key: "ann"}, cursor.Decision{Actor: "ann", Reason: "request 7"})
	require.NoError(t, err)
	require.EqualValues(t, 1, done.Rows)
}

// The owner of an archive, or of a table of calls, gets rows of the source, and its triggers run with the rights of the
// role that writes there.
func TestDoctor_WarnsOfATableOfAnotherOwnerIntoWhichRowsGo(t *testing.T) {
	t.Parallel()
	pool, _ := aged(t, stdoutProcess, "keep: 1h", 2)
	exec(t, pool, "CREATE TABLE public.archive (LIKE public.bookings)")
	_, err := shadow.Create(t.Context(), pool, pgx.Identifier{"public", "calls"})
	require.NoError(t, err)
	config := ruled(t, keyed+"  a@shadow: {source: {table: public.bookings, order: id}, sink: {webhook: {url: 'http://127.0.0.1:1/'}}, shadow: {table: public.calls}, poll: 20ms}\n",
		"public.bookings", "keep: 1h, mode: archive, archive: public.archive")
	stranger := pgtest.Role(t, pool, "od_", "")
	for _, name := range []string{"archive", "calls"} {
		warning := `"public"."` + name + `" belongs to role "` + stranger + `", which does not own public.bookings`
		require.NotContains(t, problems(doctor(t, config)), warning)
		exec(t, pool, "ALTER TABLE public."+name+" OWNER TO "+stranger)
		require.Contains(t, problems(doctor(t, config)), warning)
	}
	exec(t, pool, "ALTER TABLE public.bookings OWNER TO "+stranger)
	require.NotContains(t, problems(doctor(t, config)), "belongs to role")
}
