// Package ending makes the SQL that an operator ends a transaction with.
package ending

import (
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Transaction is one of a session, as pg_stat_activity and pg_locks show it.
type Transaction struct {
	PID int
	// Virtual is its virtual id, which every role may see. "" where it is not the transaction that is in the way,
	// but the message of the client that it came with.
	Virtual string
	// Since is when the transaction began, or its message came; zero where that is hidden from the role that asks.
	Since time.Time
}

// asSQL is a time to the microsecond, as the server keeps it.
const asSQL = "2006-01-02T15:04:05.999999Z"

// SQL ends the transaction, and nothing that its session does later: by the time that somebody runs it, a pooler may have
// given the session to another client. Nor does it end a COMMIT that waits for a synchronous standby, or that is written to the
// log just before; between these two is a moment in which it may. It is "" where the transaction cannot be told from the next
// one of its session.
func (t Transaction) SQL() string {
	var which string
	switch {
	case t.Virtual == "" && t.Since.IsZero():
		return ""
	case t.Virtual == "":
		which = "least(xact_start, query_start) = '" + t.Since.UTC().Format(asSQL) + "' AND state <> 'idle'"
	case t.Since.IsZero():
		which = "pid IN (SELECT pid FROM pg_locks WHERE virtualtransaction = " + visible.Literal(t.Virtual) + ")"
	default:
		which = "xact_start = '" + t.Since.UTC().Format(asSQL) + "'"
	}
	return fmt.Sprintf("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %d AND %s AND coalesce(lower(wait_event), '') NOT IN ('syncrep', 'walwrite', 'walsync')", t.PID, which)
}
