package cursor

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
)

// identity tells databases apart: a restored dump and a blue-green copy have another
// system identifier or, in the same cluster, another oid; a promoted standby has
// another timeline. The snapshot of a disk that is put back has the same of all.
type identity struct{ system, timeline, database string }

// identitySQL reads the identity of the server. The timeline is taken from the
// name of the current WAL file: the control file still says the old one after a
// promotion.
const identitySQL = `(SELECT system_identifier FROM pg_catalog.pg_control_system()),
	('x' OPERATOR(pg_catalog.||) pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::int,
	(SELECT oid FROM pg_catalog.pg_database WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database())`

// lockedRow is a row whose lock is held, with the cluster it says it belongs to
// and the one it was read from.
type lockedRow struct {
	Row
	stored, server identity
}

func parseLocked(server, values [][]byte) (lockedRow, error) {
	row, err := parseRow(values)
	n := len(values)
	return lockedRow{
		Row:    row,
		stored: identity{string(values[n-3]), string(values[n-2]), string(values[n-1])},
		server: identity{string(server[0]), string(server[1]), string(server[2])},
	}, err
}

// elsewhere reports whether the position belongs to another database. A row that
// names none belongs to any: so it is after an operator has decided.
func (r lockedRow) elsewhere() bool {
	return r.stored.system != "" && r.stored.system != r.server.system ||
		r.stored.database != "" && r.stored.database != r.server.database
}

func (r lockedRow) promoted() bool {
	return r.stored.timeline != "" && r.stored.timeline != r.server.timeline
}

// lostEpochs is more than the changes of worker that an asynchronous standby may
// have lost when it is promoted. Their epochs must not be used a second time.
const lostEpochs = 1000

// epochs is how far the epoch moves at a take-over.
func (r lockedRow) epochs() int64 {
	if r.promoted() {
		return lostEpochs
	}
	return 1
}

// promoted is the audit of a promotion: what was committed before it may be lost,
// and ids may come again.
func (s *Store) promoted(row lockedRow) []statement {
	if !row.promoted() {
		return nil
	}
	reason := fmt.Sprintf("a standby was promoted: the server's timeline was %s and is %s", row.stored.timeline, row.server.timeline)
	return []statement{{sql: s.sql(eventSQL), args: []string{row.Process, s.config.Worker, "promoted", reason, string(row.Position), string(row.Position), null, null, null}}}
}

// haltRestored halts a process whose position belongs to another cluster. What it
// had delivered there says nothing about the records here.
func (s *Store) haltRestored(ctx context.Context, conn *pgxpool.Conn, row lockedRow) error {
	reason := fmt.Sprintf("the database is not the one this position belongs to (system identifier %s, now %s; oid %s, now %s): it was restored or copied, or upgraded with pg_upgrade. "+
		"After pg_upgrade, retry: nothing was lost. Else compare what receivers have with the table, then seek to where delivery shall go on, or retry to go on from here",
		row.stored.system, row.server.system, cmp.Or(row.stored.database, "not noted"), row.server.database)
	results, err := flush(ctx, conn.Conn(), pin,
		statement{sql: s.sql(failSQL), args: []string{
			row.Process, strconv.FormatInt(int64(row.Epoch), 10), string(row.Position), "", "0", "0", "0", reason, string(ClassRestored), string(Halted)}},
		statement{sql: s.sql(eventSQL), args: []string{row.Process, s.config.Worker, "halt", reason, string(row.Position), string(row.Position), null, null, null}},
		commit)
	if err == nil && !committed(results, 3) {
		err = errNotAsLocked
	}
	if err != nil {
		return err
	}
	return ErrHalted
}
