package table

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// stamp says when the order column's value is made, and so which transactions
// may still commit a row below a mark.
type stamp int

const (
	// stampAfterLock: clock_timestamp() or nextval(), evaluated after the
	// inserter has locked the table. Only holders of that lock matter.
	stampAfterLock stamp = iota
	// stampAtStart: now() and its kin, the start of the transaction or of its
	// statement, before any lock. Every open transaction matters.
	stampAtStart
	// stampElsewhere: no default, or the application's clock. Only the latency
	// protects.
	stampElsewhere
)

// utc are the time zones whose timestamps without time zone never jump.
var utc = []string{"UTC", "Etc/UTC", "UCT", "Etc/UCT", "Universal", "Etc/Universal", "Zulu", "Etc/Zulu", "GMT", "Etc/GMT"}

// Defaults as pg_get_expr prints them.
var (
	wrapping   = regexp.MustCompile(`^\((.*)\)$`)
	castWith   = regexp.MustCompile(`^(.*)::timestamp(?:\((\d)\))? with time zone$`)
	castOut    = regexp.MustCompile(`^(.*)::timestamp(?:\((\d)\))? without time zone$`)
	atUTC      = regexp.MustCompile(`(?i)^(.*) AT TIME ZONE '(?:` + strings.Join(utc, "|") + `)'::text$`)
	timezoneOf = regexp.MustCompile(`(?i)^timezone\('(?:` + strings.Join(utc, "|") + `)'::text, (.*)\)$`)
	afterLock  = regexp.MustCompile(`^clock_timestamp\(\)$`)
	atStart    = regexp.MustCompile(`^(?:now\(\)|transaction_timestamp\(\)|statement_timestamp\(\)|'now'::text|CURRENT_TIMESTAMP(?:\((\d)\))?)$`)
	localStart = regexp.MustCompile(`^LOCALTIMESTAMP(?:\((\d)\))?$`)
)

// stamping is what a default says about the stamps it makes.
type stamping struct {
	stamp    stamp
	rounding time.Duration // what it may be off by
	inUTC    bool          // a timestamp without time zone, whatever the session's zone
}

// readDefault strips a default of what does not change when its value is made:
// casts, precisions and, in a timestamp without time zone, a conversion to UTC.
// In a timestamptz such a conversion makes the value one of the session's zone.
func readDefault(expression *string, atType string) stamping {
	result := stamping{stamp: stampElsewhere}
	if expression == nil {
		return result
	}
	text, local := *expression, atType == "timestamp"
	strip := func(around *regexp.Regexp) bool {
		m := around.FindStringSubmatch(text)
		if m != nil {
			text = m[1]
			if len(m) > 2 {
				result.rounding = max(result.rounding, rounding(m[2]))
			}
		}
		return m != nil
	}
	for stripping := true; stripping; {
		stripping = strip(wrapping) || strip(castWith)
		if local && !stripping {
			toUTC := strip(atUTC) || strip(timezoneOf)
			result.inUTC = result.inUTC || toUTC
			stripping = toUTC || strip(castOut)
		}
	}
	if afterLock.MatchString(text) {
		result.stamp = stampAfterLock
		return result
	}
	m := atStart.FindStringSubmatch(text)
	if m == nil && local {
		m = localStart.FindStringSubmatch(text)
	}
	if m != nil {
		result.stamp = stampAtStart
		result.rounding = max(result.rounding, rounding(m[1]))
	}
	return result
}

// rounding is what a time of so many digits behind the second may be off by:
// one unit, though it is rounded to the nearest.
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

// stamp finds the weakest default among the tables that rows go into: a row
// inserted straight into a partition gets the partition's.
func (e *examination) stamp(l *layout, c column) {
	if c.Typmod >= 0 {
		l.rounding = rounding(fmt.Sprint(c.Typmod))
	}
	var weakest member
	inUTC := true
	for _, m := range e.cat.members {
		s := readDefault(m.Default, l.atType)
		if s.stamp >= l.stamp {
			l.stamp, weakest = s.stamp, m
		}
		l.rounding = max(l.rounding, s.rounding)
		inUTC = inUTC && s.inUTC
	}
	table, stamp := l.sql(), "clock_timestamp()"
	if weakest.Above {
		table = e.cat.root
	}
	if weakest.Kind == "v" {
		table = weakest.Name
	}
	if l.atType == "timestamp" {
		stamp = "(clock_timestamp() AT TIME ZONE 'utc')"
	}
	cure := fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET DEFAULT %s", table, pgx.Identifier{weakest.Column}.Sanitize(), stamp)
	switch {
	case l.stamp == stampAtStart && !e.cat.seesAll:
		e.refuseUnseen(fmt.Sprintf("column %s of %s defaults to %s", c.Name, weakest.Name, *weakest.Default), cure)
	case l.stamp == stampAtStart:
		e.warn(cure, "column %s of %s defaults to %s, which is taken before the table is locked: every open transaction of this database, "+
			"a long report too, holds delivery up, and records wait %v", c.Name, weakest.Name, *weakest.Default, l.slack(e.config))
		if !e.cat.tracks {
			e.warn("ALTER SYSTEM SET track_activities = on; SELECT pg_reload_conf(); or ALTER DATABASE or ROLE, where it is set",
				"track_activities is off for new sessions: while one of them is there, reading %s fails, since it does not show when its transactions began", l.name())
		}
	case l.stamp == stampElsewhere && weakest.Default == nil:
		e.warn(cure, "column %s of %s has no default: a stamp of the application's clock may be older than what was delivered, "+
			"and only the latency of %v protects such a record from being passed over (order id needs no clock)", c.Name, weakest.Name, l.slack(e.config))
	case l.stamp == stampElsewhere:
		e.warn(cure, "column %s of %s defaults to %s, which is not the database's clock at the time of the insert: "+
			"only the latency of %v protects a record from being passed over (order id needs no clock)", c.Name, weakest.Name, *weakest.Default, l.slack(e.config))
	case l.atType == "timestamp" && !inUTC:
		e.warn(cure, "column %s of %s is a timestamp without time zone that defaults to the time in each session's own TimeZone: "+
			"a session that is not in UTC stamps its records hours off", c.Name, l.name())
	}
}

// refuseUnseen refuses a table whose fence our role cannot see: of a session that
// commits many transactions in one message, nothing else shows that each is stamped
// with the arrival of that message.
func (e *examination) refuseUnseen(because, better string) {
	role := pgx.Identifier{e.cat.role}.Sanitize()
	cure := fmt.Sprintf("GRANT pg_read_all_stats TO %s; -- or better: %s", role, better)
	if !e.cat.inherits {
		cure = fmt.Sprintf("ALTER ROLE %s INHERIT; -- since PostgreSQL 16: GRANT pg_read_all_stats TO %[1]s WITH INHERIT TRUE; or better: %s", role, better)
	}
	e.refuse(cure, "%s, the start of a transaction, and role %s may not see when those of other sessions began: rows of a session that commits "+
		"several transactions in one message would be passed over", because, e.cat.role)
}

// timeZone refuses a timestamp without time zone whose meaning depends on the
// session that writes it.
func (e *examination) timeZone(l *layout, c column) {
	if !slices.Contains(utc, e.cat.timeZone) {
		e.refuse(fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s TYPE timestamptz", l.sql(), pgx.Identifier{c.Name}.Sanitize()),
			"column %s of %s is a timestamp without time zone and the database runs in %s, not in UTC: its values jump back when clocks are changed",
			c.Name, l.name(), e.cat.timeZone)
	}
}
