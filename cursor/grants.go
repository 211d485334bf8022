package cursor

import (
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/privilege"
)

// Duty is what a role does with the cursors of a schema, and needs rights for.
type Duty string

// The duties.
const (
	// DutyDeliver: acquire leases, and all that a Lease does but PutAside.
	DutyDeliver Duty = "deliver"
	// DutyPutAside: Lease.PutAside, besides DutyDeliver.
	DutyPutAside Duty = "put aside"
	// DutyCount: CountDeadLetters, besides DutyDeliver. Without it everything is
	// delivered all the same, and what was put aside goes unnoticed.
	DutyCount Duty = "count"
	// DutyCreate: Create, besides DutyDeliver. May be taken away when each process
	// has its cursor.
	DutyCreate Duty = "create"
	// DutyDecide: the methods that take a Decision, History and DeadLetters. It does
	// not suffice to take a lease over, nor to read what records hold.
	DutyDecide Duty = "decide"
	// DutyReplay: Lease.Letter and Lease.Replayed, besides DutyDecide and DutyDeliver.
	DutyReplay Duty = "replay"
)

// stateColumns are those of a cursor that workers and operators write.
var stateColumns = []string{
	"position", "sequence", "epoch", "state", "failed_position", "failed_record_id", "failed_attempts",
	"first_failed_at", "last_failed_at", "next_attempt_at", "failed_error", "failed_class", "system_identifier", "timeline", "database_oid", "histories", "horizon",
}

// letterColumns are those of a dead letter without what its record holds.
var letterColumns = []string{
	"id", "process_name", "at", "position", "sequence", "table_name", "record_id", "key", "type", "record_created_at", "attempts", "first_failed_at",
	"error", "class", "resolution", "resolved_at", "resolved_by", "reason",
}

// Grants returns the SQL that gives a role, as the catalog spells it, what its
// duties take of the schema, and nothing else: down to single columns. It asks no
// database. What the source and the sink need is for them to say.
func (s *Store) Grants(role string, duties ...Duty) string {
	var b strings.Builder
	for _, on := range privilege.ByObject(s.Needs(duties...)) {
		b.WriteString(privilege.Grant(role, on...) + ";\n")
	}
	return b.String()
}

// Needs is what Grants grants.
func (s *Store) Needs(duties ...Duty) []privilege.Privilege {
	var needed []privilege.Privilege
	for _, duty := range duties {
		switch duty {
		case DutyDeliver: // UPDATE of any column suffices for FOR UPDATE
			needed = append(append(needed, s.auditNeeds()...), s.may("UPDATE", "cursor", append([]string{"holder"}, stateColumns...)...))
		case DutyPutAside:
			needed = append(needed, s.may("INSERT", "dead_letter",
				"process_name", "position", "sequence", "table_name", "record_id", "key", "type", "record_created_at",
				"headers", "payload", "attempts", "first_failed_at", "error", "class"))
		case DutyCount:
			needed = append(needed, s.may("SELECT", "dead_letter", "process_name", "resolution"))
		case DutyCreate:
			needed = append(needed, s.may("INSERT", "cursor", "process_name", "position", "system_identifier", "timeline", "database_oid", "epoch", "sequence", "histories"))
		case DutyDecide:
			needed = append(append(needed, s.auditNeeds()...),
				s.may("INSERT", "cursor", "process_name", "position", "state", "system_identifier", "timeline", "database_oid", "epoch", "sequence", "histories"),
				s.may("UPDATE", "cursor", append([]string{"process_name"}, stateColumns...)...),
				s.may("DELETE", "cursor"),
				s.may("SELECT", "dead_letter", letterColumns...),
				s.may("UPDATE", "dead_letter", "process_name", "resolution", "resolved_at", "resolved_by", "reason"))
		case DutyReplay:
			needed = append(needed, s.may("SELECT", "dead_letter", "headers", "payload"))
		}
	}
	return needed
}

// auditNeeds is to read the cursors and to read and write their audit, but not the
// time at which something is noted.
func (s *Store) auditNeeds() []privilege.Privilege {
	return []privilege.Privilege{
		{On: privilege.Schema, Name: s.schema, Right: "USAGE"},
		s.may("SELECT", "cursor"),
		s.may("SELECT", "cursor_event"),
		s.may("INSERT", "cursor_event", "process_name", "actor", "action", "reason", "from_position", "to_position", "detail"),
	}
}

// may is a right to a table of the schema, or to columns of it.
func (s *Store) may(right, table string, columns ...string) privilege.Privilege {
	return privilege.Privilege{On: privilege.Table, Name: s.schema + "." + pgx.Identifier{table}.Sanitize(), Right: right, Columns: columns}
}
