package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Status is the state of a process.
type Status struct {
	cursor.Row
	// New means that the process has no cursor. Problem has the reason.
	New bool
	// Lag is the lag after the position; nil if it is not known.
	Lag *Lag
	// Holding are the transactions that hold records back, oldest first.
	Holding []table.Writer
	// Hold is the reason that holds delivery up; nil if there is none, as far as is known.
	Hold *Hold
	// Also has further facts beside Hold that bear on what to do.
	Also []Hold
	// DeadLetters is the number of open ones, counted up to operator.MaxCountedLetters; nil if the role may not read
	// them.
	DeadLetters *int64
	// Problem is why a part of this is not known; "" if all is.
	Problem string

	lockers   []cursor.Locker // of its row
	operator  *cursor.Locker  // an operator's session that has held its row for long
	veiled    *cursor.Locker  // its worker's session that seems to have held its row for long; the role cannot see since when
	blockers  []cursor.Locker // the sessions for which the one that has its row waits
	paused    *operator.Event // the last pause; nil if it is not known
	deserted  bool            // records wait, and there is no worker
	strangers []cursor.Locker // sessions that may have locked its row then
	absent    bool            // no worker runs it
	live      bool            // a worker has a session
	promoted  string          // the timelines of a promotion since its last change of worker; "" if there was none
	moving    bool            // a worker delivers the first record
	unread    bool            // the source cannot be read
	roles     []string        // of its workers
	bounds    leaseBounds     // of a transaction of its lease
}

// Lag describes the records that are committed and not delivered yet.
type Lag struct {
	// Records is their number. At most table.MaxLagRecords are counted.
	Records int64
	// Age is the age of the oldest; nil if the source has no created_at column.
	Age *time.Duration
	// Ahead is how far the stamp of the oldest is ahead of the database's clock, for which it waits. Stamp is its
	// time then.
	Ahead time.Duration
	Stamp time.Time

	begun time.Time // a transaction that began later inserts nothing before the oldest; zero: not known
}

// StatusConfig chooses whose status to read.
type StatusConfig struct {
	// Config must have its Database. Without processes all cursors of the schema are shown, without lag, since that
	// needs the source.
	Config Config
	// Process is the only one to show; "" shows all.
	Process string
	// Unlisted also shows the cursors of processes that the file does not have, without lag.
	Unlisted bool
}

// StatusReader reads the state of processes. The caller closes it.
type StatusReader struct {
	config   StatusConfig
	pool     *pgxpool.Pool
	store    *cursor.Store
	sources  map[string]*table.Source
	contents contents
	secrets  secret.Set
	pause    func(context.Context, time.Duration) // between two looks
	paused   atomic.Int64                         // how long it has paused, in nanoseconds
}

// NewStatusReader makes the pool. It does not connect yet.
func NewStatusReader(ctx context.Context, c StatusConfig) (*StatusReader, error) {
	pool, store, err := c.Config.open(ctx)
	if err != nil {
		return nil, err
	}
	r := &StatusReader{config: c, pool: pool, store: store, sources: map[string]*table.Source{}, secrets: c.Config.Secrets()}
	r.pause = func(ctx context.Context, d time.Duration) {
		pause(ctx, d)
		r.paused.Add(int64(d))
	}
	for _, p := range c.Config.Processes {
		if r.sources[p.Name], err = c.Config.keys(p, pool); err != nil {
			pool.Close()
			return nil, &UsageError{err}
		}
	}
	return r, nil
}

// Close closes the connections.
func (r *StatusReader) Close() { r.pool.Close() }

// Rows returns the rows of all cursors of the schema. It is one statement.
func (r *StatusReader) Rows(ctx context.Context) ([]cursor.Row, error) {
	rows, err := r.store.List(ctx)
	if errors.Is(err, answer.ErrNone) {
		return nil, fmt.Errorf("%w; check whether the server hangs, whether a migration has locked the table, or whether a pooler in between has all of its connections in use", err)
	}
	return rows, Reachable(err)
}

// Read returns one status for each process. It returns a *UsageError for a process that is not known.
func (r *StatusReader) Read(ctx context.Context) ([]Status, error) {
	return r.read(ctx, func(string) bool { return true })
}

// ReadOf is Read of some processes. It asks nothing about the others.
func (r *StatusReader) ReadOf(ctx context.Context, processes []string) ([]Status, error) {
	return r.read(ctx, func(process string) bool { return slices.Contains(processes, process) })
}

