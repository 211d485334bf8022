package table

import (
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"
)

// plainNextval is the only default of an id that grows with its sequence.
var plainNextval = regexp.MustCompile(`^nextval\('.*'::regclass\)$`)

// countedBy returns the oid of the one sequence that ids come from, one by one. So each row has a larger id than all
// rows that were inserted before it began. It returns 0 if there is no such sequence. Order CreatedAt.
func (e *examination) countedBy() uint32 {
	if !e.idAssigned() || len(e.sequences) != 1 {
		return 0
	}
	seq := e.sequences[0]
	if seq.Cache != 1 || seq.Increment != 1 || seq.Cycle {
		return 0
	}
	return seq.OID
}

// readable checks that Late can find out whether the ids have started again.
func (e *examination) readable(l *layout) {
	if l.counter == 0 || e.config.KeysOnly || e.sequences[0].Readable {
		return
	}
	name := e.sequences[0].Name
	e.warn(fmt.Sprintf("GRANT SELECT ON SEQUENCE %s TO %s", name, pgx.Identifier{e.cat.role}.Sanitize()),
		"role %s may not read sequence %s: after a failover or a restore, the search for rows that were stamped before the cursor goes by time, and not by their ids", e.cat.role, name)
}

// sequence checks the sequences that assign the ids.
func (e *examination) sequence(l *layout) {
	const other = "order by created_at"
	switch len(e.sequences) {
	case 1:
	case 0:
		e.refuse(other, "no sequence assigns column %s of %s, so its values say nothing about the order of inserts",
			e.config.Columns.ID, l.name())
		return
	default:
		e.refuse(other, "several sequences assign column %s of %s in its partitions, so its values say nothing about the order of inserts",
			e.config.Columns.ID, l.name())
		return
	}
	for _, m := range e.cat.members {
		if m.Default != nil && (m.Kind == "v" || !plainNextval.MatchString(*m.Default)) {
			e.refuse(other, "column %s of %s defaults to %s: its values are not those of the sequence, which is the fence",
				m.Column, m.Name, *m.Default)
		}
	}
	seq := e.sequences[0]
	l.sequence, l.sequenceName = seq.OID, seq.Name
	if seq.Cache > 1 {
		e.alter(Refuse, nil, fmt.Sprintf("ALTER SEQUENCE %s CACHE 1", seq.Name),
			"sequence %s hands out ids in blocks (CACHE %d): a session may commit an id below those already delivered", seq.Name, seq.Cache)
	}
	if seq.Increment < 0 {
		e.alter(Refuse, nil, fmt.Sprintf("ALTER SEQUENCE %s INCREMENT BY 1", seq.Name), "sequence %s counts down", seq.Name)
	}
	if seq.Cycle {
		e.alter(Refuse, nil, fmt.Sprintf("ALTER SEQUENCE %s NO CYCLE", seq.Name), "sequence %s starts again at its end (CYCLE), below what was delivered", seq.Name)
	}
	if !seq.Readable {
		e.refuse(fmt.Sprintf("GRANT SELECT ON SEQUENCE %s TO %s", seq.Name, pgx.Identifier{e.cat.role}.Sanitize()),
			"role %s may not read sequence %s, whose last value is the fence", e.cat.role, seq.Name)
	}
}
