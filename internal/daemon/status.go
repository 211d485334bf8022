package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Status is how a process stands.
type Status struct {
	cursor.Row
	// New: no worker has run the process yet, so it has no cursor.
	New bool
	// Lag behind the position; nil if it is not known.
	Lag *Lag
	// Holding are the transactions that hold records back, oldest first.
	Holding []table.Writer
	// Problem says why something of this is not known; "" if all is.
	Problem string
}

// Lag is what was committed and is not delivered yet.
type Lag struct {
	// Records, of which no more than table.MaxLagRecords are counted.
	Records int64
	// Age of the oldest; nil if the source has no created_at column.
	Age *time.Duration
}

// StatusConfig says whose status is asked for.
type StatusConfig struct {
	// Config with its Database. Without processes all cursors of the schema are
	// shown, without lag: that needs the source.
	Config Config
	// Process is the only one to show; "" shows all.
	Process string
}

// StatusReader reads how processes stand. Close it.
type StatusReader struct {
	config  StatusConfig
	pool    *pgxpool.Pool
	store   *cursor.Store
	sources map[string]*table.Source
}

// NewStatusReader connects to nothing yet.
func NewStatusReader(ctx context.Context, c StatusConfig) (*StatusReader, error) {
	pool, store, err := c.Config.open(ctx)
	if err != nil {
		return nil, err
	}
	r := &StatusReader{config: c, pool: pool, store: store, sources: map[string]*table.Source{}}
	for _, p := range c.Config.Processes {
		if r.sources[p.Name], err = p.source(pool, nil); err != nil {
			pool.Close()
			return nil, &UsageError{err}
		}
	}
	return r, nil
}

// Close closes its connections.
func (r *StatusReader) Close() { r.pool.Close() }

// Read returns one status for each process. A process that is not known is a
// *UsageError.
func (r *StatusReader) Read(ctx context.Context) ([]Status, error) {
	rows, err := r.store.List(ctx)
	if err != nil {
		return nil, Reachable(err)
	}
	processes := r.config.Config.Processes
	all, err := choose(statuses(rows, processes), r.config.Process)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if at := slices.IndexFunc(processes, func(p Process) bool { return p.Name == all[i].Process }); at >= 0 {
			all[i].measure(ctx, r.sources[all[i].Process], processes[at])
		}
	}
	return all, nil
}

// statuses returns one for each process, or, without processes, for each row.
func statuses(rows []cursor.Row, processes []Process) []Status {
	var all []Status
	if len(processes) == 0 {
		for _, row := range rows {
			all = append(all, Status{Row: row, Problem: "the lag is not known without the configuration: name it with -c"})
		}
		return all
	}
	for _, p := range processes {
		s := Status{Row: cursor.Row{Process: p.Name}, New: true}
		if at := slices.IndexFunc(rows, func(row cursor.Row) bool { return row.Process == p.Name }); at >= 0 {
			s = Status{Row: rows[at]}
		}
		all = append(all, s)
	}
	return all
}

func choose(all []Status, process string) ([]Status, error) {
	if process == "" {
		return all, nil
	}
	var names []string
	for _, s := range all {
		if s.Process == process {
			return []Status{s}, nil
		}
		names = append(names, s.Process)
	}
	return nil, unknownProcess(process, names)
}

// stays is for how long a transaction must be seen to hold records back: shorter
// ones come and go with every insert.
const stays = 250 * time.Millisecond

// measure finds what only the source knows.
func (s *Status) measure(ctx context.Context, source *table.Source, p Process) {
	if s.New {
		s.Problem = "no worker has run it yet"
		return
	}
	lag, err := source.Lag(ctx, s.Position)
	if err != nil {
		s.Problem = err.Error()
		return
	}
	s.Lag = &Lag{Records: lag.Records}
	if p.Source.Order != table.ID || p.Source.Columns.CreatedAt != "" {
		s.Lag.Age = &lag.Age
	}
	if lag.Records == 0 {
		return
	}
	if s.Holding, err = staying(ctx, source); err != nil {
		s.Problem = err.Error()
	}
}

// staying returns the writers that are there at two looks. Their time of
// beginning tells a long transaction from the next short one of its session.
func staying(ctx context.Context, source *table.Source) ([]table.Writer, error) {
	first, err := source.Writers(ctx)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	timer := time.NewTimer(stays)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	second, err := source.Writers(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(second, func(w table.Writer) bool {
		return !slices.ContainsFunc(first, func(before table.Writer) bool {
			return before.PID == w.PID && before.GID == w.GID && before.Since.Equal(w.Since)
		})
	}), nil
}
