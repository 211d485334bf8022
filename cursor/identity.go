package cursor

import (
	"cmp"
	"fmt"
	"strconv"
	"time"
)

// identity tells databases apart: a restored dump and a blue-green copy have another
// system identifier or, in the same cluster, another oid; a promoted standby has
// another timeline. The snapshot of a disk that is put back has the same of all: see
// HaltRestored.
type identity struct {
	system, timeline, database string
	run                        string // of the server: since when its postmaster runs
}

// identitySQL reads the identity of the server. The timeline is taken from the
// name of the current WAL file: the control file still says the old one after a
// promotion.
const (
	systemSQL   = `(SELECT system_identifier FROM pg_catalog.pg_control_system())`
	timelineSQL = `('x' OPERATOR(pg_catalog.||) pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::int`
	databaseSQL = `(SELECT oid FROM pg_catalog.pg_database WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database())`
	placeOfSQL  = systemSQL + `, ` + timelineSQL + `, ` + databaseSQL
	identitySQL = placeOfSQL + `,
	extract(epoch FROM pg_catalog.pg_postmaster_start_time())`
)

// lockedRow is a row whose lock is held, with the server it says it belongs to
// and the one it was read from.
type lockedRow struct {
	Row
	stored, server identity
	histories      histories
	horizon        string
	at             version
}

func parseLocked(server, values [][]byte) (lockedRow, error) {
	row, err := parseRow(values)
	if err != nil {
		return lockedRow{}, err
	}
	n := len(values)
	all, err := row.Histories.parse()
	return lockedRow{
		Row:       row,
		stored:    identity{system: string(values[n-4]), timeline: string(values[n-3]), database: string(values[n-2])},
		server:    identity{string(server[0]), string(server[1]), string(server[2]), string(server[3])},
		histories: all,
		horizon:   string(values[n-5]),
		at:        version(values[n-1]),
	}, err
}

// known reports whether the row names the server it is on.
func (r lockedRow) known() bool {
	stored := r.stored
	stored.run = r.server.run
	return stored == r.server
}

// elsewhere reports whether the position belongs to another database. A row that
// names none belongs to any: so it is after an operator has decided.
func (r lockedRow) elsewhere() bool {
	return r.stored.system != "" && r.stored.system != r.server.system ||
		r.stored.database != "" && r.stored.database != r.server.database
}

// restoredElsewhere is why a process halts whose position belongs to another cluster. What it
// had delivered there says nothing about the records here.
func (r lockedRow) restoredElsewhere() string {
	return fmt.Sprintf("the database is not the one this position belongs to (system identifier %s, now %s; oid %s, now %s): it was restored or copied, or upgraded with pg_upgrade. "+
		"After pg_upgrade, retry: nothing was lost. Else compare what receivers have with the table, then seek to where delivery shall go on, or retry to go on from here",
		r.stored.system, r.server.system, cmp.Or(r.stored.database, "not noted"), r.server.database)
}

func (r lockedRow) promoted() bool {
	return r.stored.timeline != "" && r.stored.timeline != r.server.timeline
}

// Room for what an asynchronous standby may have lost when it is promoted, or a database when
// its backup is restored. None of these numbers must be used a second time.
const (
	lostEpochs = 1_000_000 // changes of worker, and operators' decisions
	// HistoryGap: where a new history begins, the sequence moves on by a multiple of it, up to
	// 65,536 times. The remainder goes on counting records.
	HistoryGap = 1_000_000_000

	siblings      = 1 << 16
	siblingEpochs = 100 // more than begin in a second
)

// sibling differs between two histories that begin in one row, at different seconds of 18 hours: a
// backup may be restored twice, and a second standby be promoted that never received the note of
// the first promotion.
func sibling(now time.Time) int64 { return 1 + now.Unix()%siblings }

// begun is the row with numbers past all that may have been used, and with a new history
// from its position on.
func (r Row) begun() (Row, error) {
	var err error
	k := sibling(time.Now())
	r.Epoch += lostEpochs + Epoch(k)*siblingEpochs
	r.Sequence += k * HistoryGap
	r.Histories, err = r.Histories.begin(r.Position)
	return r, err
}

func (e Epoch) text() string { return strconv.FormatInt(int64(e), 10) }
