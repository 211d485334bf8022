package processor

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Beginning and End are Start values of Config. Any other value except "" is a position.
const (
	Beginning cursor.Position = "beginning" // at the first record there is
	End       cursor.Position = "end"       // after everything stamped so far
)

// NoStartError ends a process that has no cursor yet, no Config.Start, and records that one start would send
// and the other would not. The process never guesses: it may be an old one with a new name, whose records were
// all sent.
type NoStartError struct {
	Process string
	// Records is how many records Beginning would send; End would send none of them.
	Records int64
	// More reports that there are further records, which were not counted.
	More bool
	// MayBeLost reports that the server was promoted, or the database restored. So the process may have
	// delivered before, under a cursor that is lost.
	MayBeLost bool
}

func (e *NoStartError) Error() string {
	if e.MayBeLost {
		return fmt.Sprintf("process %q has no cursor, and %s. If it has never run, say where it starts: `start: beginning` sends %s, `start: end` sends 0 of them", e.Process, lostFix(e.Process), e.Count())
	}
	return fmt.Sprintf("process %q has no cursor yet. Say where it starts: `start: beginning` sends %s, `start: end` sends 0 of them. "+
		"If it is an old process with a new name, keep its cursor: `ordered-dispatcher process rename OLD %s`", e.Process, e.Count(), visible.Shell(e.Process))
}

// lostFix is the reason why a cursor may be lost, and what to do.
func lostFix(process string) string {
	return fmt.Sprintf("a standby was promoted or the database restored: if the process has delivered before, its cursor is lost. Then compare what receivers have with the table, "+
		"and `ordered-dispatcher seek %s --to-id ID -c FILE --reason …` makes it anew at the first row that they do not have", visible.Shell(process))
}

// Count is the number of records as a text for people.
func (e *NoStartError) Count() string {
	switch {
	case e.More:
		return fmt.Sprintf("%d records or more", e.Records)
	case e.Records == 1:
		return "1 record"
	default:
		return fmt.Sprintf("%d records", e.Records)
	}
}

func isNoStart(err error) bool {
	var noStart *NoStartError
	return errors.As(err, &noStart)
}

// vanished is the error for a row that existed and is gone, with the reason.
func (p *Process) vanished(ctx context.Context, err error) error {
	if past := p.config.Store.Past(ctx, p.config.Process); errors.Is(past, cursor.ErrRenamed) {
		return fmt.Errorf("%w while this worker ran: stop it, and run the process under its new name", past)
	}
	return fmt.Errorf("%w: its row was deleted while the process ran, or is lost with the commits that a promoted standby had not received, or that a backup does not have. "+
		"Nothing is delivered without it. If it was deleted, put it back, or give it up with `ordered-dispatcher process forget %s` and start the worker again. "+
		"If it is lost: compare what receivers have with the table, then `ordered-dispatcher seek %[2]s --to-id ID -c FILE --reason …` makes it anew at the first row that they do not have", err,
		visible.Shell(p.config.Process))
}

// create makes or places the cursor at Config.Start.
func (p *Process) create(ctx context.Context, insert func(context.Context, cursor.Position) (bool, error)) error {
	at, err := p.start(ctx)
	if err != nil {
		return err
	}
	created, err := insert(ctx, at)
	if created {
		p.log.Info("cursor created", "position", visible.Cut(string(at)))
	}
	return err
}

func (p *Process) insert(ctx context.Context, at cursor.Position) (bool, error) {
	anew, err := p.keysMayRepeat(ctx)
	if err != nil {
		return false, err
	}
	create := p.config.Store.Create
	switch {
	case anew:
		create = p.config.Store.CreateAnew
	case p.config.Recreate:
		create = p.config.Store.Recreate
	}
	return create(ctx, p.config.Process, at)
}

func (p *Process) place(ctx context.Context, at cursor.Position) (bool, error) {
	anew, err := p.keysMayRepeat(ctx)
	if err != nil {
		return false, err
	}
	if anew {
		return p.config.Store.PlaceAnew(ctx, p.config.Process, at)
	}
	return p.config.Store.Place(ctx, p.config.Process, at)
}

func (p *Process) keysMayRepeat(ctx context.Context) (bool, error) {
	source, ok := p.config.Source.(Repeater)
	if !ok || !p.together() {
		return false, nil
	}
	return KeysMayRepeat(ctx, p.config.Store, source, p.config.Process)
}

// KeysMayRepeat reports whether ids have started again since the cursor of a process was given up (see
// cursor.Store.Forgotten), or may have. Then the next cursor has to begin a history: CreateAnew, PrepareAnew,
// PlaceAnew or SeekAnew.
func KeysMayRepeat(ctx context.Context, store *cursor.Store, source Repeater, process string) (bool, error) {
	at, horizon, err := store.Forgotten(ctx, process)
	if errors.Is(err, cursor.ErrUnknown) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return source.KeysMayRepeat(ctx, at, horizon)
}

// start is the position of a new cursor.
func (p *Process) start(ctx context.Context) (cursor.Position, error) {
	switch at := p.config.Start; at {
	case "":
		return "", p.mayBegin(ctx)
	case Beginning:
		return "", nil
	case End:
		// New has checked that the source is an Ender.
		at, err := p.config.Source.(Ender).End(ctx)
		if err != nil {
			return "", fmt.Errorf("find the end of the source: %w", err)
		}
		return at, nil
	default:
		// A position of another source would stay in the row for good.
		if _, err := p.config.Source.Read(ctx, at, 1); err != nil {
			return "", fmt.Errorf("start at position %q: %w", at, err)
		}
		return at, nil
	}
}

// better returns the better of two reasons not to begin: that the name was used before. If another worker or an
// operator has made the cursor by then, there is no reason.
func (p *Process) better(ctx context.Context, err error) error {
	if !isNoStart(err) {
		return p.renamed(err)
	}
	switch past := p.config.Store.Past(ctx, p.config.Process); {
	case errors.Is(past, cursor.ErrExists):
		return nil
	case past != nil && !p.config.Recreate:
		return p.renamed(past)
	default:
		return err
	}
}

// renamed adds to cursor.ErrRenamed what to do.
func (p *Process) renamed(err error) error {
	if !errors.Is(err, cursor.ErrRenamed) {
		return err
	}
	return fmt.Errorf("process %q: %w. Give the process that name in its configuration, and start the worker again. "+
		"If this is another process, free its name with `ordered-dispatcher process forget %s --reason …`", p.config.Process, err, visible.Shell(p.config.Process))
}

// mayBegin refuses to choose a start where the choice makes a difference.
func (p *Process) mayBegin(ctx context.Context) error {
	records, more, err := p.count(ctx)
	if err != nil || records == 0 {
		return err
	}
	lost, err := p.config.Store.MayBeLost(ctx)
	if err != nil {
		return err
	}
	return &NoStartError{Process: p.config.Process, Records: records, More: more, MayBeLost: lost}
}

// count returns how many records the source holds, as far as the source can count.
func (p *Process) count(ctx context.Context) (records int64, more bool, err error) {
	if source, ok := p.config.Source.(Counter); ok {
		records, more, err = source.Count(ctx)
		if err != nil {
			return 0, false, fmt.Errorf("count the records of the source: %w", err)
		}
		return records, more, nil
	}
	page, err := p.config.Source.Read(ctx, "", 1)
	if err != nil {
		return 0, false, fmt.Errorf("look for records of the source: %w", err)
	}
	if len(page.Records) > 0 || page.Waiting {
		return 1, true, nil
	}
	return 0, false, nil
}
