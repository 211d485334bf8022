package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// haltInterval is how often the cell's operator looks for processes that have halted.
const haltInterval = 300 * time.Millisecond

const haltsSQL = `/* torture.halts */
SELECT process_name, coalesce(failed_class, ''), coalesce(failed_error, '')
FROM dispatch.cursor
WHERE state = 'halted' OR failed_class IN ('clock', 'restored', 'old_primary', 'reset') OR failed_error LIKE '%the target may have records that the source has lost%'
ORDER BY process_name
LIMIT 1000`

// operate is an operator who does what a halted process asks for, until ctx ends.
func (c *cell) operate(ctx context.Context) {
	for pause(ctx, haltInterval) {
		halts, err := c.halts(ctx)
		if err != nil {
			c.log.Debug("cell", "operator", "cannot look", "err", err)
		}
		for _, h := range halts {
			if c.decide(ctx, h) == forAll {
				break
			}
		}
	}
}

// halts are the processes that wait for the operator. The database may be away, and it may hang.
func (c *cell) halts(ctx context.Context) (all []halt, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	err = c.database.do(ctx, func(conn *pgx.Conn) (err error) {
		rows, _ := conn.Query(ctx, haltsSQL)
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[halt])
		return err
	})
	return all, err
}

// proposal is the seek that an error proposes where rows were stamped that sort before the cursor.
var proposal = regexp.MustCompile("`ordered-dispatcher seek \\S+ --to(?:-position)? ('[^']*'|\\S+)")

// halt is a process that is halted, and why.
type halt struct{ Process, Class, Reason string }

// scope is for whom an operator has decided.
type scope int

const (
	forOne scope = iota
	forAll
)

// decide answers for a process that is halted, or paused where the clock was behind, as its error asks for: from where rows would be missed, else from where it stands. After a
// restore it does so for all processes at once, or for each, in turn with the servers.
func (c *cell) decide(ctx context.Context, h halt) (of scope) {
	if found := correction.FindStringSubmatch(h.Reason); found != nil {
		ctx, cancel := context.WithTimeout(ctx, commandTimeout)
		defer cancel()
		err := c.correct(ctx, h.Process, h.Reason, found[0], found[1])
		c.log.Info("cell", "operator", "compares the target with the table", "process", h.Process, "err", err)
		return forOne
	}
	args := []string{"retry", h.Process}
	if found := proposal.FindStringSubmatch(h.Reason); found != nil && !strings.Contains(h.Reason, "`ordered-dispatcher retry ") {
		args = []string{"seek", h.Process, "--to-position", strings.Trim(found[1], "'")}
	}
	if (h.Class == "restored" || h.Class == "old_primary") && c.server()%2 == 0 {
		args, of = []string{"restored", "--all"}, forAll
	}
	if h.Class == "old_primary" {
		args = append(args, "--fenced")
	}
	if h.Class == "clock" && args[0] == "retry" && !c.clockHasPassed(ctx, h.Process) {
		return forOne
	}
	out, err := c.command(ctx, args...)
	if err != nil {
		c.log.Info("cell", "operator", args, "err", err, "out", out)
		return of
	}
	c.log.Info("cell", "operator", args, "because", h.Reason)
	return of
}

const commandTimeout = 30 * time.Second

// command runs one of the program's own, as an operator would.
func (c *cell) command(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	args = append(args, "-c", c.dir.Path(desk+".yaml"), "--actor", history.Operator, "--reason", "by the plan", "--timeout", "10s")
	out, err := c.dir.Command(ctx, c.program, args...).CombinedOutput()
	return string(out), err
}

// seekBack has all be sent again that follows a position. It is tried again: the process may be busy, or its database away.
func (c *cell) seekBack(ctx context.Context, process, to string) error {
	args := []string{"seek", process, "--to-position", to}
	if to == "" {
		args = []string{"seek", process, "--to-start"}
	}
	var out string
	var err error
	for range 10 {
		if out, err = c.command(ctx, args...); err == nil || !pause(ctx, 500*time.Millisecond) {
			return err
		}
	}
	return fmt.Errorf("seek %s back: %w\n%s", process, err, out)
}