func (r *StatusReader) read(ctx context.Context, takes func(string) bool) ([]Status, error) {
	rows, err := r.Rows(ctx)
	if err != nil {
		return nil, err
	}
	all := statuses(rows, r.config.Config.Processes)
	if r.config.Unlisted && len(r.config.Config.Processes) > 0 {
		all = append(all, others(rows, r.config.Config)...)
	}
	if all, err = r.choose(ctx, all); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s Status) bool { return !takes(s.Process) })
	lockers, err := r.store.Lockers(ctx)
	if err != nil {
		return nil, Reachable(err)
	}
	if lockers, err = lasting(ctx, r.store, lockers, r.pause); err != nil {
		return nil, Reachable(err)
	}
	long, err := longHolders(ctx, r.store, lockers, r.pause)
	if err != nil {
		return nil, Reachable(err)
	}
	seen, err := r.config.Config.presence(ctx, r.pool)
	if err != nil {
		return nil, Reachable(err)
	}
	letters, err := openLetters(ctx, r.store, names(all))
	if err != nil {
		return nil, Reachable(err)
	}
	for i := range all {
		if letters != nil {
			n := letters[all[i].Process]
			all[i].DeadLetters = &n
		}
		r.explain(ctx, &all[i], lockers, long)
		all[i].see(seen)
	}
	left := unlisted(r.config.Config, rows)
	r.each(ctx, all, func(ctx context.Context, s *Status) {
		if source, ok := r.sources[s.Process]; ok {
			r.measure(ctx, s, source, left)
		}
	})
	if err := r.lookAgain(ctx, all); err != nil {
		return nil, Reachable(err)
	}
	if err := r.lookForPromotion(ctx, all); err != nil {
		return nil, Reachable(err)
	}
	for i := range all {
		all[i].Hold = all[i].hold()
		all[i].Also = all[i].also()
		all[i].Problem = r.secrets.Replace(all[i].Problem)
	}
	return all, nil
}

// see notes what is known of the workers of the process.
func (s *Status) see(workers presence) {
	s.live, s.roles = workers[s.Process].live, workers[s.Process].roles
	s.absent = workers.absent(s.Process) && !s.New && !slices.ContainsFunc(s.lockers, s.leads)
}

func names(all []Status) []string {
	var names []string
	for _, s := range all {
		names = append(names, s.Process)
	}
	return names
}

// bounds returns the bounds of a process's lease; zero if the sink cannot be made here.
func (r *StatusReader) bounds(name string) leaseBounds {
	p, ok := r.process(name)
	if !ok {
		return leaseBounds{}
	}
	return r.config.Config.leaseBounds(p, r.pool, r.store)
}

// process returns a configured process, with its defaults.
func (r *StatusReader) process(name string) (Process, bool) {
	p, ok := r.written(name)
	return p.filled(), ok
}

// written returns a configured process as it is in the file.
func (r *StatusReader) written(name string) (Process, bool) {
	processes := r.config.Config.Processes
	at := slices.IndexFunc(processes, func(p Process) bool { return p.Name == name })
	if at < 0 {
		return Process{}, false
	}
	return processes[at], true
}

