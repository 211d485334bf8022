package table

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// zone refuses stamps that a session makes in its own TimeZone, whatever the TimeZone of the database or of our role
// is. The fence is in UTC, and may be hours away from them. A timestamp without time zone takes only stamps that are
// known to be in UTC.
func (e *examination) zone(l *layout, c column, m member, s stamping) bool {
	place := e.placeOf(l, m)
	switch {
	case m.Default == nil:
		return e.timeZone(l, c, m)
	case l.atType == "timestamp" && (s.zoned || s.stamp == stampElsewhere):
		e.refuse(e.zoneFix(l, c, m), "column %s of %s is a timestamp without time zone that defaults to %s, which is not known to be in UTC "+
			"for every TimeZone of the session that inserts: %s", c.Name, place, *m.Default, hoursOff)
	case s.zoned:
		e.alter(Refuse, func() { e.defaulted(l, m) }, e.setDefault(l, m), "column %s of %s defaults to %s, which passes through the TimeZone of the session that inserts: %s",
			c.Name, place, *m.Default, hoursOff)
	default:
		return false
	}
	return true
}

// ageZone warns of ages that may be off where the order is by id.
func (e *examination) ageZone(l *layout, c column) {
	if l.atType == "timestamp" && !slices.Contains(utc, e.cat.timeZone) {
		e.warn("leave source.columns.created_at out, or name a timestamptz", "column %s of %s is a timestamp without time zone, which is read as UTC, "+
			"and the database runs in %s: ages and --to-time may be hours off", c.Name, l.name(), e.cat.timeZone)
	}
}

const hoursOff = "the fence is in UTC, and a record that is stamped hours before it would be passed over"

// timeZone refuses a timestamp without time zone that applications stamp, where they probably do not stamp it in UTC.
func (e *examination) timeZone(l *layout, c column, m member) bool {
	place := e.placeOf(l, m)
	if l.atType != "timestamp" || slices.Contains(utc, e.cat.timeZone) {
		return false
	}
	e.refuse(e.zoneFix(l, c, m), "column %s of %s is a timestamp without time zone and without a default, and the database runs in %s, not in UTC: "+
		"its values jump back when clocks are changed", c.Name, place, e.cat.timeZone)
	return true
}

// zoneFix returns a default in UTC, and the next step where the stamps so far are in another time zone.
func (e *examination) zoneFix(l *layout, c column, m member) string {
	column := pgx.Identifier{c.Name}.Sanitize()
	other := fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s TYPE timestamptz USING %[2]s AT TIME ZONE 'the zone of the stamps', "+
		"ALTER COLUMN %[2]s SET DEFAULT clock_timestamp();\nthat locks the table while it is rewritten", l.sql(), column)
	if slices.Contains(e.cat.partitionKeys, c.Name) {
		other = e.otherStamp()
	}
	if e.idAssigned() {
		other += "\nor set source.order: id"
	}
	other = "that is for stamps in UTC. If those so far are in another zone:\n" + other
	return e.setDefault(l, m) + ";\n-- " + strings.ReplaceAll(other, "\n", "\n-- ") // pasted as a whole, it sets the default alone
}

// otherStamp is what to do where a stamp is not in UTC and is a partition key, whose type cannot be changed.
func (e *examination) otherStamp() string {
	column := knownCreatedAt
	if _, taken := e.cat.columns[column]; taken {
		column = "stamped_at"
	}
	return fmt.Sprintf("the type of a partition key cannot be changed, so order by a column of its own: %s, named in source.columns.created_at; or make a new table with a timestamptz",
		e.addStamp(column))
}

// idAssigned reports whether records may be ordered by id.
func (e *examination) idAssigned() bool {
	id, _ := parseName(e.config.Columns.ID)
	c := e.cat.columns[id[0]]
	return e.config.Order == CreatedAt && c.Assigned && idKinds[c.Type] == kindAtInt
}

// clockNames matches the names of everything that reads a clock.
var clockNames = regexp.MustCompile(`(?i)\b(?:now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday|` +
	`current_timestamp|localtimestamp|current_date|current_time|localtime)\b`)

// zoneOfTrigger refuses a trigger that stamps in the TimeZone of the session.
func (e *examination) zoneOfTrigger(l *layout, t trigger, value string) bool {
	s := readDefault(&value, l.atType)
	unknown := l.atType == "timestamp" && s.stamp == stampElsewhere && clockNames.MatchString(value)
	if !s.zoned && !unknown {
		return false
	}
	e.refuse(dropTrigger(t), "trigger %s of %s stamps rows with %s, which is not known to be in UTC for every TimeZone of the session that inserts: %s",
		t.Name, t.Table, value, hoursOff)
	return true
}
