package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

const openLetterSQL = `/* torture.open_letter */
SELECT coalesce((SELECT id FROM dispatch.dead_letter WHERE process_name = $1 AND resolution IS NULL ORDER BY id DESC LIMIT 1), 0)`

// replayBy has a record refused for good, waits for it to be put aside, and has operators deliver it after all. What comes
// of that is another matter: its receiver and the database are broken by others.
func replayBy(operators func(*field, context.Context, plan.Fault, int64)) kind {
	return func(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
		return f.onLetter(ctx, fault, begin, func(id int64) { operators(f, ctx, fault, id) })
	}
}

func (f *field) onLetter(ctx context.Context, fault plan.Fault, begin func(), act func(id int64)) error {
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
			act(id)
			return nil
		}
	}
	return nil // its worker did not live to put it aside, and the next one delivered it
}

const asidePatience = 5 * time.Second

// openLetter is the newest one of a process; 0 if there is none.
func (f *field) openLetter(ctx context.Context, process string) (id int64, err error) {
	err = f.database.do(ctx, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, openLetterSQL, process).Scan(&id) })
	return id, err
}

// replayLetter is one operator's.
func (f *field) replayLetter(ctx context.Context, _ plan.Fault, id int64) {
	_ = f.letterCommand(ctx, "replay", strconv.FormatInt(id, 10))
}

// letterCommand runs a command as an operator would. of says which letters it is about.
func (f *field) letterCommand(ctx context.Context, command string, of ...string) error {
	args := append([]string{"dead-letter", command, "-c", f.dir.Path(f.desk.config()), "--actor", history.Operator, "--reason", "by the plan"}, of...)
	if command == "replay" {
		args = append(args, "--timeout", history.ReplayTimeout.String())
	}
	out, err := f.dir.Command(ctx, f.desk.program, args...).CombinedOutput()
	if err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	return nil
}
