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
	looked    time.Time       // when its row was read, by this machine
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

// Masked returns the text of an error of Read, without the secrets of the configuration.
func (r *StatusReader) Masked(err error) string { return r.secrets.Replace(err.Error()) }

// Rows returns the rows of all cursors of the schema. It is one statement.
func (r *StatusReader) Rows(ctx context.Context) ([]cursor.Row, error) {
	rows, err := r.store.List(ctx)
	if errors.Is(err, answer.ErrNone) {
		return nil, fmt.Errorf("%w; check whether the server hangs, whether a migration has locked the table, or whether a pooler in between has all of its connections in use", err)
	}
	if err != nil {
		return nil, Reachable(err)
	}
	return rows, nil
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
	looked := time.Now()
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
		all[i].looked = looked
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

// Worker is the worker that delivers, or did last; "" if it is known that no worker runs the process.
func (s Status) Worker() string {
	if s.absent {
		return ""
	}
	return s.Holder
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

// lagOf converts the lag that the source reports.
func lagOf(lag table.Lag) *Lag {
	l := &Lag{Records: lag.Records, Ahead: lag.Ahead, Stamp: lag.Stamp, begun: lag.Begun}
	if lag.Aged {
		l.Age = &lag.Age
	}
	return l
}

// Halted reports whether one of the processes is halted.
func Halted(all []Status) bool {
	return slices.ContainsFunc(all, func(s Status) bool { return s.State == cursor.Halted })
}
