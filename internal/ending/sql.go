// Package ending makes the SQL with which an operator ends a transaction.
package ending

import (
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Transaction is the transaction of a session, as pg_stat_activity and pg_locks show it.
type Transaction struct {
	PID int
	// Virtual is its virtual id, which every role may see. It is "" if the message of the client is in the way, not
	// the transaction in which it came.
	Virtual string
	// Since is when the transaction began, or its message came; zero if the role that asks cannot see that.
	Since time.Time
}

// asSQL writes a time to the microsecond, as the server keeps it.
const asSQL = "2006-01-02T15:04:05.999999Z"

// SQL ends the transaction, and nothing that its session does later: by the time an operator runs it, a pooler may
// have given the session to another client. It also spares a COMMIT that waits for a synchronous standby, and one that
// is being written to the log just before that wait; between these two is a moment in which it may end the COMMIT. SQL
// returns "" if the transaction cannot be distinguished from the next one of its session.
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
