package history

import (
	"fmt"
	"time"
)

// Setting is what a run was made with.
type Setting struct {
	Seed      uint64        `json:"seed"`
	For       time.Duration `json:"for"`
	Drift     time.Duration `json:"drift"`
	Workers   []string      `json:"workers"`
	Slots     []Slot        `json:"slots,omitempty"` // of the workers, by name
	Processes []Process     `json:"processes"`
}

// Slot is as whom, and with how many connections, a worker runs.
type Slot struct {
	Name string `json:"name"`
	Role string `json:"role,omitempty"` // of the database, with no more rights than it needs; "" = the superuser
	Pool int    `json:"pool,omitempty"` // connections at most; 0 = as many as the daemon likes
}

// SinkKind is where the records of a process go.
type SinkKind string

// The sinks.
const (
	Webhook SinkKind = "webhook" // to the receiver, at least once
	SQL     SinkKind = "sql"     // into a table beside the cursor, exactly once
	Remote  SinkKind = "sql url" // into a table of another database, exactly once
	Queue   SinkKind = "queue"   // of a RabbitMQ broker, at least once
	Stream  SinkKind = "stream"  // of a NATS server, which refuses superseded workers; once
)

// Process is one named cursor.
type Process struct {
	Name       string   `json:"name"`
	Table      string   `json:"table"`
	Sink       SinkKind `json:"sink"`
	Checkpoint int      `json:"checkpoint"`
	Fencing    bool     `json:"fencing,omitempty"` // the receiver refuses a smaller epoch than it has seen
	Signed     bool     `json:"signed,omitempty"`
	// Sparse: a condition leaves most rows of the table out, so the cursor may stand between two that it takes.
	Sparse bool `json:"sparse,omitempty"`
	// Letters: a record that is refused for good, or was tried Attempts times if that is not 0, is put aside.
	Letters  bool `json:"letters,omitempty"`
	Attempts int  `json:"attempts,omitempty"`
	Limit    int  `json:"limit,omitempty"` // of records in a second; 0 = none
	// Breaker: after so many failed attempts in a row there is a pause of Cooldown before each further one; 0 = none.
	Breaker  int           `json:"breaker,omitempty"`
	Cooldown time.Duration `json:"cooldown,omitempty"`
}

// Step of a transaction.
type Step string

// What becomes of a transaction. Prepared is neither committed nor given up until another step says so.
const (
	Insert    Step = "insert"
	Try       Step = "commit_try"
	Committed Step = "commit_ok"
	Aborted   Step = "abort"
	Unknown   Step = "unknown"
	Prepared  Step = "prepared"
)

// Write is a step of a producer's transaction; Insert is one row.
type Write struct {
	T     time.Duration `json:"t"`
	Step  Step          `json:"step"`
	Tx    string        `json:"tx"`
	Table string        `json:"table,omitempty"`
	Key   string        `json:"key,omitempty"`
	Hash  string        `json:"hash,omitempty"`
	Load  string        `json:"load,omitempty"` // of Insert: the way to write
}

// Act of the receiver.
type Act string

// The life of an attempt at the receiver: one Receive, then Apply or Refuse or neither, then at most one Reply.
const (
	Receive Act = "recv"
	Apply   Act = "apply"
	Refuse  Act = "refuse" // an epoch smaller than one seen
	Reply   Act = "reply"  // noted before the answer is on its way
)

// Delivery is one act of the receiver on one attempt.
type Delivery struct {
	T        time.Duration `json:"t"`
	Act      Act           `json:"act"`
	ID       int           `json:"id"` // of the attempt: the same for all its acts
	Process  string        `json:"process,omitempty"`
	Worker   string        `json:"worker,omitempty"`
	Key      string        `json:"key,omitempty"`
	DedupKey string        `json:"dedup_key,omitempty"`
	Position string        `json:"position,omitempty"`
	Hash     string        `json:"hash,omitempty"`
	Sequence int64         `json:"sequence,omitempty"`
	Epoch    int64         `json:"epoch,omitempty"`
	Attempt  int           `json:"attempt,omitempty"`
	BadSign  bool          `json:"bad_sign,omitempty"` // the process signs, and this signature is wrong
	Fault    int           `json:"fault,omitempty"`    // which decides the answer; 0 = none
	N        int           `json:"n,omitempty"`        // of Apply: the order of all applications
	Status   int           `json:"status,omitempty"`   // of Reply
}

// Phase of a fault.
type Phase string

// A fault begins and ends, or finds nothing to break and is missed. One that did not take hold until its end
// (nothing came through the torn connection) is missed as well.
const (
	Begin  Phase = "begin"
	Ended  Phase = "end"
	Missed Phase = "missed"
)

// Fault is a phase of an injected fault.
type Fault struct {
	T       time.Duration `json:"t"`
	Phase   Phase         `json:"phase"`
	ID      int           `json:"id"`
	Kind    Kind          `json:"kind"`
	Worker  string        `json:"worker,omitempty"`  // "" = not one worker's
	Process string        `json:"process,omitempty"` // "" = of all processes
	Broker  SinkKind      `json:"broker,omitempty"`  // of those with this sink; "" = of all
	Detail  string        `json:"detail,omitempty"`
}

