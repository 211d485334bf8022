package daemon_test

import (
	"bytes"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
)

const (
	whole  = "  a: {source: {table: public.bookings}, sink: {stdout: {}}, poll: 20ms}\n"
	sifted = "  a: {source: {table: public.bookings, where: 'gone IS NULL'}, sink: {stdout: {}}, poll: 20ms}\n"
	marks  = "keep: 1h, mode: mark, column: gone"
)

// markable is aged for mode mark, of four old rows. No rule has been carried out.
func markable(t testing.TB, processes string) (*pgxpool.Pool, daemon.Config) {
	t.Helper()
	pool := database(t)
	exec(t, pool, "ALTER TABLE public.bookings ADD gone timestamptz")
	config := ruled(t, processes, "public.bookings", marks)
	old(t, pool, 4)
	insert(t, pool, 3)
	deliver(t, config)
	return pool, config
}

// A row that was marked is in the table, and a source without a condition reads it.
func TestSeek_BackToMarkedRowsIsRefusedOnlyWhereTheSourceMayLeaveThemOut(t *testing.T) {
	t.Parallel()
	for name, processes := range map[string]string{"whole": whole, "where": sifted} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, config := markable(t, processes)
			require.EqualValues(t, 4, pruned(t, config).Rows)
			require.Zero(t, pruned(t, config).Rows, "a pass begins after them")
			var out bytes.Buffer
			shown := daemon.ShowRecords(t.Context(), config, "a", daemon.Ask{Limit: 10}, &out)
			dry := byAnn
			dry.DryRun = true
			for _, d := range []cursor.Decision{dry, byAnn} {
				outcome, err := operatorOf(t, config).Seek(t.Context(), daemon.ToBeginning, d)
				if name == "whole" {
					require.NoError(t, err)
					require.Contains(t, outcome.Text, map[bool]string{true: "7 records would be sent again", false: "7 records are sent again"}[d.DryRun])
					continue
				}
				var gone *operator.PrunedError
				require.ErrorAs(t, err, &gone)
				require.ErrorContains(t, err, "records of public.bookings up to position "+string(oldAt(4))+
					" are in the table, marked in column gone (retention, mode mark), so this replay would lack those of them that source.where leaves out. To send")
			}
			if name == "whole" {
				require.NoError(t, shown)
				require.Len(t, parseShown(t, out.String()).ids, 7)
				return
			}
			require.ErrorIs(t, shown, daemon.ErrRemoved)
		})
	}
}

// The rule had another mode before, or has one later: rows that it removed are not there, although others were marked.
func TestSeek_BackToRemovedRowsIsRefusedAlsoIfOthersWereMarked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		passes []string // the mode of each
		want   string
	}{
		"deleted, then marked":            {[]string{"delete", "mark", "mark"}, "were removed (retention, mode mark after delete)"},
		"marked, then deleted":            {[]string{"mark", "delete"}, "were removed (retention, mode delete)"},
		"marked, deleted and marked":      {[]string{"mark", "delete", "mark"}, "were removed (retention, mode mark after delete)"},
		"marked in an order that is past": {[]string{"mark", "other order", "delete"}, "so this replay may lack some of them"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, marking := markable(t, whole)
			deletes := ruled(t, whole, "public.bookings", "keep: 1h")
			for i, mode := range c.passes {
				switch mode {
				case "mark":
					pruned(t, marking)
				case "delete":
					pruned(t, deletes)
				case "other order":
					exec(t, pool, "UPDATE od.cursor_pruned SET kind = 'past ' || kind")
				}
				if i+1 < len(c.passes) {
					exec(t, pool, "INSERT INTO public.bookings (created_at) SELECT timestamptz '2026-01-01 01:00Z' + count(*) * interval '1 minute' FROM public.bookings")
				}
			}
			_, err := operatorOf(t, marking).Seek(t.Context(), daemon.ToBeginning, byAnn)
			var gone *operator.PrunedError
			require.ErrorAs(t, err, &gone)
			require.ErrorContains(t, err, c.want)
		})
	}
}
