package desk

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

const (
	lookInterval = time.Second // from the beginning of a look to that of the next
	// quietInterval is the pause while nobody watches. Without any look, the board would not know what held a process up
	// in the night.
	quietInterval = time.Minute
	// asked is for how long a question without Watch counts as a viewer.
	asked = 5 * time.Second
	// fresh is how old a look may be that answers a question at once, also with the problem for which it failed.
	fresh = 2 * time.Second
	// lookTimeout bounds a look, and answerTimeout how long a viewer waits for one.
	lookTimeout   = 30 * time.Second
	answerTimeout = 8 * time.Second
	// lookCost is how long a look may work on processes that nobody looks at closely. It decides how many of them have
	// their turn.
	lookCost            = 500 * time.Millisecond
	firstTurn, maxTurn  = 32, 512
	minTurn, maxWatched = 16, 16
)

// watcher is a viewer.
type watcher struct {
	process string
	ticks   chan struct{}
}

// board looks at the database for all viewers, and remembers what it saw.
type board struct {
	config Config
	reader *daemon.StatusReader
	quiet  time.Duration
	wake   chan struct{} // has an element if somebody asks while the board waits

	mu       sync.Mutex
	watchers map[*watcher]bool
	asked    map[string]time.Time // when somebody asked last without Watch, by process; "" is the fleet
	memories map[string]*memory   // by process
	files    map[string]daemon.Process
	seen     covered
	began    time.Time     // of the last look that succeeded
	at       time.Time     // its end
	vain     time.Time     // when a look failed, or somebody waited for one in vain; zero after one that succeeded
	since    time.Time     // of the first one
	problem  string        // of the last look
	looked   chan struct{} // closed after the next look
	closed   bool

	// Decisions so far, those before the last look began, and those before the last one began that succeeded.
	nudges, before, shown int

	turn int // how many processes have their turn in a look
}

func newBoard(c Config, reader *daemon.StatusReader) *board {
	b := &board{
		config: c, reader: reader, quiet: cmp.Or(c.quiet, quietInterval), wake: make(chan struct{}, 1), turn: firstTurn,
		watchers: map[*watcher]bool{}, asked: map[string]time.Time{}, memories: map[string]*memory{}, files: map[string]daemon.Process{}, looked: make(chan struct{}),
	}
	for _, p := range c.Config.Processes {
		b.files[p.Name] = p
	}
	return b
}

func (b *board) join(w *watcher) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		close(w.ticks)
		return
	}
	b.watchers[w] = true
	b.call()
}

func (b *board) leave(w *watcher) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watchers[w] {
		delete(b.watchers, w)
		close(w.ticks)
	}
}

// call ends the pause of a board that nobody watched.
func (b *board) call() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// run looks until ctx ends.
func (b *board) run(ctx context.Context) {
	defer b.end()
	for ctx.Err() == nil {
		began := time.Now()
		b.look(ctx)
		took := time.Since(began)
		b.rest(ctx, max(lookInterval-took, took))
		for ctx.Err() == nil && !b.watched() && time.Since(began) < b.quiet {
			select {
			case <-b.wake:
			case <-time.After(b.quiet - time.Since(began)):
			case <-ctx.Done():
			}
		}
	}
}

func (b *board) rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (b *board) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for w := range b.watchers {
		delete(b.watchers, w)
		close(w.ticks)
	}
}

// watched reports whether somebody waits for looks.
func (b *board) watched() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.watchers) > 0 {
		return true
	}
	for process, at := range b.asked {
		if time.Since(at) > asked {
			delete(b.asked, process)
		}
	}
	return len(b.asked) > 0
}

// closely returns the processes that somebody looks at closely.
func (b *board) closely() (names []string) {
	for w := range b.watchers {
		names = append(names, w.process)
	}
	for process, at := range b.asked {
		if time.Since(at) <= asked {
			names = append(names, process)
		}
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return b.memories[name] == nil })
	// Of too many, those that were looked at longest ago have their turn.
	slices.SortStableFunc(names, func(x, y string) int { return b.memories[x].detailAt.Compare(b.memories[y].detailAt) })
	return names[:min(len(names), maxWatched)]
}

// await returns once there is a look that is fresh and, unless process is "", includes that process closely; or after
// answerTimeout. No look that began before a decision is fresh after it. Where the database does not answer, one who
// asks waits, and those who ask soon after do not.
func (b *board) await(ctx context.Context, process string) {
	patience := time.NewTimer(answerTimeout)
	defer patience.Stop()
	for {
		b.mu.Lock()
		b.asked[process] = time.Now()
		if len(b.asked) > maxAsked {
			clear(b.asked)
		}
		done := b.fresh(process) || time.Since(b.vain) < fresh || b.closed
		next := b.looked
		b.call()
		b.mu.Unlock()
		if done {
			return
		}
		select {
		case <-next:
			if b.failed() {
				return
			}
		case <-patience.C:
			b.giveUp()
			return
		case <-ctx.Done():
			return
		}
	}
}

