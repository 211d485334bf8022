package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const (
	// goneFor is how long the doctor names a partition that is gone, if no rule of retention waits for it.
	goneFor = 30 * 24 * time.Hour
	// maxGone bounds how many events are examined.
	maxGone = 1000
)

// gonePartition is a partition that went away with records that may not have been delivered.
type gonePartition struct {
	goneDetail
	at    time.Time
	after cursor.Position // the earliest position of the cursor at which it held records
}

// gone names the partitions that a worker has seen go away, and the table itself if it was replaced, until an
// operator seeks.
func (d *doctor) gone(ctx context.Context, p Process, source *table.Source, row cursor.Row) error {
	gone, err := d.undecided(ctx, p.Name)
	if err != nil || len(gone) == 0 {
		return err
	}
	tables, err := source.Tables(ctx)
	if err != nil {
		return err
	}
	for _, g := range gone {
		if i := g.among(tables); i >= 0 {
			err = d.back(ctx, p.Name, g, source, tables[i], row)
		} else {
			err = d.lost(ctx, p.Name, g, row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// among finds the partition in a list: itself, or else one with its name. If a table was replaced, another table
// always has its name.
func (g gonePartition) among(tables []table.Partition) int {
	i := slices.IndexFunc(tables, func(p table.Partition) bool { return p.OID() == g.OID && !p.Detaching })
	if i < 0 && g.Attach != "" {
		i = slices.IndexFunc(tables, func(p table.Partition) bool { return p.Name() == g.Table && !p.Detaching })
	}
	return i
}

// undecided returns the partitions that went away since the last decision where a process goes on, each once.
func undecided(ctx context.Context, store *cursor.Store, process string) (gone []gonePartition, err error) {
	events, err := operator.New(store).Events(ctx, process, goneAction, maxGone)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	var decided int64
	for _, action := range []string{"seek", "forget"} {
		last, _, err := operator.New(store).Last(ctx, process, action)
		if err != nil {
			return nil, err
		}
		decided = max(decided, last.ID)
	}
	for _, e := range events {
		if e.ID < decided {
			break
		}
		g := gonePartition{at: e.At, after: e.From}
		if json.Unmarshal(e.Detail, &g.goneDetail) != nil {
			continue
		}
		if i := slices.IndexFunc(gone, func(other gonePartition) bool { return other.OID == g.OID }); i >= 0 {
			gone[i].after, gone[i].Records = min(gone[i].after, g.after), max(gone[i].Records, g.Records)
			continue
		}
		taken, err := g.byRetention(ctx, store)
		if err != nil {
			return nil, err
		}
		if !taken {
			gone = append(gone, g)
		}
	}
	return gone, nil
}

// undecided is undecided without what is too old to be named. With rules of retention nothing is: they wait for the
// decision.
func (d *doctor) undecided(ctx context.Context, process string) ([]gonePartition, error) {
	gone, err := undecided(ctx, d.store, process)
	if err != nil || len(gone) == 0 || len(d.config.Rules) > 0 {
		return gone, err
	}
	now, err := databaseTime(ctx, d.pool)
	return slices.DeleteFunc(gone, func(g gonePartition) bool { return now.Sub(g.at) > goneFor }), err
}

// again returns how records that are put back are sent. They must not be before the cursor of a process that goes on:
// retention would take them for delivered. A process that is halted cannot be paused, and its seek sets it running.
func again(row cursor.Row, after cursor.Position, putBack string) string {
	steps := []string{seekTo(row.Process, after), putBack}
	switch row.State {
	case cursor.Halted:
		slices.Reverse(steps)
	case cursor.Running:
		process := visible.Shell(row.Process)
		steps = append([]string{fmt.Sprintf("ordered-dispatcher pause %s --reason …", process)}, append(steps, fmt.Sprintf("ordered-dispatcher resume %s --reason …", process))...)
	}
	return strings.Join(steps, "; then ")
}

func (d *doctor) lost(ctx context.Context, process string, g gonePartition, row cursor.Row) error {
	present, err := presentName(ctx, d.pool, g.OID)
	if err != nil {
		return err
	}
	putBack := g.Attach
	switch {
	case present == "":
		putBack = "put its records back from a backup"
	case g.Attach == "":
		putBack = fmt.Sprintf("insert the rows of %s after that position into %s, in their order, or stop the producers, give it its name back and insert there what the other one has received", present, g.Table)
	}
	d.find(process, Warn, fmt.Sprintf("%s. That sends again what follows that position. Or, if the receiver has these records, settle it: %s",
		again(row, g.after, putBack), seekTo(process, row.Position)),
		"%s", g.problem(present))
	return nil
}

// problem describes a partition that is gone, and that has a name now; "" if it was dropped.
func (g gonePartition) problem(present string) string {
	return fmt.Sprintf("%s was %s before %s%s. At the last look before that it held %s after %s, which may not have been delivered",
		g.Table, g.Fate, g.at.UTC().Format(time.RFC3339), g.now(present), countOf(g.Records), place(g.after))
}

// back reports on a partition that exists again. Neither its name nor the table itself brings the records back. It
// counts as back only with all records that it held. It is not known which of the records the cursor has passed,
// meanwhile or since.
func (d *doctor) back(ctx context.Context, process string, g gonePartition, source *table.Source, p table.Partition, row cursor.Row) error {
	held, err := source.Undelivered(ctx, g.after, p)
	switch {
	case err != nil:
		return err
	case held < g.Records:
		d.find(process, Warn, fmt.Sprintf("%s. That sends again what follows that position. Or, if they were delivered or are not wanted: %s",
			again(row, g.after, "put the others back from a backup"), seekTo(process, row.Position)),
			"%s was %s before %s, and is there again with %s of %s that it held after %s. The others may not have been delivered",
			g.Table, g.Fate, g.at.UTC().Format(time.RFC3339), countOf(held), countOf(g.Records), place(g.after))
		return nil
	case p.OID() != g.OID:
		d.find(process, Note, fmt.Sprintf("if they are others: %s. If the cursor has passed them: %s. If all is well: %s",
			again(row, g.after, "put the former ones back from a backup"), seekTo(process, g.after), seekTo(process, row.Position)),
			"%s was %s before %s, and was made anew. It holds %s after %s, as many as before or more: if they are others, the former ones may not have been delivered",
			g.Table, g.Fate, g.at.UTC().Format(time.RFC3339), countOf(held), place(g.after))
		return nil
	case row.Position <= g.after:
		return nil
	}
	ahead, err := source.Undelivered(ctx, row.Position, p)
	if err != nil || held == ahead && held < table.MaxUndelivered {
		return err
	}
	d.find(process, Note, fmt.Sprintf("if the cursor passed them before, or the receiver lacks them: %s. If all is well: %s", seekTo(process, g.after), seekTo(process, row.Position)),
		"%s was %s for a while, before %s, and is there again. The cursor has passed records of it after %s: those that it passed before are not delivered",
		g.Table, g.Fate, g.at.UTC().Format(time.RFC3339), place(g.after))
	return nil
}

// seekTo returns the command that moves a cursor to a position.
func seekTo(process string, at cursor.Position) string {
	to := "--to-start"
	if at != "" {
		to = "--to-position " + visible.Shell(string(at))
	}
	return fmt.Sprintf("ordered-dispatcher seek %s %s -c FILE --reason …", visible.Shell(process), to)
}
