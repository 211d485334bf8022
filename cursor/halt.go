package cursor

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// stop halts a process over its server, and not over a record. A paused process stays paused. from is where the
// records begin that an operator has to decide about.
func (s *Store) stop(ctx context.Context, conn *pgxpool.Conn, row lockedRow, class Class, from Position, reason string) error {
	state := Halted
	if row.State == Paused {
		state = Paused
	}
	results, err := tables.Flush(ctx, conn.Conn(), tables.Pin,
		s.db.Statement(failSQL,
			row.Process, row.Epoch.text(), string(from), "", "0", "0", "0", clean(reason), string(class), string(state)),
		s.db.Statement(eventSQL, row.Process, s.config.Worker, "halt", clean(reason), string(row.Position), string(row.Position), tables.Null, tables.Null, string(class)),
		tables.Commit)
	if err == nil && !tables.Committed(results, 3) {
		err = tables.ErrNotAsLocked
	}
	if err != nil {
		return err
	}
	row.State = state
	return row.Workable()
}
