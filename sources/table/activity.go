package table

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// For stamps made at the start, statement 2 finds every session that has such a stamp, or may have one. It consists
// of three statements in this order. A stamp is the arrival of a message, or a moment after it, and all transactions
// of that message may bear it. So a session is bounded by the arrival of its current message, also between two
// transactions, and by the start of its transaction. An idle session has no bound if it was seen, after the mark, to
// wait for its client: its next message arrives later. An idle session that was not seen to wait may have taken a
// message that it does not show yet.
//
// The prepared transactions come last. If a transaction is prepared in the meantime, either its session or this last
// statement shows it.
const (
	// The server copies the states of the sessions when a transaction first asks for them. It copies what they wait
	// for when it prints them, so after that. The next statement has to see the states as they are after this one.
	waitingSQL = `/* source.waiting */
SELECT coalesce(string_agg(pid::text, ' '), ''), pg_stat_clear_snapshot()::text
FROM pg_stat_activity
WHERE wait_event_type = 'Client' AND wait_event = 'ClientRead'`

	activitySQL = `/* source.activity */
SELECT
	pid,
	` + harmless + `,
	CASE WHEN backend_type IS NULL THEN 'hidden' WHEN state = 'disabled' THEN 'disabled' ELSE '' END,
	state = 'idle',
	(extract(epoch FROM ` + earliest + `) * 1000000)::bigint
FROM pg_stat_activity
WHERE pid <> pg_backend_pid()
LIMIT 100000`

	preparedSQL = `/* source.prepared */
SELECT transaction::text
FROM pg_prepared_xacts
WHERE database = current_database()
LIMIT 100000`

	// harmless matches the sessions that cannot insert into this table: those of other databases, those without a user
	// (autovacuum), those that send their database's changes to a subscriber, and our own that write only a cursor.
	harmless = `coalesce(datid IS DISTINCT FROM (SELECT oid FROM pg_database WHERE datname = current_database())
		OR usesysid IS NULL
		OR backend_type = 'walsender' AND starts_with(upper(ltrim(query, E' \t\r\n')), 'START_REPLICATION')
		OR usesysid = (SELECT usesysid FROM pg_stat_activity WHERE pid = pg_backend_pid())
			AND ` + ours + `, false)`

	// ours matches sessions whose name claims that they write only a cursor. Only a session of our own role is
	// believed.
	ours = `(starts_with(application_name, '` + applicationRead + `')
				OR starts_with(application_name, '` + cursor.ApplicationLease + `')
				OR starts_with(application_name, '` + cursor.ApplicationOperator + `'))`

	// earliest is the earliest stamp that a session may have, or make before it takes another message. It is NULL for
	// an idle background worker.
	earliest = `least(xact_start, CASE
		WHEN state <> 'idle' THEN coalesce(query_start, state_change, backend_start)
		WHEN backend_type IN ('client backend', 'walsender') THEN coalesce(state_change, backend_start)
	END)`
)

// errUnseen: a session does not show when its transactions began.
var errUnseen = errors.New("the fence of a column that defaults to the start of a transaction needs to see it")

// startedWriters combines the results of waitingSQL, activitySQL and preparedSQL.
func startedWriters(waiting string, sessions, prepared [][][]byte) ([]writer, error) {
	waited := strings.Fields(waiting)
	slices.Sort(waited)
	var writers []writer
	for _, values := range sessions {
		pid, insertsNothing := string(values[0]), string(values[1]) == "t"
		unseen, idle, from := string(values[2]), string(values[3]) == "t", values[4]
		if insertsNothing {
			continue
		}
		if unseen != "" {
			return nil, notSeen(pid, unseen)
		}
		if _, ok := slices.BinarySearch(waited, pid); from == nil || idle && ok {
			continue
		}
		since, err := strconv.ParseInt(string(from), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("parse the start of a transaction: %w", err)
		}
		writers = append(writers, writer{id: "session " + pid, since: since, dated: true})
	}
	for _, values := range prepared {
		transaction := values[0]
		writers = append(writers, writer{id: string(transaction), prepared: true})
	}
	return writers, nil
}

func notSeen(pid, why string) error {
	if why == "disabled" {
		return fmt.Errorf("session %s runs with track_activities off, so it does not show when its transactions began: %w", pid, errUnseen)
	}
	return fmt.Errorf("our role may not see when the transactions of session %s began: %w (pg_read_all_stats)", pid, errUnseen)
}
