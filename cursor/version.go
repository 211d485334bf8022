package cursor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// version is the place of the newest version of a row: its ctid, "(page,item)". A checkpoint finds the row by
// it. The index has an entry for each page with a version that some snapshot may still see. So while a long
// dump or report runs, a search by name reads more with each checkpoint.
type version string

func (v version) page() string {
	page, _, _ := strings.Cut(string(v), ",")
	return page
}

// The worker learns the version that it locks. An advance makes a new version. Only the server knows it when
// the next lock is asked for, because that is in the same flush; so the session keeps it. If it is missing, or
// is no longer the newest version, the row is searched by its name.
const (
	// atVersion is a condition of WHERE.
	atVersion = `
		AND ctid OPERATOR(pg_catalog.=) $6`
	// noteVersion is an expression of RETURNING.
	noteVersion = `pg_catalog.set_config('ordered_dispatcher.version', ctid::pg_catalog.text, false)`
	// notedVersion is the version that the session has kept; no row has page 0, item 0.
	notedVersion = `(CASE WHEN ` + notedSetting + ` OPERATOR(pg_catalog.<>) '' THEN ` + notedSetting + ` ELSE '(0,0)' END)::pg_catalog.tid`
	notedSetting = `pg_catalog.current_setting('ordered_dispatcher.version', true)`
)

// replanInterval is the shortest time between two plannings of the statements of a checkpoint.
const replanInterval = time.Second

// moved takes note of the version of the row that is locked. A healthy row stays on its page, since PostgreSQL
// reuses the room of dead versions. If it does not stay, the table grows, and a plan that was made for one page
// (reading all of it) is too slow for many.
func (l *Lease) moved(ctx context.Context, to version) error {
	from := l.at
	l.at = to
	if to.page() == from.page() || time.Since(l.planned) < replanInterval {
		return nil
	}
	l.planned = time.Now()
	s := l.store
	err := answer.Within(ctx, s.db.Timeout, func(ctx context.Context) error {
		return prepared.Again(ctx, l.conn.Conn(), s.relockSQL, s.advanceSQL, s.advanceWithSQL)
	})
	if err != nil {
		return fmt.Errorf("plan the next checkpoints: %w", err)
	}
	return nil
}
