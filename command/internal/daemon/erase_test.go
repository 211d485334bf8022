package daemon_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
	"github.com/ordered-dispatcher/ordered-dispatcher/shadow"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// onTheWay are states in which a pass, or an operator, may leave the partition of January.
var onTheWay = map[string]func(testing.TB, *pgxpool.Pool){
	"closed":  func(t testing.TB, pool *pgxpool.Pool) { exec(t, pool, closeJanuary) },
	"pending": detaching,
	"detached": func(t testing.TB, pool *pgxpool.Pool) {
		exec(t, pool, closeJanuary+"; ALTER TABLE public.events DETACH PARTITION public.jan")
	},
}

const closeJanuary = `ALTER TABLE public.jan ADD CONSTRAINT ordered_dispatcher_drops_this_partition CHECK (false) NOT VALID;
	COMMENT ON CONSTRAINT ordered_dispatcher_drops_this_partition ON public.jan IS 'public.events'`

func TestErase_RefusesWhileRowsMayBeInAPartitionOnItsWay(t *testing.T) {
	t.Parallel()
	d := cursor.Decision{Actor: "ann", Reason: "request 7"}
	for name, left := range onTheWay {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := dropping(t)
			exec(t, pool, "ALTER TABLE public.events ADD note text")
			left(t, pool)
			_, err := daemon.Erase(t.Context(), config, "public.events", table.Erase{By: "region", Key: "b", Blank: []string{"note"}}, d)
			require.ErrorIs(t, err, table.ErrDropping)
			require.ErrorContains(t, err, "public.jan")

			done, err := daemon.Erase(t.Context(), config, "public.events", table.Erase{By: "region", Key: "b"}, d)
			if name == "closed" { // a constraint keeps no row from being deleted
				require.NoError(t, err)
				require.EqualValues(t, 2, done.Rows)
				return
			}
			require.ErrorIs(t, err, table.ErrDropping)
			require.ErrorContains(t, err, "public.jan is detached from public.events, or about to be, and may have rows of that key. Nothing was erased")
			require.Equal(t, 1, count(t, pool, "SELECT count(*) FROM public.feb WHERE region = 'b'"))

			exec(t, pool, "DROP TABLE public.jan")
			done, err = daemon.Erase(t.Context(), config, "public.events", table.Erase{By: "region", Key: "b"}, d)
			require.NoError(t, err)
			require.EqualValues(t, 1, done.Rows)
		})
	}
}

// A trigger that returns NULL keeps a row without an error, in the table or in its archive.
func TestErase_ATriggerThatKeepsRowsIsAnError(t *testing.T) {
	t.Parallel()
	for _, kept := range []string{"bookings", "archive"} {
		t.Run(kept, func(t *testing.T) {
			t.Parallel()
			pool, config := aged(t, keyed, "keep: 1h, mode: archive, archive: public.archive", 2)
			exec(t, pool, "ALTER TABLE public.bookings ADD note text DEFAULT 'secret'; CREATE TABLE public.archive (LIKE public.bookings)")
			pruned(t, config)
			exec(t, pool, `CREATE FUNCTION public.keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.id IN (2, 4) THEN RETURN NULL; ELSIF TG_OP = ''DELETE'' THEN RETURN OLD; END IF; RETURN NEW; END';
				CREATE TRIGGER keep BEFORE DELETE OR UPDATE ON public.`+kept+` FOR EACH ROW EXECUTE FUNCTION public.keep();`)
			d := cursor.Decision{Actor: "ann", Reason: "request 7"}
			for _, blank := range [][]string{nil, {"note"}, {"customer"}} {
				_, err := daemon.Erase(t.Context(), config, "public.bookings", table.Erase{Key: "c", Blank: blank}, d)
				require.ErrorContains(t, err, "Nothing was erased: let the trigger pass them, then erase again")
				require.ErrorContains(t, err, `"public"."`+kept+`" kept 1 of `)
			}
			const all = "SELECT (SELECT count(*) FROM public.bookings WHERE note = 'secret') + (SELECT count(*) FROM public.archive WHERE note = 'secret')"
			require.Equal(t, 5, count(t, pool, all))
			require.Zero(t, count(t, pool, "SELECT count(*) FROM od.cursor_event WHERE action = 'erase'"))
		})
	}
}

