package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

// uncertainWorkload is operators whose COMMIT is not answered: their connection ends with it on the way.
func uncertainWorkload() workload {
	w := workload{
		kinds:  map[history.Kind]kind{history.OperatorUncertain: skipUncertainly},
		faults: map[string][]plan.Chance{},
	}
	patience := 3 * time.Second
	for _, s := range commonWorkload().sources {
		for _, p := range s.readers() {
			if p.Sink == history.Webhook && !p.Letters {
				w.faults[p.Name] = []plan.Chance{{Weight: 1, Kind: history.OperatorUncertain, Min: patience, Max: patience}}
			}
		}
	}
	return w
}

// skipUncertainly has a record refused for good, and an operator skips it without an answer. The record behind it is
// refused as well, so that one skip too many would pass over that one.
func skipUncertainly(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	if err := answerBy(ctx, f, fault, begin); err != nil {
		return err
	}
	behind := newScript(fault.Kind, fault.ID, fault.Choice)
	err := errMissed
	f.decideOnHalt(ctx, fault, func(ctx context.Context, f *field, process string) error {
		f.receiver.arm(process, behind)
		err = f.skipOnce(ctx, fault)
		if !f.receiver.disarm(process, behind) {
			f.decideOnHalt(ctx, fault, retry)
		}
		return nil
	})
	return missedIf(err)
}

// uncertainPatience is for how long an operator tries to get one decision through.
const uncertainPatience = 15 * time.Second

// skipOnce skips the record that fails now, over a connection that ends with the COMMIT, and does what the error says
// until it is settled. errMissed: the COMMIT was answered, or never sent.
func (f *field) skipOnce(ctx context.Context, fault plan.Fault) error {
	ctx, cancel := context.WithTimeout(ctx, uncertainPatience)
	defer cancel()
	d := decision()
	d.Actor = history.OperatorOf(fault.ID)
	if expects(fault) {
		row, err := f.failing(ctx, fault.Process)
		if err != nil {
			return err
		}
		d.Expect = &row.Failure.Position
	}
	torn, err := f.skipTorn(ctx, fault, d)
	for !settled(err) && f.thinkAgain(ctx, fault.Process) {
		err = f.skipAgain(ctx, fault.Process, d, err)
	}
	if !torn {
		return errMissed
	}
	return nil
}

// What the choice of a fault decides: whether the server gets the COMMIT, and whether the operator names the record.
func answered(fault plan.Fault) link.Side { return link.Side(fault.Choice >> 16 % 2) }
func expects(fault plan.Fault) bool       { return fault.Choice>>17%3 == 0 }

// failing is a cursor's row with its failing record.
func (f *field) failing(ctx context.Context, process string) (row cursor.Row, err error) {
	err = f.operate(ctx, func(store *cursor.Store) (err error) {
		row, err = store.Look(ctx, process)
		return err
	})
	if err == nil && row.Failure == nil {
		err = errMissed
	}
	return row, err
}

// skipTorn reports whether the COMMIT was torn.
func (f *field) skipTorn(ctx context.Context, fault plan.Fault, d cursor.Decision) (torn bool, err error) {
	l, err := link.Listen(f.database.addr())
	if err != nil {
		return false, err
	}
	defer l.Close()
	address, err := f.database.through(l.Addr(), slot{role: operatorRole})
	if err != nil {
		return false, err
	}
	cut := cutAtCommit(l, answered(fault))
	err = operateAt(ctx, address, func(store *cursor.Store) error {
		_, err := operator.New(store).Skip(ctx, fault.Process, d)
		return err
	})
	select {
	case <-cut:
		return true, err
	default:
		return false, err
	}
}

// cutAtCommit cuts a link when a COMMIT comes from the client, so that the server never gets it; or when the answer to
// one comes from the server, so that the client never gets that. The channel is closed when it has happened.
func cutAtCommit(l *link.Link, from link.Side) <-chan struct{} {
	cut := make(chan struct{})
	var once sync.Once
	l.OnData(func(fromServer bool, data []byte) {
		if fromServer == (from == link.Server) && bytes.Contains(data, []byte("COMMIT\x00")) {
			once.Do(func() { close(cut) })
			l.Cut()
		}
	})
	return cut
}

// settled reports whether an operator knows that a skip was done, or need not do it any more.
func settled(err error) bool {
	return err == nil || errors.Is(err, operator.ErrNotFailing) || errors.Is(err, cursor.ErrMoved)
}

// thinkAgain gives the record behind time to fail: then one skip too many passes over it. It returns false when the
// operator's patience has ended.
func (f *field) thinkAgain(ctx context.Context, process string) bool {
	while, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for pause(while, 20*time.Millisecond) && !f.halted(while, process) {
	}
	return ctx.Err() == nil
}

// skipAgain looks first whether the skip was done, if the error of the last try left that open. An operator who named the
// record may repeat the command without a look. Any other error says that nothing was done.
func (f *field) skipAgain(ctx context.Context, process string, d cursor.Decision, last error) error {
	return f.operate(ctx, func(store *cursor.Store) error {
		if errors.Is(last, cursor.ErrUncertain) && d.Expect == nil {
			event, found, err := operator.New(store).Last(ctx, process, "skip")
			if err != nil {
				return fmt.Errorf("%w, and the history is not known: %w", last, err)
			}
			if found && event.Actor == d.Actor {
				return nil
			}
		}
		_, err := operator.New(store).Skip(ctx, process, d)
		return err
	})
}
