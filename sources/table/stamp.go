package table

import (
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// stamp describes when the order column's value is made. That decides which transactions may still commit a row below
// a mark.
type stamp int

const (
	// stampAfterLock: clock_timestamp() or nextval(), evaluated after the inserter has locked the table. Only holders
	// of that lock matter.
	stampAfterLock stamp = iota
	// stampAtStart: now() and its relatives, the start of the transaction or of its statement, before any lock. Every
	// open transaction matters.
	stampAtStart
	// stampElsewhere: no default, or the application's clock. Only the latency protects.
	stampElsewhere
)

// rounding returns how far a time with this number of digits after the second may be off: one unit, though it is
// rounded to the nearest.
func rounding(digits string) time.Duration {
	if digits == "" || digits >= "6" {
		return 0
	}
	result := time.Second
	for range int(digits[0] - '0') {
		result /= 10
	}
	return result
}

// stamp finds the weakest default among the tables that rows go into: a row inserted straight into a partition gets
// the partition's.
func (e *examination) stamp(l *layout, c column) {
	if c.Typmod >= 0 {
		l.rounding = rounding(fmt.Sprint(c.Typmod))
	}
	var weakest member
	zoned, found := false, len(e.findings)
	for i, m := range e.namedFirst() {
		s := readDefault(m.Default, l.atType)
		if i == 0 || s.stamp > l.stamp {
			l.stamp, weakest = s.stamp, m
		}
		l.rounding = max(l.rounding, s.rounding)
		zoned = e.zone(l, c, m, s) || zoned
		e.once(found)
	}
	if zoned {
		return // its fix also covers the findings below
	}
	fix := e.setDefault(l, weakest)
	apply := func() { e.defaulted(l, weakest) }
	switch {
	case l.stamp == stampAtStart && !e.cat.seesAll:
		e.refuseUnseen(fmt.Sprintf("column %s of %s defaults to %s", c.Name, e.placeOf(l, weakest), *weakest.Default), fix)
	case l.stamp == stampAtStart:
		e.alter(Warn, apply, fix, "column %s of %s defaults to %s, which is taken before the table is locked: every open transaction of this database, "+
			"a long report too, holds delivery up, and records wait %v", c.Name, e.placeOf(l, weakest), *weakest.Default, l.slack(e.config))
		if !e.cat.tracks {
			e.warn("ALTER SYSTEM SET track_activities = on; SELECT pg_reload_conf(); or ALTER DATABASE or ROLE, where it is set",
				"track_activities is off for new sessions: while one of them is there, reading %s fails, since it does not show when its transactions began", l.name())
		}
	case l.stamp == stampElsewhere && weakest.Default == nil:
		e.alter(Warn, apply, fix, "column %s of %s has no default: a stamp of the application's clock may be older than what was delivered, "+
			"and only the latency of %v protects such a record from being passed over (order id needs no clock)", c.Name, e.placeOf(l, weakest), l.slack(e.config))
	case l.stamp == stampElsewhere:
		e.alter(Warn, apply, fix, "column %s of %s defaults to %s, which is not the database's clock at the time of the insert: "+
			"only the latency of %v protects a record from being passed over (order id needs no clock)", c.Name, e.placeOf(l, weakest), *weakest.Default, l.slack(e.config))
	}
}

// once drops the last finding if an earlier one, from the given one on, has the same fix: one statement changes the default
// of a table and of all below it.
func (e *examination) once(from int) {
	last := len(e.findings) - 1
	if last > from && slices.ContainsFunc(e.findings[from:last], func(f fault) bool { return f.Fix == e.findings[last].Fix }) {
		e.findings = e.findings[:last]
	}
}

// namedFirst returns the members. First come those that a change of a default names, since that changes all tables
// below them.
func (e *examination) namedFirst() []member {
	rank := func(m member) int {
		switch {
		case m.Schema == e.cat.schema && m.Table == e.cat.table:
			return 0
		case m.Name == e.cat.root:
			return 1
		case m.Kind != "v":
			return 2
		default:
			return 3
		}
	}
	return slices.SortedStableFunc(slices.Values(e.cat.members), func(a, b member) int { return rank(a) - rank(b) })
}

// placeOf names a member, and the table whose default the fix changes.
func (e *examination) placeOf(l *layout, m member) string {
	if m.Kind == "v" || m.Above || m.Schema == e.cat.schema && m.Table == e.cat.table {
		return m.Name
	}
	return fmt.Sprintf("%s, a part of %s,", m.Name, l.name())
}

// stampBy is the default that makes the database stamp rows as they are inserted.
func (l *layout) stampBy() string {
	if l.atType == "timestamp" {
		return "(clock_timestamp() AT TIME ZONE 'utc')"
	}
	return "clock_timestamp()"
}

// setDefault returns the SQL that makes the database stamp rows that are inserted into a relation.
func (e *examination) setDefault(l *layout, m member) string {
	table := l.sql()
	if m.Above {
		table = e.cat.root
	}
	if m.Kind == "v" {
		table = m.Name
	}
	return fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET DEFAULT %s", table, pgx.Identifier{m.Column}.Sanitize(), l.stampBy())
}

// defaulted changes the catalog as the SQL of setDefault does: a view alone, or a table with all tables below it.
func (e *examination) defaulted(l *layout, m member) {
	stamp := l.stampBy()
	for i, other := range e.cat.members {
		if m.Kind == "v" && other.Name == m.Name || m.Kind != "v" && other.Kind != "v" && (m.Above || !other.Above) {
			e.cat.members[i].Default = &stamp
		}
	}
}

// refuseUnseen refuses a table whose fence our role cannot see. If a session commits many transactions in one
// message, each is stamped with the arrival of that message, and nothing else shows it.
func (e *examination) refuseUnseen(because, better string) {
	role := pgx.Identifier{e.cat.role}.Sanitize()
	fix := fmt.Sprintf("GRANT pg_read_all_stats TO %s; -- or better: %s", role, better)
	if !e.cat.inherits {
		fix = fmt.Sprintf("ALTER ROLE %s INHERIT; -- since PostgreSQL 16: GRANT pg_read_all_stats TO %[1]s WITH INHERIT TRUE; or better: %s", role, better)
	}
	e.refuse(fix, "%s, the start of a transaction, and role %s may not see when those of other sessions began: rows of a session that commits "+
		"several transactions in one message would be passed over", because, e.cat.role)
}