// lookAgain keeps what is still there after a while. It waits once for all processes, because many may wait for one
// transaction.
func (r *StatusReader) lookAgain(ctx context.Context, all []Status) error {
	var wait time.Duration
	for _, s := range all {
		wait = max(wait, r.doubt(s))
	}
	if wait == 0 {
		return nil
	}
	r.pause(ctx, wait)
	if err := move(ctx, r.store, all); err != nil {
		return err
	}
	r.each(ctx, all, func(ctx context.Context, s *Status) {
		if len(s.Holding) == 0 {
			return
		}
		if err := s.stay(ctx, r.sources[s.Process]); err != nil {
			s.Problem = err.Error()
		}
	})
	for i := range all {
		if s := &all[i]; r.doubt(*s) > 0 && len(s.Holding) == 0 {
			if err := r.desert(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// move finds, among processes with writers, those that deliver the first record: a worker has it, or had it, so a
// writer does not hold it back.
func move(ctx context.Context, store *cursor.Store, all []Status) error {
	if !slices.ContainsFunc(all, func(s Status) bool { return len(s.Holding) > 0 }) {
		return nil
	}
	rows, err := store.List(ctx)
	if err != nil {
		return err
	}
	lockers, err := store.Lockers(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		s := &all[i]
		s.moving = slices.ContainsFunc(s.lockers, s.leads) || slices.ContainsFunc(lockers, s.leads) ||
			slices.ContainsFunc(rows, func(row cursor.Row) bool { return row.Process == s.Process && row.Position != s.Position })
	}
	return nil
}

// doubt returns after how long a second look decides what one cannot: whether writers stay, and whether a process has
// records to deliver and no worker. 0 means that there is no doubt.
func (r *StatusReader) doubt(s Status) time.Duration {
	p, known := r.process(s.Process)
	switch {
	case !known:
		return 0
	case s.due() && p.Limit == (processor.Limit{}):
		return stays + min(p.Poll, maxDueWait)
	case s.perhapsOverdue(p): // without times latency does not apply
		return stays + min(p.Poll, maxDueWait)
	case len(s.Holding) > 0 || s.overdue(p):
		return stays
	default:
		return 0
	}
}

// statuses returns one status for each process, or, without processes, one for each row.
func statuses(rows []cursor.Row, processes []Process) []Status {
	var all []Status
	if len(processes) == 0 {
		for _, row := range rows {
			all = append(all, Status{Row: row, Problem: "status cannot count the lag without the configuration: name it with -c"})
		}
		return all
	}
	byName := make(map[string]cursor.Row, len(rows))
	for _, row := range rows {
		byName[row.Process] = row
	}
	for _, p := range processes {
		s := Status{Row: cursor.Row{Process: p.Name}, New: true}
		if row, ok := byName[p.Name]; ok {
			s = Status{Row: row}
		}
		all = append(all, s)
	}
	return all
}

// others returns one status for each row whose process is not in the file.
func others(rows []cursor.Row, c Config) (all []Status) {
	names := unlisted(c, rows)
	for _, row := range rows {
		if slices.Contains(names, row.Process) {
			all = append(all, Status{Row: row, Problem: "the file of this worker does not have the process, so its lag is not known here"})
		}
	}
	return all
}

// choose returns the status of the only process to show, or all. If that process is not known, its cursor may have
// another name now, or be gone.
func (r *StatusReader) choose(ctx context.Context, all []Status) ([]Status, error) {
	process := r.config.Process
	if process == "" {
		return all, nil
	}
	if at := slices.IndexFunc(all, func(s Status) bool { return s.Process == process }); at >= 0 {
		return all[at : at+1], nil
	}
	switch past := r.store.Past(ctx, process); {
	case errors.Is(past, cursor.ErrRenamed):
		return nil, usage("%w: ask for it by that name", past)
	case errors.Is(past, cursor.ErrDeleted):
		return nil, usage("%w", past)
	default:
		return nil, unknownProcess(process, names(all))
	}
}

// stays is how long a transaction must be seen to hold records back. Shorter ones come and go with every insert.
const stays = 250 * time.Millisecond

// measure finds what only the source knows. left are the cursors of no process in the file.
func (r *StatusReader) measure(ctx context.Context, s *Status, source *table.Source, left []string) {
	if s.New {
		r.unborn(ctx, s, source, left)
		return
	}
	if s.Position == cursor.Unplaced {
		s.Problem = "its first worker starts at the place that `start` names in the file"
		return
	}
	lag, err := source.Lag(ctx, s.Position)
	if err != nil {
		s.Problem, s.unread = err.Error()+r.tableLocked(ctx, source, err), true
		return
	}
	s.Lag = lagOf(lag)
	if lag.Records == 0 {
		return
	}
	if err := s.lookForWriters(ctx, source); err != nil {
		s.Problem = err.Error()
	}
}

// lookForWriters finds the transactions that may hold records back. It leaves out the dispatcher's own sessions: the
// fence of a worker of their role does not wait for them.
func (s *Status) lookForWriters(ctx context.Context, source *table.Source) error {
	writers, err := source.Writers(ctx)
	s.Holding = slices.DeleteFunc(writers, func(w table.Writer) bool {
		return w.Ours && !slices.ContainsFunc(s.roles, func(role string) bool { return role != w.User })
	})
	return err
}

// unborn describes what a process without a cursor needs.
func (r *StatusReader) unborn(ctx context.Context, s *Status, source *table.Source, left []string) {
	switch past := r.store.Past(ctx, s.Process); {
	case errors.Is(past, cursor.ErrDeleted):
		s.Problem = past.Error()
		return
	case errors.Is(past, cursor.ErrRenamed):
		s.Problem = fmt.Sprintf("%v: %s", past, underItsNewName(s.Process))
		return
	}
	lost, err := r.store.MayBeLost(ctx)
	var noStart *processor.NoStartError
	if err == nil {
		noStart, err = r.noStart(ctx, s.Process, source)
	}
	switch {
	case err != nil:
		s.Problem = err.Error()
	case noStart != nil && lost: // run refuses, so it is no next step
		noStart.MayBeLost = true
		s.Problem = noStart.Error() + renamedAndLost(s.Process, left)
	case noStart != nil:
		s.Problem = withLeft(noStart, left).Error()
	case lost:
		s.Problem = fmt.Sprintf("it has no cursor. A standby was promoted or the database restored, so if the process has delivered before, its cursor is lost: start no worker for it before you have compared "+
			"what its receiver has with the table, and made the cursor there with `ordered-dispatcher seek %s -c FILE --to-id ID --reason …`. If it has never run: start `ordered-dispatcher run`", visible.Shell(s.Process)) + renamedAndLost(s.Process, left)
	default:
		s.Problem = r.first(ctx, s.Process)
	}
}

// underItsNewName is what to do in a file that has the name which a cursor had before it was renamed.
func underItsNewName(process string) string {
	return "give the process that name in the file. If this is another process, free its name with `ordered-dispatcher process forget " +
		visible.Shell(process) + " --reason …`"
}

// renamedAndLost names the cursors that may be the process's own if the server lost its new name.
func renamedAndLost(process string, left []string) string {
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf(". If it was renamed, and that is lost: `ordered-dispatcher process rename OLD %s`. Cursors whose process is not in this file: %s", visible.Shell(process), oneOf(left))
}

// noStart returns why run refuses a process without a cursor whose start the file does not give; nil if it does not.
func (r *StatusReader) noStart(ctx context.Context, process string, source *table.Source) (*processor.NoStartError, error) {
	if p, _ := r.written(process); p.Start != "" {
		return nil, nil
	}
	records, more, err := source.Count(ctx)
	if err != nil || records == 0 {
		return nil, err
	}
	return &processor.NoStartError{Process: process, Records: records, More: more}, nil
}

// first describes what a process needs whose first worker makes its cursor. It knows when run would refuse to.
func (r *StatusReader) first(ctx context.Context, process string) string {
	p, _ := r.written(process) // earlierNames compares it with what run noted, which has no defaults
	if _, same := r.config.Config.earlierNames(ctx, r.pool, p); p.Start != "" && len(same) > 0 {
		return newNameError(p, same).Error()
	}
	if _, _, err := r.store.Forgotten(ctx, process); err == nil {
		return "its cursor was given up, and no worker has run it since: start `ordered-dispatcher run`"
	}
	return "no worker has run it yet: start `ordered-dispatcher run`"
}

// lagOf converts the lag that the source reports.
func lagOf(lag table.Lag) *Lag {
	l := &Lag{Records: lag.Records, Ahead: lag.Ahead, Stamp: lag.Stamp, begun: lag.Begun}
	if lag.Aged {
		l.Age = &lag.Age
	}
	return l
}

// stay drops the writers that are no longer there, and those that began after the record that a worker delivers now.
func (s *Status) stay(ctx context.Context, source *table.Source) error {
	now, err := source.Writers(ctx)
	s.Holding = slices.DeleteFunc(stayed(s.Holding, now), func(w table.Writer) bool { return s.moving && beganAfter(w, s.Lag.begun) })
	return err
}

// beganAfter reports whether it is known that a writer inserts nothing before the records that wait. For a prepared
// transaction the server knows when it was prepared, not when it began.
func beganAfter(w table.Writer, begun time.Time) bool {
	return w.GID == "" && !begun.IsZero() && w.Since.After(begun)
}

// stayed returns the writers of now that were there before. A session's long transaction differs from its next short
// one by its virtual id, or by when it began, which may be hidden.
func stayed(before, now []table.Writer) []table.Writer {
	return slices.DeleteFunc(now, func(w table.Writer) bool {
		return !slices.ContainsFunc(before, func(b table.Writer) bool {
			return b.PID == w.PID && b.GID == w.GID && b.Transaction == w.Transaction && b.Since.Equal(w.Since)
		})
	})
}

// Halted reports whether one of the processes is halted.
func Halted(all []Status) bool {
	return slices.ContainsFunc(all, func(s Status) bool { return s.State == cursor.Halted })
}