// Standing is what of a cursor's row is judged.
type Standing struct {
	Position string `json:"position"`
	Sequence int64  `json:"sequence"`
	Epoch    int64  `json:"epoch"`
	State    string `json:"state"`
	Failed   string `json:"failed,omitempty"`   // the position of the failing record
	Timeline int64  `json:"timeline,omitempty"` // of the server that the position belongs to
}

// Move is a committed UPDATE of a cursor's row. N orders those of one process, since it is taken under the row's lock.
type Move struct {
	T         time.Duration `json:"t"`         // of the statement
	Committed time.Duration `json:"committed"` // of its transaction
	N         int64         `json:"n"`
	Tx        string        `json:"tx"`
	Backend   int           `json:"backend"`
	Process   string        `json:"process"`
	From      Standing      `json:"from"`
	To        Standing      `json:"to"`
}

// Told is what somebody who watches was told of a process, of some moment between From and T.
type Told struct {
	From    time.Duration `json:"from"`             // when status was asked; when the look began that a worker's metrics are from
	T       time.Duration `json:"t"`                // when the answer was there
	Worker  string        `json:"worker,omitempty"` // whose metrics; "" = status
	Process string        `json:"process"`
	At      Standing      `json:"at"`  // of metrics: Sequence, Epoch and State
	Lag     int64         `json:"lag"` // -1 = it did not say; metrics do not
	// Hold is what status says that delivery is held up by, and HeldBack by how many transactions.
	Hold     string `json:"hold,omitempty"`
	HeldBack int    `json:"held_back,omitempty"`
	// Leased says that a worker had the row at some moment between the two, as the server itself answered.
	Leased  bool   `json:"leased,omitempty"`
	Problem string `json:"problem,omitempty"` // why it does not know all of this
}

// HoldKind is what is held.
type HoldKind string

// The holds.
const (
	HoldsRow   HoldKind = "row"   // a stranger has locked the row of a process
	HoldsTable HoldKind = "table" // a transaction has written to a table and is open, or prepared
)

// Hold is a stretch of time throughout which somebody held something for certain: from the answer to what took it until
// right before what gave it back.
type Hold struct {
	From    time.Duration `json:"from"`
	To      time.Duration `json:"to"`
	Kind    HoldKind      `json:"kind"`
	Process string        `json:"process,omitempty"`
	Table   string        `json:"table,omitempty"`
}

// Letter is a row of dead_letter as it stood at the end.
type Letter struct {
	Tx         string `json:"tx"` // that wrote it last: while it is open, that of its Move
	Process    string `json:"process"`
	Key        string `json:"key"`
	Position   string `json:"position"`
	Hash       string `json:"hash"` // of its payload
	Sequence   int64  `json:"sequence"`
	Attempts   int    `json:"attempts"`
	Resolution string `json:"resolution,omitempty"`
}

// Row is a row of a source table as it stood at the end. Its position is spelled by SQL of the torture's own, in the
// order of the table.
type Row struct {
	Table    string `json:"table"`
	Position string `json:"position"`
	Key      string `json:"key"`
	Hash     string `json:"hash"`
}

// Applied is a row that a sql sink wrote, or a message that lay in a queue or a stream at the end. N is their order.
type Applied struct {
	N        int64         `json:"n"`
	T        time.Duration `json:"t,omitempty"` // of a stream: when the server took it
	Process  string        `json:"process"`
	Key      string        `json:"key"`
	Position string        `json:"position"`
	Hash     string        `json:"hash"`
	Sequence int64         `json:"sequence"`
	Epoch    int64         `json:"epoch,omitempty"` // of a stream
}

// Operator is who acts for the torture.
const Operator = "torture"

// ReplayTimeout is how long a replay of an operator may take.
const ReplayTimeout = 5 * time.Second

// OperatorOf is an operator of one fault's own, who decides once.
func OperatorOf(fault int) string { return fmt.Sprintf("%s, fault %d", Operator, fault) }

// Action is an event of the dispatcher's own audit: what was done to a process, by a worker or an operator.
type Action struct {
	T       time.Duration `json:"t"`
	Tx      string        `json:"tx"` // that of its Move
	Process string        `json:"process"`
	Kind    string        `json:"kind"`
	Actor   string        `json:"actor"`
	From    string        `json:"from,omitempty"`
	To      string        `json:"to,omitempty"`
}

// End is how a process stood when everything was over.
type End struct {
	Process  string        `json:"process"`
	Waited   time.Duration `json:"waited"`   // from the last fault until it had caught up
	Stood    time.Duration `json:"stood"`    // still, meanwhile, at most
	Patience time.Duration `json:"patience"` // for how long it may stand still
	Cursor   Standing      `json:"cursor"`
	// What `status --json` said.
	Status   Standing `json:"status"`
	Lag      int64    `json:"lag"`
	Problem  string   `json:"problem,omitempty"`
	Sessions int      `json:"sessions"` // of all workers at the server
	Allowed  int      `json:"allowed"`  // for all of them
	Files    int      `json:"files"`    // that a worker has open, at most; 0 = not known
}
