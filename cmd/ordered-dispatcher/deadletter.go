package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon"
)

type deadLetterCommand struct {
	List    deadLetterList    `cmd:"" help:"List the open dead letters."`
	Show    deadLetterShow    `cmd:"" help:"Show a dead letter, or its payload."`
	Replay  deadLetterReplay  `cmd:"" help:"Deliver a dead letter after all, out of its turn: with its old sequence and dedup key, in a new epoch. The worker of its process stands aside meanwhile."`
	Discard deadLetterDiscard `cmd:"" help:"Mark a dead letter as never to be delivered. Its row stays."`
}

// withDeadLetters opens them for a command.
func withDeadLetters(ctx context.Context, config daemon.Config, do func(context.Context, *daemon.DeadLetters) error) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	letters, err := daemon.NewDeadLetters(ctx, config)
	if err != nil {
		return err
	}
	defer letters.Close()
	return do(ctx, letters)
}

type deadLetterList struct {
	optionalFile
	Process string `arg:"" optional:"" help:"Of this process alone."`
	All     bool   `help:"Also those that were replayed or discarded."`
	JSON    bool   `name:"json" help:"Print JSON on one line. Numbers of 64 bits are strings."`
	Limit   int    `default:"100" placeholder:"N" help:"The first N."`
}

// Run is called by kong.
func (c *deadLetterList) Run(ctx context.Context, sys system) error {
	if c.Limit < 1 || c.Limit > daemon.MaxDeadLetters {
		return &daemon.UsageError{Err: fmt.Errorf("--limit must be within 1 and %d", daemon.MaxDeadLetters)}
	}
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	return withDeadLetters(ctx, config, func(ctx context.Context, letters *daemon.DeadLetters) error {
		all, err := letters.List(ctx, c.Process, c.All, c.Limit)
		if err != nil {
			return err
		}
		if c.JSON {
			return daemon.PrintDeadLettersJSON(sys.stdout, all)
		}
		if len(all) == 0 && !c.All {
			_, err := fmt.Fprintln(sys.stdout, "no open dead letters; --all lists those that were replayed or discarded too")
			return err
		}
		return daemon.PrintDeadLetters(sys.stdout, all)
	})
}

type deadLetterShow struct {
	optionalFile
	ID      int64 `arg:"" help:"Number of the dead letter, as list shows it."`
	Payload bool  `help:"Print its payload alone, byte for byte."`
}

// Run is called by kong.
func (c *deadLetterShow) Run(ctx context.Context, sys system) error {
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	return withDeadLetters(ctx, config, func(ctx context.Context, letters *daemon.DeadLetters) error {
		letter, err := letters.Show(ctx, c.ID)
		if err != nil {
			return err
		}
		if c.Payload {
			_, err := sys.stdout.Write(letter.Payload)
			return err
		}
		return daemon.PrintDeadLetterJSON(sys.stdout, letter)
	})
}

// resolution are the flags of what decides about a dead letter.
type resolution struct {
	decider
	ID     int64   `arg:"" help:"Number of the dead letter, as list shows it."`
	Expect *string `placeholder:"POSITION" help:"Do nothing unless the dead letter is the record at this position, as list shows it."`
	DryRun bool    `help:"Change nothing, and say what would be done."`
}

func (r resolution) decision(reason string) cursor.Decision {
	return cursor.Decision{Actor: r.actor(), Reason: reason, Expect: position(r.Expect), DryRun: r.DryRun}
}

// say tells what became of a dead letter, or would.
func (r resolution) say(w io.Writer, letter cursor.DeadLetter, done, rehearsed string) error {
	if !r.DryRun {
		_, err := io.WriteString(w, daemon.Visible(fmt.Sprintf("record %s of %s, dead letter %d, %s\n", letter.RecordID, letter.Process, letter.ID, done)))
		return err
	}
	_, err := io.WriteString(w, daemon.Visible(fmt.Sprintf("dry run, nothing is changed. Without --dry-run: record %s of %s, put aside at position %s after %s, %s\n"+
		"to do this if it is still open by then: --expect=%s instead of --dry-run\n", letter.RecordID, letter.Process, letter.Position,
		daemon.Attempts(letter.Failure.Attempts), rehearsed, daemon.SingleQuoted(string(letter.Position)))))
	return err
}

type deadLetterReplay struct {
	file
	resolution
	anyReason
	Timeout time.Duration `default:"1m" help:"How long to wait for the worker to stand aside, and for the receiver."`
}

// Run is called by kong.
func (c *deadLetterReplay) Run(ctx context.Context, sys system, logger *slog.Logger) error {
	if err := waits(c.Timeout); err != nil {
		return err
	}
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	d := c.decision(c.Reason)
	d.Timeout = c.Timeout
	return withDeadLetters(ctx, config, func(ctx context.Context, letters *daemon.DeadLetters) error {
		letter, err := letters.Replay(ctx, c.ID, d, sys.stdout, logger)
		if err != nil {
			return err
		}
		out := sys.stderr // stdout belongs to the stdout sink
		if c.DryRun {
			out = sys.stdout
		}
		return c.say(out, letter, "is delivered", "is delivered once more")
	})
}

type deadLetterDiscard struct {
	optionalFile
	resolution
	needReason
}

// Run is called by kong.
func (c *deadLetterDiscard) Run(ctx context.Context, sys system) error {
	if err := c.given(); err != nil {
		return err
	}
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	return withDeadLetters(ctx, config, func(ctx context.Context, letters *daemon.DeadLetters) error {
		letter, err := letters.Discard(ctx, c.ID, c.decision(c.Reason))
		if err != nil {
			return err
		}
		return c.say(sys.stdout, letter, "is discarded: it is never delivered", "is never delivered")
	})
}
