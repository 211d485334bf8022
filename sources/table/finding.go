package table

import (
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Severity of a Finding.
type Severity string

const (
	// Refuse: the source cannot keep its promises and does not read.
	Refuse Severity = "error"
	// Warn: it reads, with a promise weakened.
	Warn Severity = "warning"
	// Note: the source reads, and other users of the table may get around a promise. Only InspectRows returns it.
	Note Severity = "note"
)

// Finding describes something about a table that breaks or weakens a promise.
type Finding struct {
	Severity Severity
	// Problem explains in one sentence what is wrong.
	Problem string
	// Fix is the next step: SQL, or else a change of the configuration.
	Fix string
}

func (f Finding) String() string {
	if f.Fix == "" {
		return f.Problem
	}
	return fmt.Sprintf("%s; fix: %s", f.Problem, f.Fix)
}

// fault is a Finding of an examination, with the DDL that ends it.
type fault struct {
	Finding
	statements []string // none if DDL alone does not end it
	// apply changes the catalog in memory as the statements will change the server's. DDL then examines it again.
	// It is nil if the statements change nothing that other findings depend on.
	apply func()
	// instead is another way to end it, beside the statements.
	instead string
}

// finding makes a Finding in which no name ends a line, neither in the problem nor in the SQL.
func finding(severity Severity, fix, problem string, args ...any) Finding {
	return Finding{severity, visible.Inline(fmt.Sprintf(problem, args...)), visible.SQL(fix)}
}
