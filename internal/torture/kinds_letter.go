package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/torture/plan"
)

const openLetterSQL = `/* torture.open_letter */
SELECT coalesce((SELECT id FROM dispatch.dead_letter WHERE process_name = $1 AND resolution IS NULL ORDER BY id DESC LIMIT 1), 0)`

// replay has a record refused for good, waits for it to be put aside, and has an operator deliver it after all. What comes
// of that is another matter: its receiver and the database are broken by others.
func replay(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	before, err := f.openLetter(ctx, fault.Process)
	if err != nil {
		return missed(err)
	}
	if err := answerBy(ctx, f, fault, begin); err != nil {
		return err
	}
	aside, cancel := context.WithTimeout(ctx, asidePatience)
	defer cancel()
	for pause(aside, 20*time.Millisecond) {
		if id, err := f.openLetter(aside, fault.Process); err == nil && id > before {
			pause(ctx, time.Duration(fault.Choice%500)*time.Millisecond)
			_ = f.replayLetter(ctx, id)
			return nil
		}
	}
	return nil // its worker did not live to put it aside, and the next one delivered it
}

const (
	asidePatience = 5 * time.Second
	replayTimeout = 5 * time.Second
)

// openLetter is the newest one of a process; 0 if there is none.
func (f *field) openLetter(ctx context.Context, process string) (id int64, err error) {
	err = f.database.do(ctx, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, openLetterSQL, process).Scan(&id) })
	return id, err
}

// replayLetter runs the command as an operator would.
func (f *field) replayLetter(ctx context.Context, id int64) error {
	out, err := f.dir.Command(ctx, f.desk.program, "dead-letter", "replay", strconv.FormatInt(id, 10), "-c", f.dir.Path(f.desk.config()),
		"--timeout", replayTimeout.String(), "--actor", "torture", "--reason", "by the plan").CombinedOutput()
	if err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	return nil
}
