package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// remember keeps the highest numbers of the cursor in memory. A row with smaller ones comes from a backup: then
// the process halts, unless a standby was promoted that had not received everything.
func (p *Process) remember(ctx context.Context, row cursor.Row) (state, error) {
	if !p.seen.Before(row) {
		p.seen = p.seen.See(row)
		return state{}, nil
	}
	return p.haltedBy(p.config.Store.HaltRestored(ctx, p.config.Process, p.seen))
}

// noteBeside halts the process if another one has halted as restored, and this worker has seen nothing of the
// time before.
func (p *Process) noteBeside(ctx context.Context, row cursor.Row) (state, error) {
	if p.alone || row.Failure != nil && row.Failure.OfServer() {
		return state{}, nil
	}
	other, err := p.config.Store.RestoredBeside(ctx, p.config.Process)
	if err != nil {
		return state{}, err
	}
	if other != "" {
		if s, err := p.haltedBy(p.config.Store.HaltBeside(ctx, p.config.Process)); err != nil || s.is != "" {
			return s, err
		}
	}
	p.alone = true
	return state{}, nil
}

// serverRun is a run of the server, as a worker sees it.
type serverRun struct {
	server string
	seen   time.Time // when it last answered
	others time.Time // until then other workers look, and nothing is delivered
}

// newRunDelay is how long a look of another worker may take after the server has started anew.
const newRunDelay = time.Second

// othersLook is for how long a worker only looks, and does not deliver, after the server has started anew. If a
// backup was put back, another worker may have seen more of the cursor than the row has now, and halts the
// process in that time. Each worker looks once a poll. After an outage it comes back later by no more than the
// outage took.
func (p *Process) othersLook(page Page) time.Duration {
	if !p.together() || page.Server == "" {
		return 0
	}
	now, was := time.Now(), p.run
	p.run = serverRun{server: page.Server, seen: now, others: was.others}
	if was.server != "" && page.Server != was.server {
		delay := newRunDelay + p.config.Poll + min(2*now.Sub(was.seen), longestErrorDelay)
		p.run.others = now.Add(delay)
		p.log.Info("the server was restarted, or it is another one: nothing is delivered until the other workers have looked, too", "for", delay.Round(time.Millisecond))
	}
	return p.run.others.Sub(now)
}

// notePromotion is for a process that has nothing to deliver, and so takes no lease. Without it, rows that a
// new primary has stamped before the cursor would go unnoticed until there is something to deliver.
func (p *Process) notePromotion(ctx context.Context, server string) error {
	if server == "" || server == p.server || !p.together() {
		return nil
	}
	err := p.config.Store.Promoted(ctx, p.config.Process)
	var promoted *cursor.PromotedError
	if errors.As(err, &promoted) {
		err = p.promote(ctx, promoted)
	}
	if err == nil {
		p.server = server
	}
	return err
}

// promote takes note of a promotion, unless the new primary has stamped rows before the cursor. It looks for
// those rows first: once the promotion is noted, the next worker would not look.
func (p *Process) promote(ctx context.Context, promoted *cursor.PromotedError) error {
	auditor, ok := p.config.Source.(Auditor)
	if !ok || !p.together() {
		return p.config.Store.Promote(ctx, p.config.Process, "", p.seen, "")
	}
	late, err := auditor.Late(ctx, promoted.Position, promoted.Horizon, promoted.Retried())
	if err != nil && promoted.Retried() {
		err = fmt.Errorf("%w; to go on without looking: `%s`", err, p.seekTo(promoted.Position))
	}
	if err != nil {
		return fmt.Errorf("look for rows that a new primary, or a clock that was set back, has stamped before the cursor: %w", err)
	}
	if late.Reason != "" {
		return p.haltBefore(ctx, promoted.Position, late)
	}
	if err := p.config.Store.Promote(ctx, p.config.Process, late.Server, p.seen, late.Short); err != nil {
		return err
	}
	if promoted.Retried() || promoted.Restored() {
		p.log.Info("no row was found that the server's clock had stamped before the cursor: the process goes on, under larger numbers", "position", visible.Cut(string(promoted.Position)))
		return nil
	}
	p.log.Warn("a standby was promoted: what it had not received is lost. Records go out under larger numbers, and without created_at under other dedup keys",
		"timeline", promoted.To, "before", promoted.From, "position", visible.Cut(string(promoted.Position)))
	return nil
}

