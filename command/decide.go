package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
)

// decision holds the flags of all commands that change a cursor.
type decision struct {
	optionalFile
	decider
	Process string        `arg:"" help:"Name of the process."`
	Expect  *string       `placeholder:"POSITION" help:"${expect}"`
	Timeout time.Duration `default:"${timeout}" help:"How long to wait for the worker's next checkpoint, or for another session that has locked the row."`
	DryRun  bool          `help:"Change nothing and do not wait. Show which records would be sent again or passed over."`
}

// expectCursor is the help of --expect. Commands about the failing record have another one, in cli.
const expectCursor = "Do nothing unless the cursor is at this position, from status --wide. --dry-run prints it."

// decider is the name under which a decision is noted.
type decider struct {
	Actor string `placeholder:"NAME" help:"Your name, for the history. Default: user and host."`
}

func (d decider) actor() string {
	if d.Actor == "" {
		return daemon.Actor()
	}
	return d.Actor
}

// anyReason and needReason are the flag --reason: one where it may be left out, one where it may not.
type anyReason struct {
	Reason string `placeholder:"TEXT" help:"Reason, for the history."`
}

type needReason struct {
	Reason string `placeholder:"TEXT" help:"Reason, for the history. Required without --dry-run."`
}

// reason is the flag --reason of a command.
type reason interface {
	text() string
	// given returns an error if the command must have a reason, and it is missing.
	given() error
}

func (r anyReason) text() string { return r.Reason }
func (anyReason) given() error   { return nil }

func (r needReason) text() string { return r.Reason }

func (r needReason) given() error {
	if strings.TrimSpace(r.Reason) == "" {
		return &daemon.UsageError{Err: errors.New("--reason is missing or empty: give the reason, which the audit keeps")}
	}
	return nil
}

// left returns the flag that a rehearsal may leave out and the command itself may not; "" if it is there.
func left(missing error) string {
	if missing == nil {
		return ""
	}
	return " --reason=TEXT"
}

// verb is one kind of decision of an operator.
type verb func(*daemon.Operator, context.Context, cursor.Decision) (daemon.Outcome, error)

func (c decision) run(ctx context.Context, sys system, r reason, do verb) error {
	return c.carryOut(ctx, sys, r, func(ctx context.Context, config daemon.Config, d cursor.Decision) (daemon.Outcome, error) {
		operator, err := daemon.NewOperator(ctx, config, c.Process)
		if err != nil {
			return daemon.Outcome{}, err
		}
		defer operator.Close()
		return do(operator, ctx, d)
	})
}

// carryOut reads the flags and the file, carries out the decision, and prints its result.
func (c decision) carryOut(ctx context.Context, sys system, r reason, do func(context.Context, daemon.Config, cursor.Decision) (daemon.Outcome, error)) error {
	missing := r.given()
	if missing != nil && !c.DryRun {
		return missing
	}
	d, err := c.decision(r.text())
	if err != nil {
		return err
	}
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	outcome, err := do(ctx, config, d)
	if err != nil {
		return err
	}
	if c.DryRun {
		return sys.out().Rehearsal(outcome, left(missing))
	}
	return sys.out().Outcome(outcome)
}

func (c decision) decision(reason string) (cursor.Decision, error) {
	return cursor.Decision{Actor: c.actor(), Reason: reason, Expect: position(c.Expect), Timeout: c.Timeout, DryRun: c.DryRun}, waits(c.Timeout)
}

// position returns the position that a flag gives; nil if the flag is not set.
func position(flag *string) *cursor.Position {
	if flag == nil {
		return nil
	}
	p := cursor.Position(*flag)
	return &p
}

// waits checks --timeout.
func waits(timeout time.Duration) error {
	if err := knob.Check(cursor.Decision{Timeout: timeout}); err != nil {
		return &daemon.UsageError{Err: fmt.Errorf("--%w", err)}
	}
	return nil
}

type pauseCommand struct {
	decision
	anyReason
}

// Run is called by kong.
func (c *pauseCommand) Run(ctx context.Context, sys system) error {
	return c.run(ctx, sys, c.anyReason, (*daemon.Operator).Pause)
}

type resumeCommand struct {
	decision
	anyReason
}

// Run is called by kong.
func (c *resumeCommand) Run(ctx context.Context, sys system) error {
	return c.run(ctx, sys, c.anyReason, (*daemon.Operator).Resume)
}

// fenced is the flag --fenced, for decisions that may be about an old primary.
type fenced struct {
	Fenced bool `help:"This server is the only primary: a later one is fenced, or gone. Needed where the process halted on what may be an old primary."`
}

type retryCommand struct {
	decision
	anyReason
	fenced
}

// Run is called by kong.
func (c *retryCommand) Run(ctx context.Context, sys system) error {
	return c.run(ctx, sys, c.anyReason, func(o *daemon.Operator, ctx context.Context, d cursor.Decision) (daemon.Outcome, error) {
		d.Fenced = c.Fenced
		return o.Retry(ctx, d)
	})
}

type skipCommand struct {
	decision
	needReason
}

// Run is called by kong.
func (c *skipCommand) Run(ctx context.Context, sys system) error {
	return c.run(ctx, sys, c.needReason, (*daemon.Operator).Skip)
}

// target is the place to seek to: exactly one of its flags is set.
type target struct {
	ToID       *string `name:"to-id" xor:"target" required:"" placeholder:"ID" help:"Deliver the record with this id next."`
	ToTime     *string `xor:"target" required:"" placeholder:"TIME" help:"Deliver the first record created at this time or later next. RFC 3339: 2026-11-20T12:00:00Z."`
	ToPosition *string `xor:"target" required:"" placeholder:"POSITION" help:"Deliver the first record after this position next."`
	ToStart    bool    `aliases:"to-beginning" xor:"target" required:"" help:"Deliver every record of the table again."`
	ToEnd      bool    `xor:"target" required:"" help:"Deliver only records that are stamped from now on."`
}

func (t target) target() (daemon.Target, error) {
	switch {
	case t.ToID != nil:
		return daemon.ToRecord(*t.ToID), nil
	case t.ToPosition != nil:
		return daemon.ToPosition(cursor.Position(*t.ToPosition)), nil
	case t.ToEnd:
		return daemon.ToEnd, nil
	case t.ToTime != nil:
		at, err := time.Parse(time.RFC3339, strings.Replace(*t.ToTime, " ", "T", 1))
		if err != nil {
			return nil, &daemon.UsageError{Err: fmt.Errorf("--to-time %q is not a time with a zone, such as 2026-11-20T12:00:00Z or 2026-11-20T12:00:00.123456+01:00", *t.ToTime)}
		}
		return daemon.ToTime(at), nil
	default:
		return daemon.ToBeginning, nil
	}
}

type seekCommand struct {
	decision
	needReason
	fenced
	target
	Pruned bool `help:"Go to a place although retention has removed rows after it. Only those that are in the table are delivered."`
}

// Run is called by kong.
func (c *seekCommand) Run(ctx context.Context, sys system) error {
	if path, _ := c.path(sys); path == "" {
		return &daemon.UsageError{Err: fmt.Errorf("only the source of a process can make a position: name the configuration with -c%s", looked())}
	}
	to, err := c.target.target()
	if err != nil {
		return err
	}
	return c.run(ctx, sys, c.needReason, func(o *daemon.Operator, ctx context.Context, d cursor.Decision) (daemon.Outcome, error) {
		d.Fenced, d.Pruned = c.Fenced, c.Pruned
		return o.Seek(ctx, to, d)
	})
}
