package cursor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// version is where the newest version of a row lies: its ctid, "(page,item)". A checkpoint finds
// the row by it. The index has an entry for each page with a version that some snapshot may
// still see, so behind a long dump or report a search by name reads more with each checkpoint.
type version string

func (v version) page() string {
	page, _, _ := strings.Cut(string(v), ",")
	return page
}

// The worker learns of the version that it locks. What an advance makes of it only the server
// knows when the next lock is asked for, in the same flush: so the session keeps it. Where it
// is missing, or the version is not the newest any more, the row is searched by its name.
const (
	// atVersion is a condition.
	atVersion = `
		AND ctid OPERATOR(pg_catalog.=) $6`
	// noteVersion is an expression of RETURNING.
	noteVersion = `pg_catalog.set_config('ordered_dispatcher.version', ctid::pg_catalog.text, false)`
	// notedVersion is what it has kept; no row has page 0, item 0.
	notedVersion = `(CASE WHEN ` + notedSetting + ` OPERATOR(pg_catalog.<>) '' THEN ` + notedSetting + ` ELSE '(0,0)' END)::pg_catalog.tid`
	notedSetting = `pg_catalog.current_setting('ordered_dispatcher.version', true)`
)

// replanInterval is how often the statements of a checkpoint are planned anew, at the most.
const replanInterval = time.Second

// moved takes up the version of the row that is locked. A healthy row stays on its page, since
// PostgreSQL uses the room of dead versions again. If it does not, the table grows, and a plan
// that was made for one page (reading all of it) is too slow for many.
func (l *Lease) moved(ctx context.Context, to version) error {
	from := l.at
	l.at = to
	if to.page() == from.page() || time.Since(l.planned) < replanInterval {
		return nil
	}
	l.planned = time.Now()
	s := l.store
	err := answer.Within(ctx, s.config.answerTimeout(), func(ctx context.Context) error {
		return prepared.Again(ctx, l.conn.Conn(), s.relockSQL, s.advanceSQL, s.advanceWithSQL)
	})
	if err != nil {
		return fmt.Errorf("plan the next checkpoints: %w", err)
	}
	return nil
}
