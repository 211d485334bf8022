package cursor

import (
	"context"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
)

// WriteOff is Advance over n records that may have been sent and are gone from the source; the last of them was
// at position to. They keep their numbers, so that no other record gets one of them. It leaves an audit row.
func (l *Lease) WriteOff(ctx context.Context, to Position, n int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.over(); err != nil {
		return l.store.db.Explain("advance", l.row.Process, err)
	}
	next := l.row
	next.Position, next.Sequence, next.Failure = to, l.row.Sequence+n, nil
	reason := fmt.Sprintf("gone from the source after they may have been sent: %d of the sequence, from %d on", n, l.row.Sequence+1)
	event := l.store.db.Statement(eventSQL,
		l.row.Process, l.store.config.Worker, "write_off", reason, string(l.row.Position), string(to), tables.Null, tables.Null, tables.Null)
	ok, err := l.checkpoint(ctx, next, tables.Pin, event, l.advanced(to, n))
	if !ok {
		return l.notAdvanced(to, err)
	}
	return err
}
