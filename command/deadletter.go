package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

type deadLetterCommand struct {
	List    deadLetterList    `cmd:"" help:"List the open dead letters."`
	Show    deadLetterShow    `cmd:"" help:"Show a dead letter, or its payload."`
	Replay  deadLetterReplay  `cmd:"" help:"Deliver dead letters late, in the order of their positions, until one fails. Each keeps its sequence and dedup key, in a new epoch. The worker of the process waits meanwhile."`
	Discard deadLetterDiscard `cmd:"" help:"Mark dead letters as never to be delivered. Their rows are kept."`
}

// withDeadLetters opens the dead letters for one command, and closes them after it.
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
	Process string `arg:"" optional:"" help:"Only those of this process."`
	Named   string `name:"process" hidden:"" help:"The same, as replay and discard have it."`
	All     bool   `help:"Include the ones that were replayed or discarded."`
	form
	Limit int `default:"100" placeholder:"N" help:"List at most N. Default: ${default}."`
}

// Run is called by kong.
func (c *deadLetterList) Run(ctx context.Context, sys system) error {
	if c.Limit < 1 || c.Limit > daemon.MaxDeadLetters {
		return &daemon.UsageError{Err: fmt.Errorf("--limit must be between 1 and %d", daemon.MaxDeadLetters)}
	}
	if c.Process != "" && c.Named != "" {
		return &daemon.UsageError{Err: errors.New("name the process once")}
	}
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	return withDeadLetters(ctx, config, func(ctx context.Context, letters *daemon.DeadLetters) error {
		all, err := letters.List(ctx, cmp.Or(c.Process, c.Named), c.All, c.Limit)
		if err != nil {
			return err
		}
		if c.JSON {
			return daemon.PrintDeadLettersJSON(sys.stdout, all)
		}
		if len(all) == 0 && !c.All {
			_, err := fmt.Fprintln(sys.out(), "no open dead letters; --all also lists the replayed and discarded ones")
			return err
		}
		return c.page(sys).DeadLetters(all)
	})
}

type deadLetterShow struct {
	optionalFile
	ID      int64 `arg:"" help:"Number of the dead letter, from list."`
	Payload bool  `help:"Print only the payload, byte for byte. On a terminal, control characters are escaped."`
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
		if c.Payload && letter.Withheld {
			return fmt.Errorf("this role may not read the payload of dead letter %d: `ordered-dispatcher grants --operator` names the right, SELECT (headers, payload)", c.ID)
		}
		if c.Payload {
			payload := letter.Payload
			if visible.IsTerminal(sys.stdout) {
				payload = []byte(visible.Text(string(payload)))
			}
			_, err := sys.stdout.Write(payload)
			return err
		}
		return daemon.PrintDeadLetterJSON(sys.stdout, letter)
	})
}

// resolution holds the flags of commands that decide about dead letters.
type resolution struct {
	decider
	ID      []int64 `arg:"" optional:"" help:"Numbers of dead letters of one process, from list."`
	Process string  `placeholder:"NAME" help:"Dead letters of this process."`
	All     bool    `xor:"which" help:"All open dead letters of the process."`
	Error   *string `xor:"which" placeholder:"TEXT" help:"Only dead letters whose error contains this text."`
	Expect  *string `placeholder:"POSITION" help:"Do nothing unless the dead letter is the record at this position, from list --wide."`
	DryRun  bool    `help:"Change nothing. Show what would be done."`
}

func (r resolution) decision(reason string) cursor.Decision {
	return cursor.Decision{Actor: r.actor(), Reason: reason, Expect: position(r.Expect), DryRun: r.DryRun}
}

func (r resolution) alternatives() string {
	return "(<id> ... | --process=NAME (--all | --error=TEXT))"
}

// selection returns which dead letters the flags mean.
func (r resolution) selection() (daemon.Selection, error) {
	s := daemon.Selection{Process: r.Process, IDs: r.ID}
	if r.Error != nil {
		s.Error = *r.Error
	}
	fault := ""
	switch filtered := r.All || r.Error != nil; {
	case filtered && len(r.ID) > 0:
		fault = "give numbers of dead letters, or --all, or --error TEXT"
	case filtered && r.Process == "":
		fault = "--all and --error need --process NAME"
	case !filtered && len(r.ID) == 0:
		fault = "name the dead letters: give their numbers, or --process NAME with --all or --error TEXT"
	case r.Error != nil && *r.Error == "":
		fault = "--error is empty: --all means every open dead letter"
	case r.Expect != nil && !r.one():
		fault = "--expect needs the number of one dead letter"
	}
	if fault != "" {
		return s, &daemon.UsageError{Err: errors.New(fault)}
	}
	return s, nil
}

