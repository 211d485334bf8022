package cursor

// Severity is how grave a finding is: one of operator.Doctor, of a source or of a sink.
type Severity string

// The severities, worst first.
const (
	// Refuse means that the process cannot run.
	Refuse Severity = "error"
	// Warn means that it runs, but a promise is weakened or a limit is near.
	Warn Severity = "warning"
	// Note means that it is worth knowing; nothing is wrong.
	Note Severity = "note"
)