// giveUp notes that somebody waited in vain.
func (b *board) giveUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.at) >= fresh {
		b.vain = time.Now()
	}
}

// fresh reports whether the board can answer a question now.
func (b *board) fresh(process string) bool {
	m := b.memories[process]
	switch {
	case time.Since(b.at) >= fresh:
		return false
	case m != nil:
		return time.Since(m.detailAt) < fresh || m.detailAt.After(b.began)
	default:
		return b.shown == b.nudges
	}
}

// maxAsked bounds the names of processes that viewers ask for.
const maxAsked = 1000

func (b *board) failed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.problem != ""
}

// look makes one look, keeps what it saw, and wakes who waits for it.
func (b *board) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	err := b.see(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problem, b.vain = "", time.Time{}
	if err != nil {
		b.problem, b.vain = b.clean(err), time.Now()
	}
	close(b.looked)
	b.looked = make(chan struct{})
	for w := range b.watchers {
		select {
		case w.ticks <- struct{}{}:
		default:
		}
	}
}

// clean is the text of an error for viewers.
func (b *board) clean(err error) string { return b.cleanText(err.Error()) }

// cleanText is a text that a receiver or a server wrote, for viewers.
func (b *board) cleanText(text string) string {
	return visible.Inline(b.reader.Secrets().Replace(text))
}

// see asks the database: for all rows, for the status of the processes whose turn it is, and for the records of those
// that somebody looks at closely.
func (b *board) see(ctx context.Context) error {
	b.mu.Lock()
	start := time.Now()
	b.before = b.nudges
	b.mu.Unlock()
	rows, err := b.reader.Rows(ctx)
	if err != nil {
		return err
	}
	closely, names := b.noteRows(rows, time.Now())
	began, paused := time.Now(), b.reader.Paused()
	all, err := b.reader.ReadOf(ctx, names)
	if err != nil {
		return err
	}
	b.adapt(len(names)-len(closely), time.Since(began)-(b.reader.Paused()-paused))
	b.noteStatuses(all, time.Now())
	for _, name := range closely {
		b.noteDetail(ctx, name)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.began, b.at, b.shown = start, time.Now(), b.before
	if b.since.IsZero() {
		b.since = b.at
	}
	b.seen.note(b.at, b.quiet)
	return nil
}

// adapt learns how many processes may have their turn in one look.
func (b *board) adapt(others int, took time.Duration) {
	switch {
	case took > lookCost && others <= b.turn:
		b.turn = max(minTurn, b.turn/2)
	case took < lookCost/2 && others >= b.turn:
		b.turn = min(maxTurn, b.turn*2)
	}
}

// noteRows keeps the rows, and returns which processes are looked at closely, and whose status is read, those included.
func (b *board) noteRows(rows []cursor.Row, now time.Time) (closely, names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	byName := make(map[string]cursor.Row, len(rows))
	for _, row := range rows {
		byName[row.Process] = row
	}
	for name := range b.files {
		if _, has := byName[name]; !has {
			byName[name] = cursor.Row{Process: name}
		}
	}
	for name, row := range byName {
		m := b.memories[name]
		if m == nil {
			m = &memory{process: name}
			b.memories[name] = m
		}
		m.noteRow(row, now)
	}
	for name := range b.memories {
		if _, has := byName[name]; !has {
			delete(b.memories, name)
		}
	}
	closely = b.closely()
	return closely, b.turns(closely)
}

// turns returns whose status is read: what somebody looks at closely, what has changed, and then what was read longest
// ago.
func (b *board) turns(closely []string) []string {
	var others []*memory
	for name, m := range b.memories {
		if !slices.Contains(closely, name) {
			others = append(others, m)
		}
	}
	slices.SortFunc(others, func(x, y *memory) int {
		if x.stale != y.stale {
			if x.stale {
				return -1
			}
			return 1
		}
		return cmp.Or(x.statusAt.Compare(y.statusAt), cmp.Compare(x.process, y.process))
	})
	names := slices.Clone(closely)
	for _, m := range others[:min(len(others), b.turn)] {
		names = append(names, m.process)
	}
	return names
}

func (b *board) noteStatuses(all []daemon.Status, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range all {
		if m := b.memories[s.Process]; m != nil {
			p, configured := b.files[s.Process]
			m.noteStatus(s, p, configured, now)
			m.stale = m.nudge > b.before
		}
	}
	for _, m := range b.memories { // each has a cause at each look, even if it was not its turn
		m.noteCause(now, b.quiet)
	}
}

// nudge makes the next look include a process, and come soon. Those who ask from now on wait for it: a look that is under
// way may have read what was there before.
func (b *board) nudge(process string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nudges++
	b.vain = time.Time{}
	if m := b.memories[process]; m != nil {
		m.nudge, m.stale, m.detailAt, m.historyAt = b.nudges, true, time.Time{}, time.Time{}
		b.asked[process] = time.Now()
	}
	b.call()
}
