package judge

import (
	"slices"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// CellVerdict is what the history of a database amounts to whose servers are replaced.
type CellVerdict struct {
	Processes int
	Servers   int // that were the primary, one after another
	Receipts  int
	Records   int // that had to be delivered: the rows of the last server, for each process
	Lost      int // of these
	Outdated  int // of these, for a receiver that compares epochs
	Gone      int // rows that were committed, and are in no server that counts any more
	Numbers   int // that stand for two records at a receiver
	Keys      int // dedup keys that do
	Strangers int // records that came under an epoch of a server that did not have them
	Changes   []CellTally
}

// CellTally is what came of the changes of one kind.
type CellTally struct {
	Kind    history.Kind
	Count   int
	Stuck   int           // processes that had not caught up in time
	Slowest time.Duration // until all had caught up
}

// cell is the history of one, by what it is asked for.
type cell struct {
	history.Cell
	last     int                         // server
	rows     map[string]*history.CellRow // by key
	tables   map[string][]*history.CellRow
	reigns   map[reign]int                 // the server that began it
	receipts map[string][]*history.Receipt // by process
}

type reign struct {
	process string
	epoch   int64
}

func newCell(h history.Cell) *cell {
	c := &cell{
		Cell: h, rows: map[string]*history.CellRow{}, tables: map[string][]*history.CellRow{},
		reigns: map[reign]int{}, receipts: map[string][]*history.Receipt{},
	}
	for i := range h.Rows {
		for _, server := range h.Rows[i].Servers {
			c.last = max(c.last, server)
		}
	}
	for i := range h.Rows {
		row := &h.Rows[i]
		c.rows[row.Key] = row
		if slices.Contains(row.Servers, c.last) {
			c.tables[row.Table] = append(c.tables[row.Table], row)
		}
	}
	for _, rows := range c.tables {
		slices.SortFunc(rows, func(a, b *history.CellRow) int { return strings.Compare(a.Position, b.Position) })
	}
	for i := range h.Receipts {
		r := &h.Receipts[i]
		c.receipts[r.Process] = append(c.receipts[r.Process], r)
	}
	return c
}

// checkCell judges a database whose servers are replaced (I14 to I17). A run without one has nothing to judge.
func (v *Verdict) checkCell(h history.Cell) {
	if len(h.Ends) == 0 && len(h.Rows) == 0 {
		return
	}
	c := newCell(h)
	v.Cell.Processes, v.Cell.Servers, v.Cell.Receipts = len(h.Ends), c.last, len(h.Receipts)
	v.checkCellWrites(c)
	v.checkReigns(c)
	for _, end := range c.Ends {
		v.checkCellLoss(c, end)
		v.checkMeanings(c, end)
		v.checkCellEnd(end)
	}
	v.checkChanges(c)
}

// checkCellWrites: what was committed is in the last server, or was in one that a change replaced which loses commits (I14).
func (v *Verdict) checkCellWrites(c *cell) {
	for _, w := range c.Writes {
		row := c.rows[w.Key]
		switch {
		case w.Step != history.Committed:
		case row == nil:
			v.broken("I14", w.Table, "row %s was committed, and stood in no server", w.Key)
		case !slices.Contains(row.Servers, c.last) && c.lossy(slices.Max(row.Servers)):
			v.Cell.Gone++
		case !slices.Contains(row.Servers, c.last):
			v.broken("I14", w.Table, "row %s was committed in server %d, and is gone, though nothing that befell that server loses commits", w.Key, slices.Max(row.Servers))
		}
	}
}

// lossy reports whether the server was replaced by what may lose commits.
func (c *cell) lossy(server int) bool {
	return slices.ContainsFunc(c.Changes, func(x history.Change) bool { return x.Server == server+1 && x.Loses() })
}

// behind reports whether the clock of the server was behind that of the one before it.
func (c *cell) behind(server int) bool {
	return slices.ContainsFunc(c.Changes, func(x history.Change) bool {
		return x.Server == server && (x.Kind == history.ClockBehind || x.Kind == history.LossyBehind || x.Kind == history.RestoreBehind || x.Kind == history.ClockStep)
	})
}

// checkReigns: no epoch is of two servers (I16).
func (v *Verdict) checkReigns(c *cell) {
	for _, r := range c.Reigns {
		which := reign{r.Process, r.Epoch}
		if before, ok := c.reigns[which]; ok && before != r.Server {
			v.broken("I16", r.Process, "epoch %d was begun in server %d, and again in server %d", r.Epoch, before, r.Server)
			continue
		}
		c.reigns[which] = r.Server
	}
}

// checkCellLoss: every row of the last server was received, and the first time in its turn (I14).
func (v *Verdict) checkCellLoss(c *cell, end history.CellEnd) {
	first, current := map[string]int{}, map[string]bool{}
	newest := int64(0)
	for i, r := range c.receipts[end.Process] {
		if r.TakenOut {
			continue
		}
		newest = max(newest, r.Epoch)
		current[r.Key] = current[r.Key] || r.Epoch == newest
		if _, ok := first[r.Key]; !ok {
			first[r.Key] = i
		}
		if row := c.rows[r.Key]; end.Once && row != nil && !slices.Contains(row.Servers, c.last) {
			v.broken("I14", end.Process, "%s has row %s, of servers %v, which are no more, and no operator was asked to take it out", end.Receiver, row.Key, row.Servers)
		}
	}
	latest, of := -1, ""
	for _, row := range c.tables[end.Table] {
		v.Cell.Records++
		at, ok := first[row.Key]
		if !ok {
			v.Cell.Lost++
			v.broken("I14", end.Process, "row %s (%s, in servers %v) was never received", row.Key, row.Position, row.Servers)
			continue
		}
		if !current[row.Key] {
			v.Cell.Outdated++
			v.broken("I15", end.Process, "row %s came under no epoch but those below one that had come before: a receiver that compares epochs does not have it", row.Key)
		}
		// What was emptied is sent again behind what came meanwhile, and what a clock stamps that is behind stands before what came.
		if end.Emptied || c.behind(row.Servers[0]) {
			continue
		}
		if at < latest {
			v.broken("I14", end.Process, "row %s was first received behind %s, which stands behind it", row.Key, of)
			continue
		}
		latest, of = max(at, latest), row.Key
	}
}

// checkMeanings: at a receiver a number and a dedup key of a process stand for one record (I15), which is one of the server that
// began its epoch (I16).
func (v *Verdict) checkMeanings(c *cell, end history.CellEnd) {
	numbers, keys := map[int64]*history.Receipt{}, map[string]*history.Receipt{}
	for _, r := range c.receipts[end.Process] {
		if before := numbers[r.Sequence]; before != nil && (before.Hash != r.Hash || end.Once) {
			v.Cell.Numbers++
			v.broken("I15", end.Process, "at %s number %d is row %s of epoch %d, and row %s of epoch %d", end.Receiver, r.Sequence, before.Key, before.Epoch, r.Key, r.Epoch)
		}
		if before := keys[r.DedupKey]; before != nil && before.Hash != r.Hash {
			v.Cell.Keys++
			v.broken("I15", end.Process, "at %s the dedup key %q is row %s of epoch %d, and row %s of epoch %d", end.Receiver, r.DedupKey, before.Key, before.Epoch, r.Key, r.Epoch)
		}
		numbers[r.Sequence], keys[r.DedupKey] = r, r
		v.checkOrigin(c, r)
	}
}

func (v *Verdict) checkOrigin(c *cell, r *history.Receipt) {
	row, server := c.rows[r.Key], c.reigns[reign{r.Process, r.Epoch}]
	switch {
	case row == nil:
		v.broken("I2", r.Process, "%s was received, and stood in no server", r.Key)
	case row.Hash != r.Hash:
		v.broken("I9", r.Process, "row %s came with other contents", r.Key)
	case server == 0:
		v.broken("I16", r.Process, "row %s came under epoch %d, which no server began", r.Key, r.Epoch)
	case !slices.Contains(row.Servers, server):
		v.Cell.Strangers++
		v.broken("I16", r.Process, "row %s, of servers %v, came under epoch %d, which server %d began", r.Key, row.Servers, r.Epoch, server)
	}
}

// checkCellEnd: in the end every process stands at the end of its table, and runs (I17).
func (v *Verdict) checkCellEnd(end history.CellEnd) {
	if end.Cursor.Position != end.Last || end.Cursor.State != running {
		v.broken("I17", end.Process, "in the end it is %s at %q, and the last row is at %q: %s", end.Cursor.State, end.Cursor.Position, end.Last, end.Error)
	}
}

// checkChanges: after each change every process soon goes on (I17).
func (v *Verdict) checkChanges(c *cell) {
	tallies := map[history.Kind]*CellTally{}
	for _, x := range c.Changes {
		t := tallies[x.Kind]
		if t == nil {
			t = &CellTally{Kind: x.Kind}
			tallies[x.Kind] = t
		}
		t.Count++
		t.Stuck += len(x.Stuck)
		t.Slowest = max(t.Slowest, x.Recovered)
		for _, stuck := range x.Stuck {
			v.broken("I17", "", "%v after %q, which was over at %v, it had not caught up: %s", x.Patience, x.Kind, x.To, stuck)
		}
	}
	for _, kind := range history.CellKinds() {
		if t := tallies[kind]; t != nil {
			v.Cell.Changes = append(v.Cell.Changes, *t)
		}
	}
}
