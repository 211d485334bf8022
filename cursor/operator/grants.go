package operator

import (
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/tables"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/privilege"
)

// Duty is a task that a role does with the cursors of a schema, and needs rights for.
type Duty string

// The duties.
const (
	// DutyDeliver is to acquire leases, and all that a Lease does except PutAside.
	DutyDeliver Duty = "deliver"
	// DutyPutAside is cursor.Lease.PutAside, in addition to DutyDeliver.
	DutyPutAside Duty = "put aside"
	// DutyCount is CountDeadLetters, in addition to DutyDeliver. Without it everything is still delivered, but
	// records that were put aside go unnoticed.
	DutyCount Duty = "count"
	// DutyCreate is Create, in addition to DutyDeliver. It may be taken away once each process has its cursor.
	DutyCreate Duty = "create"
	// DutyDecide is the methods that take a Decision, History and DeadLetters. It is not enough to take over a
	// lease, nor to read the contents of records.
	DutyDecide Duty = "decide"
	// DutyReplay is cursor.Lease.Letter and cursor.Lease.Replayed, in addition to DutyDecide and DutyDeliver.
	DutyReplay Duty = "replay"
	// DutyAmend is Amend, Unamend and Amendments, in addition to DutyDecide. Amend needs the row's payload, too.
	DutyAmend Duty = "amend"
	// DutyShow is Since, Amendments and Pruned, in addition to DutyDeliver.
	DutyShow Duty = "show"
	// DutyPrune is Prune: to read the cursors, to note how far rows are gone, and to forget the amendments of those. The rights to the source's table
	// come in addition.
	DutyPrune Duty = "prune"
	// DutyErase is EraseLetters, which erases amendments as well, and NoteErased, in addition to DutyDeliver.
	DutyErase Duty = "erase"
	// DutyNotify is to keep who was told of which alarm, in addition to DutyDeliver and DutyCount. Package cursor does
	// nothing with that table: the daemon does.
	DutyNotify Duty = "notify"
)

// amendedColumns are the columns of an amendment that Amend writes.
var amendedColumns = []string{"process_name", "position", "dedup_key", "table_name", "record_id", "original", "actor", "reason", "payload"}

// stateColumns are the columns of a cursor that workers and operators write.
var stateColumns = []string{
	"position", "sequence", "epoch", "state", "failed_position", "failed_record_id", "failed_attempts",
	"first_failed_at", "last_failed_at", "next_attempt_at", "failed_error", "failed_class", "system_identifier", "timeline", "database_oid", "histories", "horizon",
}

// Grants returns the SQL that gives a role, as the catalog spells it, the rights its duties need in the schema,
// and nothing else: down to single columns. It asks no database. Sources and sinks report themselves what they
// need.
func (o *Operator) Grants(role string, duties ...Duty) string {
	var b strings.Builder
	for _, on := range privilege.ByObject(o.Needs(duties...)) {
		b.WriteString(privilege.Grant(role, on...) + ";\n")
	}
	return b.String()
}

// Needs returns the rights that Grants grants.
func (o *Operator) Needs(duties ...Duty) []privilege.Privilege {
	var needed []privilege.Privilege
	for _, duty := range duties {
		switch duty {
		case DutyDeliver: // UPDATE of any column is enough for FOR UPDATE
			needed = append(append(needed, o.auditNeeds()...), o.may("UPDATE", "cursor", append([]string{"holder"}, stateColumns...)...),
				o.may("SELECT", "cursor_amended"))
		case DutyPutAside:
			needed = append(needed, o.may("INSERT", "dead_letter",
				"process_name", "position", "sequence", "table_name", "record_id", "key", "type", "record_created_at",
				"headers", "payload", "attempts", "first_failed_at", "error", "class"))
		case DutyCount:
			needed = append(needed, o.may("SELECT", "dead_letter", "process_name", "resolution"))
		case DutyCreate:
			needed = append(needed, o.may("INSERT", "cursor", "process_name", "position", "system_identifier", "timeline", "database_oid", "epoch", "sequence", "histories"))
		case DutyDecide:
			needed = append(append(needed, o.auditNeeds()...),
				o.may("INSERT", "cursor", "process_name", "position", "state", "system_identifier", "timeline", "database_oid", "epoch", "sequence", "histories"),
				o.may("UPDATE", "cursor", append([]string{"process_name"}, stateColumns...)...),
				o.may("DELETE", "cursor"),
				o.may("SELECT", "cursor_pruned"),
				o.may("SELECT", "dead_letter", tables.LetterColumns...),
				o.may("UPDATE", "dead_letter", "process_name", "resolution", "resolved_at", "resolved_by", "reason"),
				o.may("SELECT", "cursor_amended", "process_name"),
				o.may("UPDATE", "cursor_amended", "process_name"),
				o.may("DELETE", "cursor_amended"))
		case DutyAmend:
			needed = append(needed,
				o.may("SELECT", "cursor_amended"),
				o.may("INSERT", "cursor_amended", amendedColumns...),
				o.may("UPDATE", "cursor_amended", "payload", "original", "actor", "db_user", "reason", "at"))
		case DutyReplay:
			needed = append(needed, o.may("SELECT", "dead_letter", "headers", "payload"))
		case DutyShow:
			needed = append(needed, o.may("SELECT", "cursor_pruned"), o.may("SELECT", "cursor_amended"), o.may("SELECT", "dead_letter", append([]string{"headers", "payload"}, tables.LetterColumns...)...))
		case DutyPrune:
			needed = append(append(needed, o.auditNeeds()...),
				o.may("SELECT", "cursor_pruned"),
				o.may("INSERT", "cursor_pruned", "table_name", "kind", "through", "mode", "place", "removed"),
				o.may("UPDATE", "cursor_pruned", "kind", "through", "mode", "place", "removed", "at"),
				o.may("SELECT", "cursor_amended"),
				o.may("DELETE", "cursor_amended"))
		case DutyNotify:
			needed = append(needed,
				o.may("SELECT", "cursor_alarm"),
				o.may("INSERT", "cursor_alarm", "process_name", "event", "target", "messages", "claimed_by", "claimed_until"),
				o.may("UPDATE", "cursor_alarm", "told", "mark", "since", "messages", "flaps", "told_at", "told_by", "gone_since", "claimed_by", "claimed_until"))
		case DutyErase:
			needed = append(needed,
				o.may("SELECT", "dead_letter", "process_name", "table_name", "record_id", "key", "resolution"),
				o.may("UPDATE", "dead_letter", "key", "headers", "payload", "error"),
				o.may("SELECT", "cursor_amended", "process_name", "table_name", "record_id"),
				o.may("DELETE", "cursor_amended"))
		}
	}
	return needed
}

// auditNeeds returns the rights to read the cursors, and to read and write their audit, except the time at
// which something is noted.
func (o *Operator) auditNeeds() []privilege.Privilege {
	return []privilege.Privilege{
		{On: privilege.Schema, Name: o.db.Schema, Right: "USAGE"},
		o.may("SELECT", "cursor"),
		o.may("SELECT", "cursor_event"),
		o.may("INSERT", "cursor_event", "process_name", "actor", "action", "reason", "from_position", "to_position", "detail"),
	}
}

// may returns a right to a table of the schema, or to columns of it.
func (o *Operator) may(right, table string, columns ...string) privilege.Privilege {
	return privilege.Privilege{On: privilege.Table, Name: o.db.Schema + "." + pgx.Identifier{table}.Sanitize(), Right: right, Columns: columns}
}
