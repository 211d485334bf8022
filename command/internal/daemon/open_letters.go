package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// openLetters counts the open dead letters by process. It returns nil if the role may not read them, as with grants
// of an earlier version.
func openLetters(ctx context.Context, store *cursor.Store, processes []string) (map[string]int64, error) {
	counts, err := operator.New(store).CountDeadLetters(ctx, processes)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "42501" {
		return nil, nil
	}
	return counts, err
}

// lettersNote names the open dead letters; "" if there are none.
func (s Status) lettersNote() string {
	if s.DeadLetters == nil {
		return ""
	}
	next := "next: `ordered-dispatcher dead-letter list " + visible.Shell(s.Process) + "`"
	switch n := *s.DeadLetters; {
	case n == 0:
		return ""
	case n == 1:
		return "1 dead letter is open; " + next
	case n >= operator.MaxCountedLetters:
		return fmt.Sprintf("%d dead letters or more are open; %s", n, next)
	default:
		return fmt.Sprintf("%d dead letters are open; %s", n, next)
	}
}

// letters sets the gauges of the open dead letters of all processes.
func (c *counter) letters(ctx context.Context) {
	asking, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var names []string
	for name := range c.watched {
		names = append(names, name)
	}
	counts, err := operator.New(c.store).CountDeadLetters(asking, names)
	if ctx.Err() != nil {
		return
	}
	if c.logged.changes("", err) && err != nil {
		c.log.Warn("the open dead letters cannot be counted: the metrics leave them out", "err", err)
	}
	for _, name := range names {
		if err != nil {
			c.metrics.NoDeadLetters(name)
			continue
		}
		c.metrics.DeadLetters(name, counts[name])
	}
}
