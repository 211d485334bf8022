package cursor

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// identity distinguishes databases. A restored dump and a blue-green copy have another system identifier or, in
// the same cluster, another oid; a promoted standby has another timeline. A disk snapshot that is put back has
// all of these unchanged: see HaltRestored.
type identity struct {
	system, timeline, database string
	run                        string // of the server: prepared.RunSQL
}

// identitySQL reads the identity of the server.
const identitySQL = tables.PlaceOfSQL + `,
	` + prepared.RunSQL

// lockedRow is a row whose lock is held, with the server that the row names and the one it was read from.
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

// place returns the system identifier and the timeline, in the form of start.place.
func (i identity) place() string { return i.system + "/" + i.timeline }

// known reports whether the row names the server that it is on.
func (r lockedRow) known() bool {
	stored := r.stored
	stored.run = r.server.run
	return stored == r.server
}

// elsewhere reports whether the position belongs to another database. A row that names none belongs to any; so
// it is after an operator has decided.
func (r lockedRow) elsewhere() bool {
	return r.stored.system != "" && r.stored.system != r.server.system ||
		r.stored.database != "" && r.stored.database != r.server.database
}

// restoredElsewhere is the reason of a halt because the position belongs to another cluster. What the process
// delivered there proves nothing about the records here.
func (r lockedRow) restoredElsewhere() string {
	return fmt.Sprintf("the database is not the one this position belongs to (system identifier %s, now %s; oid %s, now %s): it was restored or copied, or upgraded with pg_upgrade. "+
		"After pg_upgrade, retry: nothing was lost. Else compare what receivers have with the table, then seek to where delivery shall go on, or retry to go on from here",
		r.stored.system, r.server.system, cmp.Or(r.stored.database, "not noted"), r.server.database)
}

// unnotedSQL is elsewhere or promoted, for a row of the table cursor.
const unnotedSQL = `coalesce(system_identifier <> ` + tables.SystemSQL + ` OR database_oid <> ` + tables.DatabaseSQL + ` OR timeline <> ` + tables.TimelineSQL + `, false)`

func (r lockedRow) promoted() bool {
	return r.stored.timeline != "" && r.stored.timeline != r.server.timeline
}

// A new history begins with numbers past all that may have been used. Two others may have used numbers: commits
// that a promoted standby had not received or a restored backup does not have, and another history that began
// in the same row. A backup may be restored twice, or a second standby be promoted that never received the note
// of the first promotion. Neither leaves a trace here, but the clock bounds both: each history counts from a
// number made of the time at which it begins.
const (
	// HistoryGap is by how much, or by what multiple of it, the sequence moves. The remainder goes on counting
	// records. The sequence stays below 2^53 until 2054.
	HistoryGap = 10_000_000

	// SeekGap is by how much an operator's seek moves the sequence on. It is more than any worker can have sent
	// beyond its last checkpoint, so no number ever belongs to two records.
	SeekGap = 10_000

	historyEvery = time.Second // HistoryGap records take longer than that
)

// DeliveredSince returns how many records were delivered since the row was as before; false if that is not known, since the
// numbers have leapt: by a seek, a promotion or a restore. What they leap over was not delivered.
func (r Row) DeliveredSince(before Row) (records int64, ok bool) {
	n := r.Sequence - before.Sequence
	if n < 0 || n >= HistoryGap || r.Epoch != before.Epoch && n >= SeekGap {
		return 0, false
	}
	return n, true
}

var firstHistory = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Begun returns the row with the numbers of a history that begins at now, and with that history from its
// position on.
func (r Row) Begun(now time.Time) (Row, error) {
	var err error
	r.Epoch = r.Epoch.Leapt(now)
	r.Sequence = max(r.Sequence/HistoryGap+1, int64(r.Epoch/tables.LostEpochs))*HistoryGap + r.Sequence%HistoryGap
	r.Histories, err = r.Histories.Begin(r.Position)
	return r, err
}

// Leapt is the first epoch of a range that begins at now, past all epochs that another server may have given
// out: at least tables.LostEpochs past this one. If the epochs are ahead of the clock, and a backup is restored twice,
// the clock gives both restores the same range. Then the first epoch is a random one of the next range. The
// range itself is never random: a later restore has to begin above this one.
func (e Epoch) Leapt(now time.Time) Epoch {
	next := (e + 2*tables.LostEpochs - 1) / tables.LostEpochs * tables.LostEpochs
	if at := Epoch(now.Sub(firstHistory)/historyEvery) * tables.LostEpochs; at > next {
		return at
	}
	return next + rand.N[Epoch](tables.LostEpochs/2)
}

// born returns the arguments of tables.BornSQL.
func born(now time.Time, anew bool) ([]string, error) {
	row, err := Row{}.Begun(now)
	return []string{row.Epoch.text(), strconv.FormatInt(row.Sequence, 10), string(row.Histories), strconv.FormatBool(anew)}, err
}

// IsFirst reports whether a number is the first that a cursor gives out: 1, or the first of a history that
// began before anything was delivered. epoch is the epoch in which it is given out.
func IsFirst(sequence int64, epoch Epoch) bool {
	return sequence-1 == int64(epoch/tables.LostEpochs)*HistoryGap
}

func (e Epoch) text() string { return strconv.FormatInt(int64(e), 10) }