func (r resolution) one() bool { return len(r.ID) == 1 }

// outcome is what a command does to dead letters: the words for one of them and for all, and the words of a rehearsal
// for one and for several.
type outcome struct {
	cursor.Resolution
	each, all, one, several string
	more                    string // flags that a rehearsal may leave out
}

// resolver decides about dead letters, in order. It calls done after each.
type resolver func(letters []cursor.DeadLetter, done func(cursor.DeadLetter) error) error

// resolve selects the dead letters, has do decide about them, and writes to w how each of them ended, or would end.
func (r resolution) resolve(ctx context.Context, letters *daemon.DeadLetters, d cursor.Decision, o outcome, w screen.Page, do resolver) error {
	s, err := r.selection()
	if err != nil {
		return err
	}
	selected, err := letters.Select(ctx, s, d, o.Resolution)
	if err != nil {
		return err
	}
	if len(selected) == 0 {
		_, err := fmt.Fprintln(w, s.None())
		return err
	}
	if r.DryRun && !r.one() {
		if err := w.Selection(selected, o.several); err != nil {
			return err
		}
	}
	err = do(selected, func(l cursor.DeadLetter) error { return r.say(w, l, o) })
	if err == nil && len(selected) > 1 && !r.DryRun {
		_, err = io.WriteString(w, visible.Inline(fmt.Sprintf("%s of %s %s", daemon.Letters(len(selected)), selected[0].Process, o.all))+"\n")
	}
	return err
}

// say writes how a dead letter ended, or would end.
func (r resolution) say(w io.Writer, letter cursor.DeadLetter, o outcome) error {
	text := visible.Inline(fmt.Sprintf("record %s of %s, dead letter %d, %s", visible.Cut(letter.RecordID), letter.Process, letter.ID, o.each)) + "\n"
	switch {
	case r.DryRun && !r.one(): // the list above shows it
		return nil
	case r.DryRun:
		would := fmt.Sprintf("record %s of %s, put aside at position %s after %s, %s", visible.Cut(letter.RecordID), letter.Process, visible.Cut(string(letter.Position)),
			letter.Failure.Tries(), o.one)
		text = fmt.Sprintf("dry run, nothing is changed. Without --dry-run: %s\nto do it only if it is still open: --expect=%s%s instead of --dry-run\n",
			visible.Inline(would), visible.Quoted(string(letter.Position)), o.more)
	}
	_, err := io.WriteString(w, text)
	return err
}

type deadLetterReplay struct {
	file
	resolution
	anyReason
	Timeout time.Duration `default:"1m" help:"How long to wait for the worker and the receiver, for each dead letter."`
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
	said := sys.err() // stdout belongs to the stdout sink
	if c.DryRun {
		said = sys.out()
	}
	delivered := outcome{cursor.Replayed, "is delivered", "are delivered", "would be delivered once more", "would be delivered once more, in this order until one fails", ""}
	return withDeadLetters(ctx, config, func(ctx context.Context, letters *daemon.DeadLetters) error {
		return c.resolve(ctx, letters, d, delivered, said, func(selected []cursor.DeadLetter, done func(cursor.DeadLetter) error) error {
			return letters.Replay(ctx, selected, d, daemon.Output{Stdout: sys.stdout, Logger: logger}, done)
		})
	})
}

type deadLetterDiscard struct {
	optionalFile
	resolution
	needReason
	Timeout time.Duration `default:"${timeout}" help:"How long to wait for a lock on a dead letter, for each of them."`
}

// Run is called by kong.
func (c *deadLetterDiscard) Run(ctx context.Context, sys system) error {
	missing := c.given()
	if missing != nil && !c.DryRun {
		return missing
	}
	if err := waits(c.Timeout); err != nil {
		return err
	}
	config, err := c.load(sys)
	if err != nil {
		return err
	}
	d := c.decision(c.Reason)
	d.Timeout = c.Timeout
	discarded := outcome{cursor.Discarded, "is discarded: it is never delivered", "are discarded", "would be discarded, and never be delivered", "would be discarded, and never be delivered", left(missing)}
	return withDeadLetters(ctx, config, func(ctx context.Context, letters *daemon.DeadLetters) error {
		return c.resolve(ctx, letters, d, discarded, sys.out(), func(selected []cursor.DeadLetter, done func(cursor.DeadLetter) error) error {
			return letters.Discard(ctx, selected, d, done)
		})
	})
}
