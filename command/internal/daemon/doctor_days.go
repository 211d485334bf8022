package daemon

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgname"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/outbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// tomorrow warns, once for each table, if it has a partition for each day and none for tomorrow.
func (d *doctor) tomorrow(ctx context.Context, p Process, source *table.Source) error {
	first := slices.IndexFunc(d.config.Processes, func(other Process) bool { return other.Source.Table == p.Source.Table })
	if d.config.Processes[first].Name != p.Name {
		return nil
	}
	name, err := source.Name(ctx)
	if err != nil || name == "" {
		return err
	}
	parts, err := pgname.Parse(name)
	if err != nil {
		return err
	}
	box, err := outbox.New(outbox.Config{Table: parts})
	if err != nil {
		return err
	}
	var day time.Time
	err = onConn(ctx, d.pool, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		day, err = box.LacksTomorrow(ctx, conn)
		return err
	})
	if err == nil && !day.IsZero() {
		command := fmt.Sprintf("ordered-dispatcher migrate partitions --table %s -c FILE", visible.Shell(name))
		d.find(p.Name, Warn, d.config.withFile(command)+", every day, as the owner of the table",
			"%s has partitions by day, and none for tomorrow, %s (UTC): each INSERT of that day fails, unless a DEFAULT partition takes its row", name, day.Format(time.DateOnly))
	}
	return err
}
