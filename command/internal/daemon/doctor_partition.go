package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const (
	// goneFor is how long the doctor names a partition that is gone. After that only the audit has it.
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

// undecided returns the partitions that went away since the last decision where the process goes on, each once.
func (d *doctor) undecided(ctx context.Context, process string) (gone []gonePartition, err error) {
	events, err := operator.New(d.store).Events(ctx, process, goneAction, maxGone)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	var decided int64
	for _, action := range []string{"seek", "forget"} {
		last, _, err := operator.New(d.store).Last(ctx, process, action)
		if err != nil {
			return nil, err
		}
		decided = max(decided, last.ID)
	}
	now, err := d.now(ctx)
	for _, e := range events {
		if e.ID < decided || now.Sub(e.At) > goneFor {
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
		gone = append(gone, g)
	}
	return gone, err
}

func (d *doctor) lost(ctx context.Context, process string, g gonePartition, row cursor.Row) error {
	present, err := presentName(ctx, d.pool, g.OID)
	if err != nil {
		return err
	}
	fix := g.Attach
	switch {
	case present == "":
		fix = "put its records back from a backup"
	case g.Attach == "":
		fix = fmt.Sprintf("insert the rows of %s after that position into %s, in their order, or stop the producers, give it its name back and insert there what the other one has received", present, g.Table)
	}
	d.find(process, Warn, fmt.Sprintf("%s; then %s, which sends again what follows that position; or, if the receiver has these records, settle it: %s",
		fix, seekTo(process, g.after), seekTo(process, row.Position)),
		"%s was %s before %s%s. At the last look before that it held %s after %s, which may not have been delivered",
		g.Table, g.Fate, g.at.UTC().Format(time.RFC3339), g.now(present), countOf(g.Records), place(g.after))
	return nil
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
		d.find(process, Warn, fmt.Sprintf("put the others back from a backup, then %s, which sends again what follows that position; or, if they were delivered or are not wanted: %s",
			seekTo(process, g.after), seekTo(process, row.Position)),
			"%s was %s before %s, and is there again with %s of %s that it held after %s. The others may not have been delivered",
			g.Table, g.Fate, g.at.UTC().Format(time.RFC3339), countOf(held), countOf(g.Records), place(g.after))
		return nil
	case p.OID() != g.OID:
		d.find(process, Note, fmt.Sprintf("if they are others, put the former ones back from a backup. Then, or if the cursor has passed them: %s. If all is well: %s",
			seekTo(process, g.after), seekTo(process, row.Position)),
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
