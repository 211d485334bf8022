package history

import "time"

// Cell is the history of a database whose servers are replaced, and of its receivers. Its servers are counted from 1, in the
// order in which each was the primary.
//
//	cell-producer.jsonl  Write     each row, which is a transaction of its own
//	cell-receipts.jsonl  Receipt   each record, as its receiver has it
//	cell-rows.jsonl      CellRow   the rows of all servers
//	cell-reigns.jsonl    Reign     which server began which epoch
//	cell-changes.jsonl   Change    how a server was replaced, or a receiver emptied
//	cell-ends.jsonl      CellEnd   how each process stood when it was over
//	beats.jsonl          Beat      how busy the machine was
type Cell struct {
	Writes   []Write
	Receipts []Receipt
	Rows     []CellRow
	Reigns   []Reign
	Changes  []Change
	Ends     []CellEnd
}

// Receipt is a record as its receiver has it. The entries of one receiver are in its order.
type Receipt struct {
	T        time.Duration `json:"t,omitempty"`
	Process  string        `json:"process"`
	Receiver string        `json:"receiver"`
	Key      string        `json:"key"`
	Hash     string        `json:"hash"`
	DedupKey string        `json:"dedup_key"`
	Sequence int64         `json:"sequence"`
	Epoch    int64         `json:"epoch"`
	TakenOut bool          `json:"taken_out,omitempty"` // later, by an operator who compared the receiver with the table
}

// CellRow is a row of a table, and the servers in which it stood when each was replaced or all was over. Position is that of
// the last of them.
type CellRow struct {
	Table    string `json:"table"`
	Key      string `json:"key"`
	Hash     string `json:"hash"`
	Position string `json:"position"`
	Servers  []int  `json:"servers"`
}

// Reign is an epoch of a process that a server began, by the audit of its row.
type Reign struct {
	Process string `json:"process"`
	Epoch   int64  `json:"epoch"`
	Server  int    `json:"server"`
}

// Change is a fault of the cell, once it is over. Server is the primary from then on.
type Change struct {
	From     time.Duration `json:"from"`
	To       time.Duration `json:"to"`
	Kind     Kind          `json:"kind"`
	Server   int           `json:"server"`
	Receiver string        `json:"receiver,omitempty"` // that was emptied
	// Recovered is what the time from To until every process had delivered what was there is worth. Stuck are those that had
	// not within Patience, each with how it stood.
	Recovered time.Duration `json:"recovered"`
	Patience  time.Duration `json:"patience"`
	Stuck     []string      `json:"stuck,omitempty"`
	Detail    string        `json:"detail,omitempty"`
}

// CellEnd is how a process of the cell stood when everything was over.
type CellEnd struct {
	Process  string   `json:"process"`
	Table    string   `json:"table"`
	Receiver string   `json:"receiver"`
	Once     bool     `json:"once,omitempty"`    // the receiver takes each number once
	Emptied  bool     `json:"emptied,omitempty"` // the receiver is, now and then
	Cursor   Standing `json:"cursor"`
	Last     string   `json:"last"` // position of the last row
	Error    string   `json:"error,omitempty"`
}

// The files of a cell, and their directory in that of the run.
const (
	CellDir = "cell"

	CellProducerActor = "cell-producer"
	CellReceiptsActor = "cell-receipts"
	CellRowsActor     = "cell-rows"
	CellReignsActor   = "cell-reigns"
	CellChangesActor  = "cell-changes"
	CellEndsActor     = "cell-ends"
)

// The faults of a cell.
const (
	LossyPromotion Kind = "standby promoted, commits lost"
	RestoreFiles   Kind = "snapshot of the files put back"
	ClockBehind    Kind = "standby promoted, its clock behind"
	LossyBehind    Kind = "standby promoted, commits lost, its clock behind"
	HangPrimary    Kind = "primary hangs, standby promoted"
	TwoPrimaries   Kind = "standby promoted, the old primary goes on"
	EmptyReceiver  Kind = "receiver emptied, an operator seeks back"
	RestoreAgain   Kind = "the same snapshot put back once more"
	RestoreBehind  Kind = "snapshot put back, the clock behind, a process paused"
	ClockStep      Kind = "the clock steps back for seconds, a process paused, the daemons replaced"
	LazyCrash      Kind = "server crashed, its disk without the last commits"
	RestoreMoment  Kind = "snapshot put back that lacks a record in flight"
)

// CellKinds are those of a cell, in the order of a report.
func CellKinds() []Kind {
	return []Kind{LossyPromotion, RestoreFiles, ClockBehind, HangPrimary, TwoPrimaries, EmptyReceiver, RestoreAgain, LossyBehind, RestoreBehind, ClockStep, LazyCrash, RestoreMoment}
}

// loses reports whether commits may be gone once it is over.
func (k Kind) loses() bool {
	return k == LossyPromotion || k == LossyBehind || k == RestoreFiles || k == RestoreAgain || k == RestoreBehind || k == RestoreMoment || k == TwoPrimaries || k == HangPrimary
}

// Loses reports whether the change may have lost commits.
func (c Change) Loses() bool { return c.Kind.loses() }

func readCell(dir string, c *Cell) error {
	for _, err := range []error{
		read(dir, CellProducerActor, &c.Writes),
		read(dir, CellReceiptsActor, &c.Receipts),
		read(dir, CellRowsActor, &c.Rows),
		read(dir, CellReignsActor, &c.Reigns),
		read(dir, CellChangesActor, &c.Changes),
		read(dir, CellEndsActor, &c.Ends),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}
