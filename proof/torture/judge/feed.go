package judge

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// table is a source table with the places of its rows, from 1 on.
type table struct {
	rows      []history.Row
	byKey     map[string]int
	byPlace   map[string]int // by position
	inserts   []arrival      // when each row was about to be inserted, in the order of time
	committed []arrival      // when each was committed for certain, in the order of time
}

func newTables(rows []history.Row) map[string]*table {
	tables := map[string]*table{}
	for _, row := range rows {
		t := tables[row.Table]
		if t == nil {
			t = &table{byKey: map[string]int{}, byPlace: map[string]int{"": 0}}
			tables[row.Table] = t
		}
		t.rows = append(t.rows, row)
		t.byKey[row.Key] = len(t.rows)
		t.byPlace[row.Position] = len(t.rows)
	}
	return tables
}

// place is the row that a position is of; of one between two rows, that before it.
func (t *table) place(position string) int {
	if rank, ok := t.byPlace[position]; ok {
		return rank
	}
	return sort.Search(len(t.rows), func(i int) bool { return t.rows[i].Position > position })
}

// attempt is one request as the receiver saw it. Times and numbers are 0 for what did not happen.
type attempt struct {
	history.Delivery // of the Receive
	rank             int
	applied          int // its N
	appliedAt        time.Duration
	refused          bool
	status           int
	repliedAt        time.Duration
}

func (a *attempt) acknowledged() bool { return a.status >= 200 && a.status <= 299 }

// feed is one process with all that concerns it.
type feed struct {
	history.Process
	workers  []string
	table    *table
	attempts []*attempt // in the order in which they were received
	byID     map[int]*attempt
	of       map[int][]*attempt          // by rank
	acts     []history.Delivery          // in order
	moves    []history.Move              // in order
	applied  []history.Applied           // in order
	stored   map[int][]history.Applied   // those in a stream, by rank
	actions  map[string][]history.Action // by transaction
	told     []history.Told
	holds    []history.Hold
	letters  []history.Letter
	segments []*segment
	aside    map[*segment]map[int]*letter // by rank
	stood    []stretch
	end      *history.End
	faults   []*fault
	tempo    *history.Tempo
}

func newFeeds(run *history.Run, tables map[string]*table, v *Verdict) []*feed {
	var feeds []*feed
	tempo := &history.Tempo{}
	for _, b := range run.Beats {
		tempo.Add(b)
	}
	byName := map[string]*feed{}
	for _, p := range run.Setting.Processes {
		f := &feed{Process: p, workers: run.Setting.Workers, table: tables[p.Table], byID: map[int]*attempt{}, of: map[int][]*attempt{}, tempo: tempo, actions: map[string][]history.Action{}}
		if f.table == nil {
			f.table = &table{byPlace: map[string]int{"": 0}}
		}
		feeds, byName[p.Name] = append(feeds, f), f
	}
	owner := map[int]*feed{}
	for _, d := range run.Deliveries {
		if d.Act == history.Receive {
			owner[d.ID] = byName[d.Process]
		}
		if f := owner[d.ID]; f != nil {
			f.add(d)
		} else {
			v.broken("I2", d.Process, "attempt %d belongs to no process", d.ID)
		}
	}
	for _, m := range run.Moves {
		if f := byName[m.Process]; f != nil {
			f.moves = append(f.moves, m)
		}
	}
	for _, a := range run.Applied {
		if f := byName[a.Process]; f != nil {
			f.applied = append(f.applied, a)
		}
	}
	for _, a := range run.Actions {
		if f := byName[a.Process]; f != nil {
			f.actions[a.Tx] = append(f.actions[a.Tx], a)
		}
	}
	for _, t := range run.Told {
		if f := byName[t.Process]; f != nil {
			f.told = append(f.told, t)
		}
	}
	for _, l := range run.Letters {
		if f := byName[l.Process]; f != nil {
			f.letters = append(f.letters, l)
		}
	}
	for i, e := range run.Ends {
		if f := byName[e.Process]; f != nil {
			f.end = &run.Ends[i]
		}
	}
	for _, f := range feeds {
		slices.SortFunc(f.moves, func(a, b history.Move) int { return cmp.Compare(a.N, b.N) })
		slices.SortFunc(f.applied, func(a, b history.Applied) int { return cmp.Compare(a.N, b.N) })
		f.segments = f.split()
		f.stored = f.inStream()
		for _, h := range run.Holds {
			if h.Process == f.Name || h.Table == f.Table {
				f.holds = append(f.holds, h)
			}
		}
	}
	return feeds
}

func (f *feed) add(d history.Delivery) {
	f.acts = append(f.acts, d)
	a := f.byID[d.ID]
	switch d.Act {
	case history.Receive:
		a = &attempt{Delivery: d, rank: f.table.byKey[d.Key]}
		f.byID[d.ID] = a
		f.attempts = append(f.attempts, a)
		f.of[a.rank] = append(f.of[a.rank], a)
	case history.Apply:
		a.applied, a.appliedAt = d.N, d.T
	case history.Refuse:
		a.refused = true
	case history.Reply:
		a.status, a.repliedAt = d.Status, d.T
	}
}

// applications are the attempts that were applied, in the order of that.
func (f *feed) applications() []*attempt {
	var all []*attempt
	for _, a := range f.attempts {
		if a.applied > 0 {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *attempt) int { return cmp.Compare(a.applied, b.applied) })
	return all
}
