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

// days finds, once for each table, one that has a partition for each day and none for today or tomorrow.
func (d *doctor) days(ctx context.Context, p Process, source *table.Source) error {
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
	var today, tomorrow time.Time
	err = onConn(ctx, d.pool, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		if today, err = box.LacksToday(ctx, conn); err == nil {
			tomorrow, err = box.LacksTomorrow(ctx, conn)
		}
		return err
	})
	if err != nil {
		return err
	}
	fix := fmt.Sprintf("DATABASE_URL=<the owner's> ordered-dispatcher migrate partitions --table %s, every day", visible.Shell(name))
	if !today.IsZero() {
		d.find(p.Name, Refuse, fix, "%s has partitions by day, and none for today, %s (UTC): each INSERT fails", name, today.Format(time.DateOnly))
	}
	if !tomorrow.IsZero() {
		d.find(p.Name, Warn, fix, "%s has partitions by day, and none for tomorrow, %s (UTC): each INSERT of that day fails, unless a DEFAULT partition takes its row", name, tomorrow.Format(time.DateOnly))
	}
	return nil
}
