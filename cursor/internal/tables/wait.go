package tables

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Margin is how much later than the server we give up a wait ourselves.
const Margin = 5 * time.Second

// waitSQL bounds the wait for a lock, until the transaction ends. Two settings bound it: lock_timeout starts
// again whenever a worker comes first, statement_timeout does not.
const waitSQL = `/* cursor.operate_settings */
SELECT
	set_config('application_name', $1, true),
	set_config('lock_timeout', $2, true),
	set_config('statement_timeout', $2, true),
	set_config('idle_in_transaction_session_timeout', $3, true),
	CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END`

// Wait has the statements of a transaction after it wait for a lock no longer than timeout. The server ends the
// transaction if its client is silent for longer than silence.
func Wait(application string, timeout, silence time.Duration) Statement {
	return Statement{SQL: waitSQL, Args: []string{application, Milliseconds(timeout), Milliseconds(silence)}}
}

// GaveUp reports that one of the time-outs of Wait ended a wait.
func GaveUp(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == "55P03" || pgErr.Code == "57014")
}
