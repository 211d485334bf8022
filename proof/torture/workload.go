package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

// workload is one kind of load, with all that it brings: tables, processes, ways to write, daemons, and ways to break them.
// Each has a file of its own, workload_NAME.go, and a line in workloads.
type workload struct {
	// sources are further tables, or further views of one.
	sources []source
	// sql runs once, after the tables of all workloads were made: functions, roles, settings.
	sql string
	// processes read any source. They have the faults of their sink, and those in faults.
	processes []process
	// writes are ways to commit rows. Every producer uses all of them.
	writes []write
	// slots are further daemons.
	slots []slot
	// kinds are further ways to break something, an operator's mistakes among them. Each also has a constant and a place in
	// package history, and an entry in docs/failures.md that names it.
	kinds map[history.Kind]kind
	// faults befall a process beside those of its sink, by the process's name.
	faults map[string][]plan.Chance
	// tracks are the faults of further victims.
	tracks []plan.Track
}

// workloads are all there are. Append: the seeds of what comes after change.
func workloads() []workload {
	return []workload{
		commonWorkload(),
		brokerWorkload(),
		importWorkload(),
		hostileWorkload(),
		refusalWorkload(),
		operatorsWorkload(),
		rareWorkload(),
		tiedWorkload(),
		strandWorkload(),
		uncertainWorkload(),
		settingsWorkload(),
		keptWorkload(),
		lockedWorkload(),
		targetWorkload(),
	}
}

// process is what the judge knows of a process, and the keys of its configuration that the judge need not know.
type process struct {
	history.Process
	source string // further keys of its source, each after a comma: `, where: "wanted"`
	keys   string // further keys of the process: whole lines, indented by four blanks
}

// write is one way to commit rows.
type write struct {
	name   string   // in the verdict
	weight int      // relative to the others
	into   []string // names of sources; nil = those that are open to every way
	run    func(ctx context.Context, p *producer, conn *pgx.Conn, table string)
}

// slot is where a daemon runs, and as whom.
type slot struct {
	name string
	role string                     // of the database, with no more rights than `grants` prints; "" = the superuser
	pool int                        // pool_max_conns; fewest; 0 = the daemon's own choice
	runs func(history.Process) bool // nil = all processes
}

// fewest is the smallest pool that a daemon accepts: two connections for each process, and two besides.
const fewest = -1

// conns is how many connections the daemon of the slot may have, and how many its pool_max_conns allows: 0 = not set.
func (s slot) conns() (allowed, set int) {
	allowed = 2
	for _, p := range processes() {
		if s.run(p) {
			allowed += 2
		}
	}
	switch s.pool {
	case 0:
		return allowed, 0
	case fewest:
		return allowed, allowed
	default:
		return s.pool, s.pool
	}
}

// run reports whether the daemon of the slot runs a process.
func (s slot) run(p history.Process) bool { return s.runs == nil || s.runs(p) }

// collect joins a part of all workloads.
func collect[T any](part func(workload) []T) []T {
	var all []T
	for _, w := range workloads() {
		all = append(all, part(w)...)
	}
	return all
}

func sources() []source { return collect(func(w workload) []source { return w.sources }) }

func configured() []process { return collect(func(w workload) []process { return w.processes }) }

func writes() []write { return collect(func(w workload) []write { return w.writes }) }

func slots() []slot { return collect(func(w workload) []slot { return w.slots }) }

// processes are all of them, as the judge knows them.
func processes() []history.Process {
	var all []history.Process
	for _, p := range configured() {
		all = append(all, p.Process)
	}
	return all
}

// workers are the names of the slots.
func workers() []string {
	var names []string
	for _, s := range slots() {
		names = append(names, s.name)
	}
	return names
}

// sourceOf is the table that a process reads.
func sourceOf(process string) source {
	for _, p := range processes() {
		if p.Name == process {
			return sourceCalled(p.Table)
		}
	}
	panic("no process is called " + process)
}

func sourceCalled(name string) source {
	for _, s := range sources() {
		if s.name == name {
			return s
		}
	}
	panic("no source is called " + name)
}

// shape is who is there to be harmed.
func shape() plan.Shape {
	s := plan.Shape{Workers: workers(), Processes: processes(), Faults: map[string][]plan.Chance{}}
	for _, source := range sources() {
		if !source.private {
			s.Tables = append(s.Tables, source.name)
		}
	}
	for _, w := range workloads() {
		for process, more := range w.faults {
			s.Faults[process] = append(s.Faults[process], more...)
		}
		s.Tracks = append(s.Tracks, w.tracks...)
	}
	return s
}

// setting is what a run was made with.
func setting(seed uint64, length, drift time.Duration) history.Setting {
	s := history.Setting{Seed: seed, For: length, Drift: drift, Workers: workers(), Processes: processes()}
	for _, slot := range slots() {
		_, pool := slot.conns()
		s.Slots = append(s.Slots, history.Slot{Name: slot.name, Role: slot.role, Pool: pool})
	}
	return s
}
