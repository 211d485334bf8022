package main

import (
	"context"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

// lockedWorkload is strangers who lock a table of the dispatcher's own beside the cursor, while records are put aside and
// operators decide.
func lockedWorkload() workload {
	w := workload{kinds: map[history.Kind]kind{
		history.LockLetters: lockTable("dead_letter"),
		history.LockEvents:  lockTable("cursor_event"),
	}}
	for _, k := range []history.Kind{history.LockLetters, history.LockEvents} {
		w.tracks = append(w.tracks, plan.Track{
			Victim: plan.Fault{Victim: string(k)},
			Kinds:  []plan.Chance{{Weight: 1, Kind: k, Min: 500 * time.Millisecond, Max: 3 * time.Second}},
			Min:    3 * time.Second, Max: 10 * time.Second,
		})
	}
	return w
}

// lockTable is a backup, an index or a migration of a stranger's: some of them let others read.
func lockTable(table string) kind {
	return func(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
		modes := []string{"ACCESS EXCLUSIVE", "SHARE"}
		sql := "/* torture.lock */ LOCK TABLE " + schema + "." + table + " IN " + modes[fault.Choice%2] + " MODE"
		return hold(ctx, f, fault, begin, sql)
	}
}