// A rule may keep rows, too, all of them or some.
func TestErase_ARuleThatKeepsRowsIsAnError(t *testing.T) {
	t.Parallel()
	for _, kept := range []string{"bookings", "archive"} {
		for _, which := range []string{"", " WHERE OLD.id IN (2, 4)"} {
			t.Run(kept+which, func(t *testing.T) {
				t.Parallel()
				pool, config := aged(t, keyed, "keep: 1h, mode: archive, archive: public.archive", 2)
				exec(t, pool, "ALTER TABLE public.bookings ADD note text DEFAULT 'secret'; CREATE TABLE public.archive (LIKE public.bookings)")
				pruned(t, config)
				for _, event := range []string{"DELETE", "UPDATE"} {
					exec(t, pool, "CREATE RULE keep_"+event+" AS ON "+event+" TO public."+kept+which+" DO INSTEAD NOTHING")
				}
				for _, blank := range [][]string{nil, {"note"}} {
					_, err := daemon.Erase(t.Context(), config, "public.bookings", table.Erase{Key: "c", Blank: blank}, cursor.Decision{Actor: "ann", Reason: "request 7"})
					require.ErrorContains(t, err, "a trigger or a rule (CREATE RULE) of \"public\".\""+kept+"\" kept ")
				}
				require.Equal(t, 5, count(t, pool, "SELECT (SELECT count(*) FROM public.bookings WHERE note = 'secret') + (SELECT count(*) FROM public.archive WHERE note = 'secret')"))
			})
		}
	}
}

func TestErase_OfAKeyThatNothingHasIsNotNoted(t *testing.T) {
	t.Parallel()
	pool, config := aged(t, keyed, "keep: 1h", 2)
	done, err := daemon.Erase(t.Context(), config, "public.bookings", table.Erase{Key: "nobody"}, cursor.Decision{Actor: "ann", Reason: "request 7"})
	require.NoError(t, err)
	require.Equal(t, rules.Erasure{}, done)
	require.Zero(t, count(t, pool, "SELECT count(*) FROM od.cursor_event WHERE action = 'erase'"))
	var out bytes.Buffer
	require.NoError(t, daemon.PrintErased(&out, "public.bookings", done, false))
	require.Equal(t, "public.bookings: no row and no dead letter has this key, so nothing was erased or noted\n", out.String())
}

// A shadow has a copy of what it recorded: of the rows in the table, and of those in the archive.
func TestErase_DeletesTheCallsThatAShadowRecorded(t *testing.T) {
	t.Parallel()
	const shadowed = keyed + "  a@shadow: {source: {table: public.bookings, order: id}, sink: {webhook: {url: 'http://127.0.0.1:1/'}}, shadow: {table: public.calls}, poll: 20ms}\n"
	pool := database(t)
	config := ruled(t, shadowed, "public.bookings", "keep: 1h, mode: archive, archive: public.archive")
	_, err := shadow.Create(t.Context(), pool, []string{"public", "calls"})
	require.NoError(t, err)
	exec(t, pool, "CREATE TABLE public.archive (LIKE public.bookings)")
	old(t, pool, 2)
	insert(t, pool, 3)
	exec(t, pool, "UPDATE public.bookings SET customer = 'ann' WHERE id IN (2, 4)")
	deliver(t, config)
	pruned(t, config)
	require.Equal(t, 5, count(t, pool, "SELECT count(*) FROM public.calls"))
	done, err := daemon.Erase(t.Context(), config, "public.bookings", table.Erase{Key: "ann"}, cursor.Decision{Actor: "ann", Reason: "request 7"})
	require.NoError(t, err)
	require.Equal(t, rules.Erasure{Erased: table.Erased{Rows: 1, Archived: 1}, Calls: 2, Processes: []string{"a", "a@shadow"}}, done)
	require.Equal(t, []string{"1", "3", "5"}, pgtest.Value[[]string](t, pool, "SELECT array_agg(right(position, 1) ORDER BY position) FROM public.calls"))
}

// A role that has what grants prints for erase, and DELETE, erases rows of a table with partitions, also without a rule.
func TestGrants_LetARoleEraseWithoutARule(t *testing.T) {
	t.Parallel()
	pool := confined(t)
	const process = "  %: {source: {table: app.%, columns: {key: kind, payload: note}}, sink: {webhook: {url: 'http://127.0.0.1:1/'}}, shadow: {table: app.calls}, start: beginning, poll: 20ms}\n"
	_, err := shadow.Create(t.Context(), pool, []string{"app", "calls"})
	require.NoError(t, err)
	config := configure(t, pgtest.URL(t), strings.NewReplacer("  %", "  parted@shadow", "%", "parted").Replace(process)+strings.NewReplacer("  %", "  part@shadow", "%", "part").Replace(process))
	role, as := granted(t, pool, config)
	require.NoError(t, drain(t, as))
	_, text, found := strings.Cut(grants(t, config, role), "`ordered-dispatcher erase` needs in addition")
	require.True(t, found)
	for line := range strings.Lines(text) {
		if grant, is := strings.CutPrefix(line, "-- GRANT "); is {
			exec(t, pool, "GRANT "+grant)
		}
	}
	exec(t, pool, `GRANT DELETE ON app.parted TO "`+role+`"`)
	done, err := daemon.Erase(t.Context(), as, "app.parted", table.Erase{Key: "k"}, cursor.Decision{Actor: "ann", Reason: "request 7"})
	require.NoError(t, err)
	require.EqualValues(t, 3, done.Rows)
	require.EqualValues(t, 6, done.Calls)
}