// behind halts the process if a read failed because the server's clock, or its sequence of ids, is behind the
// cursor.
func (p *Process) behind(ctx context.Context, row cursor.Row, err error) (*todo, state, error) {
	err = p.reader().ofServer(err)
	if p.seesReset(err, row.Position) {
		s, err := p.noteReset(ctx)
		return nil, s, err
	}
	var clock *ClockError
	if !errors.As(err, &clock) || !p.together() {
		return nil, state{}, err
	}
	s, err := p.haltedBy(p.haltUntil(ctx, row.Position, clock.Late))
	if p.stopped {
		p.clock.settled()
	}
	return nil, s, err
}

// seesReset notes that a read after a position found the sequence of ids before it.
func (p *Process) seesReset(err error, after cursor.Position) bool {
	var sequence *SequenceError
	if !errors.As(err, &sequence) || !p.together() {
		return false
	}
	p.reset = &cursor.ResetHalt{Server: sequence.Server, At: after, Reason: sequence.Error()}
	return true
}

// noteReset halts the process if the sequence of ids was seen before the cursor. By now the ids may have passed
// the cursor, and no other read would show which rows the cursor passes over. So the worker tries until the row
// has it, or an operator has moved the cursor back.
func (p *Process) noteReset(ctx context.Context) (state, error) {
	if p.reset == nil {
		return state{}, nil
	}
	err := p.config.Store.HaltReset(ctx, p.config.Process, *p.reset)
	switch {
	case err == nil, errors.Is(err, cursor.ErrHalted), errors.Is(err, cursor.ErrPaused), errors.Is(err, cursor.ErrElsewhere), errors.Is(err, cursor.ErrUnknown):
		p.reset = nil
	}
	return p.haltedBy(err)
}

// haltBefore halts the process over rows that are before its position.
func (p *Process) haltBefore(ctx context.Context, at cursor.Position, late Late) error {
	if late.From == "" {
		name := visible.Shell(p.config.Process)
		reason := fmt.Sprintf("%s. Look in the table for rows that were inserted while the clock was behind, and `ordered-dispatcher seek %s --to-time TIME -c FILE --reason …` "+
			"with the stamp of the first one; if there are none: `%s`", late.Reason, name, p.seekTo(at))
		return p.config.Store.HaltClock(ctx, p.config.Process, cursor.ClockHalt{Server: late.Server, At: at, From: at, Reason: reason})
	}
	reason := fmt.Sprintf("%s. To miss none: `%s`, which sends again what follows that position; if none of them is to be sent: `%s`",
		late.Reason, p.seekTo(late.From), p.seekTo(at))
	return p.config.Store.HaltClock(ctx, p.config.Process, cursor.ClockHalt{Server: late.Server, At: at, From: late.From, Reason: reason})
}

// haltUntil halts the process until the clock of its server is set right.
func (p *Process) haltUntil(ctx context.Context, at cursor.Position, late Late) error {
	reason := fmt.Sprintf("%s. Once the clock has passed the cursor, `ordered-dispatcher retry %s -c FILE`: it looks for what was stamped before the cursor meanwhile, and prints the seek that delivers it, or what to look for",
		late.Reason, visible.Shell(p.config.Process))
	if late.From != "" {
		reason = fmt.Sprintf("%s. Once the clock has passed the cursor: `%s`, which sends again what follows that position. If the clock was set back again since, look for rows that were stamped before that", late.Reason, p.seekTo(late.From))
	}
	return p.config.Store.HaltClock(ctx, p.config.Process, cursor.ClockHalt{Server: late.Server, At: at, From: late.From, Reason: reason})
}

func (p *Process) seekTo(at cursor.Position) string {
	return fmt.Sprintf("ordered-dispatcher seek %s --to-position %s -c FILE --reason …", visible.Shell(p.config.Process), visible.Shell(string(at)))
}
