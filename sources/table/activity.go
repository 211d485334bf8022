package table

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// For stamps made at the start, statement 2 is every session that has such a
// stamp, or may have one: three statements in this order. A stamp is the arrival
// of a message, or a moment after it, and all transactions of that message may
// bear it. So a session is bounded by the arrival of the message that it is at,
// also between two transactions; by the start of its transaction; and, if it is
// idle, not at all, if it was seen to wait for its client after the mark: then its
// next message arrives later. One that is idle and was not seen to wait may
// have taken a message that it does not show yet.
//
// What was prepared comes last: a transaction that is prepared meanwhile is seen
// by its session, or there.
const (
	// The server copies the sessions' states when it is first asked for them in a
	// transaction, and what they wait for when it prints them, so after that. The
	// next statement has to see the states as they are after this one.
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

	// harmless are the sessions that cannot insert into this table: those of other
	// databases, without a user (autovacuum), that send their database's changes
	// to a subscriber, and our own that write nothing but a cursor.
	harmless = `coalesce(datid IS DISTINCT FROM (SELECT oid FROM pg_database WHERE datname = current_database())
		OR usesysid IS NULL
		OR backend_type = 'walsender' AND starts_with(upper(ltrim(query, E' \t\r\n')), 'START_REPLICATION')
		OR usesysid = (SELECT usesysid FROM pg_stat_activity WHERE pid = pg_backend_pid())
			AND ` + ours + `, false)`

	// ours are sessions that say of themselves that they write nothing but a cursor.
	// Only one of our own role is believed.
	ours = `(starts_with(application_name, '` + applicationRead + `')
				OR starts_with(application_name, '` + cursor.ApplicationLease + `')
				OR starts_with(application_name, '` + cursor.ApplicationOperator + `'))`

	// earliest is the earliest stamp that a session may have or make before it
	// takes another message: NULL for a worker in the background that is idle.
	earliest = `least(xact_start, CASE
		WHEN state <> 'idle' THEN coalesce(query_start, state_change, backend_start)
		WHEN backend_type IN ('client backend', 'walsender') THEN coalesce(state_change, backend_start)
	END)`
)

// errUnseen: a session does not show when its transactions began.
var errUnseen = errors.New("the fence of a column that defaults to the start of a transaction needs to see it")

// startedWriters puts together what waitingSQL, activitySQL and preparedSQL found.
func startedWriters(waiting string, sessions, prepared [][][]byte) ([]writer, error) {
	waited := strings.Fields(waiting)
	slices.Sort(waited)
	var writers []writer
	for _, values := range sessions {
		pid, unseen, idle := string(values[0]), string(values[2]), string(values[3]) == "t"
		if string(values[1]) == "t" {
			continue
		}
		if unseen != "" {
			return nil, notSeen(pid, unseen)
		}
		if _, ok := slices.BinarySearch(waited, pid); values[4] == nil || idle && ok {
			continue
		}
		since, err := strconv.ParseInt(string(values[4]), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("parse the start of a transaction: %w", err)
		}
		writers = append(writers, writer{id: "session " + pid, since: since, dated: true})
	}
	for _, values := range prepared {
		writers = append(writers, writer{id: string(values[0]), prepared: true})
	}
	return writers, nil
}

func notSeen(pid, why string) error {
	if why == "disabled" {
		return fmt.Errorf("session %s runs with track_activities off, so it does not show when its transactions began: %w", pid, errUnseen)
	}
	return fmt.Errorf("our role may not see when the transactions of session %s began: %w (pg_read_all_stats)", pid, errUnseen)
}
