package desk

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

// Config describes a desk.
type Config struct {
	// Config is the configuration of the daemon, with its Database. Required.
	Config daemon.Config
	// Logger is required.
	Logger *slog.Logger
	// Stdout gets what a replay delivers to a stdout sink. Required.
	Stdout io.Writer

	quiet time.Duration // between two looks while nobody watches; 0: quietInterval. Tests look more often
}

// Connections are those that a desk takes of the database at most: two for looks, three for questions, and two for each
// of the decisions that may be under way at once. Those who may only look have all but one of the questions.
const (
	lookConns     = 2
	questionConns = 3
	maxViewers    = questionConns - 1
	decisionConns = 2
	maxDecisions  = 2
)

// Desk answers questions about all processes, and carries out decisions. It is safe for use by several goroutines.
type Desk struct {
	config    Config
	board     *board
	ctx       context.Context
	stop      context.CancelFunc
	running   sync.WaitGroup
	questions chan struct{} // has an element for each question under way
	viewers   chan struct{} // and for each of those who may only look
	decisions chan struct{} // and for each decision
	asking    *daemon.StatusReader
	doctor    doctor
}

// New makes a desk. It does not connect yet. It ends with ctx, and the caller closes it.
func New(ctx context.Context, c Config) (*Desk, error) {
	d := &Desk{config: c, questions: make(chan struct{}, questionConns), viewers: make(chan struct{}, maxViewers), decisions: make(chan struct{}, maxDecisions)}
	d.ctx, d.stop = context.WithCancel(ctx)
	looking, err := daemon.NewStatusReader(d.ctx, daemon.StatusConfig{Config: c.Config.Apart(lookConns), Unlisted: true})
	if err != nil {
		d.stop()
		return nil, err
	}
	if d.asking, err = daemon.NewStatusReader(d.ctx, daemon.StatusConfig{Config: c.Config.Apart(questionConns), Unlisted: true}); err != nil {
		looking.Close()
		d.stop()
		return nil, err
	}
	d.board = newBoard(c, looking)
	d.running.Go(func() { d.board.run(d.ctx) })
	return d, nil
}

// Close ends what is under way and closes the connections.
func (d *Desk) Close() {
	d.stop()
	d.running.Wait()
	d.doctor.wait()
	d.board.reader.Close()
	d.asking.Close()
}

// Watch makes the board look, for as long as ctx lives. After each look it sends a tick: then Fleet answers from memory,
// at once, and so does Process about a process that the look included. A viewer that is busy misses ticks, and never more
// than it needs. process is the one that the viewer looks at; "" is none. A look includes all that viewers look at, unless
// they are more than maxWatched: then these take turns. The channel is closed when ctx or the desk ends.
func (d *Desk) Watch(ctx context.Context, process string) <-chan struct{} {
	w := &watcher{process: process, ticks: make(chan struct{}, 1)}
	d.board.join(w)
	go func() {
		select {
		case <-ctx.Done():
		case <-d.ctx.Done():
		}
		d.board.leave(w)
	}()
	return w.ticks
}

// knows reports whether the file has a process.
func (d *Desk) knows(process string) bool { return slices.Contains(d.config.Config.Names(), process) }

// questionTimeout bounds a question, and turnTimeout how long it waits for its turn.
const (
	questionTimeout = 25 * time.Second
	turnTimeout     = 3 * time.Second
)

// byOperator is the key of ByOperator.
type byOperator struct{}

// ByOperator returns a context of somebody who may decide: no number of questions of others keeps theirs waiting.
func ByOperator(ctx context.Context) context.Context {
	return context.WithValue(ctx, byOperator{}, true)
}

// question asks the database something, when it is its turn.
func (d *Desk) question(ctx context.Context, ask func(context.Context) error) error {
	if ctx.Value(byOperator{}) != nil {
		return d.taken(ctx, d.questions, questionTimeout, ask)
	}
	return d.taken(ctx, d.viewers, questionTimeout, func(ctx context.Context) error { return d.taken(ctx, d.questions, questionTimeout, ask) })
}

// taken calls f while it has one of the turns.
func (d *Desk) taken(ctx context.Context, turns chan struct{}, timeout time.Duration, f func(context.Context) error) error {
	waiting, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
	case <-waiting.Done():
		return &Error{Kind: KindBusy, Text: "too many questions are being answered: try again in a moment"}
	}
	ctx, end := context.WithTimeout(ctx, timeout)
	defer end()
	stop := context.AfterFunc(d.ctx, end)
	defer stop()
	return d.failed(f(ctx))
}
