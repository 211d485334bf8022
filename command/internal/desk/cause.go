package desk

// Cause is what keeps records of a process waiting.
type Cause string

// The causes.
const (
	// CauseFence: an open transaction may still insert before the records that wait.
	CauseFence Cause = "fence"
	// CauseReceiver: the receiver is slow, or fails.
	CauseReceiver Cause = "receiver"
	// CauseHalt: a record failed for good, and waits for a decision.
	CauseHalt Cause = "halt"
	// CauseLimit: the limit of the process in the file.
	CauseLimit Cause = "limit"
	// CausePause: an operator paused the process.
	CausePause Cause = "pause"
	// CauseNobody: no worker runs the process.
	CauseNobody Cause = "nobody"
	// CauseLock: another session has locked the row of the process.
	CauseLock Cause = "lock"
	// CauseBacklog: the worker delivers, and has not come to these records yet.
	CauseBacklog Cause = "backlog"
	// CauseUnknown: nobody looked then.
	CauseUnknown Cause = "unknown"
)

// Causes lists all causes.
func Causes() []Cause {
	return []Cause{CauseFence, CauseReceiver, CauseHalt, CauseLimit, CausePause, CauseNobody, CauseLock, CauseBacklog, CauseUnknown}
}

// Share is how long one cause kept the oldest record waiting.
type Share struct {
	Cause   Cause   `json:"cause"`
	Seconds float64 `json:"seconds"`
}
