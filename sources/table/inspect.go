package table

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Inspect reads the catalog and finds what breaks or weakens a promise, the
// worst first. The error is that of a database that did not answer.
func (s *Source) Inspect(ctx context.Context) ([]Finding, error) {
	_, findings, err := s.inspect(ctx)
	return findings, err
}

// inspect returns the layout, unless a finding refuses the table.
func (s *Source) inspect(ctx context.Context) (*layout, []Finding, error) {
	var l *layout
	var findings []Finding
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
		cat, sequences, err := readCatalog(ctx, tx, s.config)
		if errors.Is(err, errNoTable) {
			findings = []Finding{missingTable(ctx, tx, s.config)}
			return nil
		}
		if err != nil {
			return err
		}
		e := examination{config: s.config, cat: cat, sequences: sequences}
		l = e.run()
		findings = e.findings
		if e.refused() {
			l = nil
			return nil
		}
		finding, err := tryRead(ctx, tx, l, s.config)
		if finding != nil {
			l, findings = nil, append([]Finding{*finding}, findings...)
		}
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("inspect table %s: %w", s.config.Table, deniedSchema(err, s.config))
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return strings.Compare(string(a.Severity), string(b.Severity)) })
	return l, findings, nil
}

// tryRead has the server parse and plan the read: what is wrong with the where
// clause, only it can say.
func tryRead(ctx context.Context, tx pgx.Tx, l *layout, c Config) (*Finding, error) {
	if _, err := tx.Exec(ctx, settingsSQL); err != nil {
		return nil, err
	}
	_, err := tx.Conn().PgConn().Prepare(ctx, "", l.readSQL(c, true, 1), nil)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		cure := "mend source.where; names outside pg_catalog need their schema"
		if c.Where == "" {
			cure = "see the server's message"
		}
		return &Finding{Refuse, fmt.Sprintf("the server refuses to read %s: %s (SQLSTATE %s)", l.name(), pgErr.Message, pgErr.Code), cure}, nil
	}
	return nil, err
}

func deniedSchema(err error, c Config) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "42501" {
		return fmt.Errorf("%w; cure: GRANT USAGE on the schema of %s to this role", err, c.Table)
	}
	return err
}

// examination holds a table against what the fence needs.
type examination struct {
	config    Config
	cat       *catalog
	sequences []sequence
	findings  []Finding
}

func (e *examination) refuse(cure, format string, args ...any) {
	e.findings = append(e.findings, Finding{Refuse, fmt.Sprintf(format, args...), cure})
}

func (e *examination) warn(cure, format string, args ...any) {
	e.findings = append(e.findings, Finding{Warn, fmt.Sprintf(format, args...), cure})
}

func (e *examination) refused() bool {
	return slices.ContainsFunc(e.findings, func(f Finding) bool { return f.Severity == Refuse })
}

func (e *examination) run() *layout {
	l := &layout{oid: e.cat.oid, schema: e.cat.schema, table: e.cat.table, inspected: time.Now()}
	e.place(l)
	e.grants(l)
	e.id(l)
	e.createdAt(l)
	e.optional(l)
	if e.config.Order == ID {
		e.sequence(l)
	}
	if !e.refused() {
		e.index(l)
	}
	return l
}

// place checks where the rows are.
func (e *examination) place(l *layout) {
	kinds := map[string]string{"v": "view", "m": "materialized view", "f": "foreign table", "S": "sequence", "i": "index", "c": "composite type"}
	if what, bad := kinds[e.cat.relkind]; bad {
		e.refuse("name the table behind it in source.table", "%s is a %s: its inserters hold no lock that a fence could see", l.name(), what)
		return
	}
	for _, m := range e.cat.members {
		if m.Kind == "f" {
			e.refuse("ALTER TABLE "+l.sql()+" DETACH PARTITION "+m.Name,
				"partition %s of %s is a foreign table: its inserters hold no lock that a fence could see", m.Name, l.name())
		}
	}
	if e.cat.standby {
		e.refuse("connect to the primary, for example with target_session_attrs=read-write in the URL",
			"the server is a standby: what it shows may lag, and a cursor cannot be advanced there")
	}
	if e.cat.hidesRows {
		e.refuse(fmt.Sprintf("ALTER ROLE %s BYPASSRLS", pgx.Identifier{e.cat.role}.Sanitize()),
			"row-level security hides rows of %s from role %s, and a row that is hidden would be passed over", l.name(), e.cat.role)
	}
	if e.cat.published {
		e.warn("read the table where its rows are inserted",
			"rows of %s arrive by logical replication, with stamps of another server: only the latency protects their order", l.name())
	}
}

// grants checks that each column that is read may be read.
func (e *examination) grants(l *layout) {
	var denied []string
	whole := e.config.Columns.Payload == ""
	for name, column := range e.cat.columns {
		if !column.Readable && (whole || e.reads(name)) {
			denied = append(denied, pgx.Identifier{name}.Sanitize())
		}
	}
	if len(denied) == 0 {
		return
	}
	slices.Sort(denied)
	role := pgx.Identifier{e.cat.role}.Sanitize()
	cure := fmt.Sprintf("GRANT SELECT (%s) ON %s TO %s", strings.Join(denied, ", "), l.sql(), role)
	if len(denied) == len(e.cat.columns) {
		cure = fmt.Sprintf("GRANT SELECT ON %s TO %s", l.sql(), role)
	}
	e.refuse(cure, "role %s may not read %s of %s", e.cat.role, strings.Join(denied, ", "), l.name())
}

func (e *examination) reads(name string) bool {
	c := e.config.Columns
	for _, column := range []string{c.ID, c.CreatedAt, c.Key, c.Type, c.Headers, c.Payload} {
		if parts, err := parseName(column); err == nil && parts[0] == name {
			return true
		}
	}
	return false
}

// column finds a configured column, or refuses.
func (e *examination) column(l *layout, role, configured string) (column, bool) {
	parts, _ := parseName(configured)
	found, ok := e.cat.columns[parts[0]]
	if !ok {
		names := make([]string, 0, len(e.cat.columns))
		for name := range e.cat.columns {
			names = append(names, name)
		}
		slices.Sort(names)
		e.refuse(fmt.Sprintf("name it in source.columns.%s: %s has %s", role, l.name(), strings.Join(names, ", ")),
			"table %s has no column %s", l.name(), configured)
	}
	return found, ok
}

func (e *examination) notNull(l *layout, c column) {
	if !c.NotNull {
		e.refuse(fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET NOT NULL", l.sql(), pgx.Identifier{c.Name}.Sanitize()),
			"column %s of %s may be NULL, and a row without it has no place in the order", c.Name, l.name())
	}
}

var idKinds = map[string]kind{
	"smallint": kindAtInt, "integer": kindAtInt, "bigint": kindAtInt,
	"uuid": kindAtUUID,
	"text": kindAtText, "character varying": kindAtText,
}

func (e *examination) id(l *layout) {
	c, ok := e.column(l, "id", e.config.Columns.ID)
	if !ok {
		return
	}
	l.idType, l.kind = c.Type, idKinds[c.Type]
	switch {
	case l.kind == "":
		e.refuse("name a column of another type in source.columns.id",
			"column %s of %s is of type %s: an id is bigint, integer, smallint, uuid or text", c.Name, l.name(), c.Type)
		l.kind = kindAtText
	case e.config.Order == ID && l.kind != kindAtInt:
		e.refuse("order by created_at", "column %s of %s is of type %s: order id is for integers that a sequence assigns", c.Name, l.name(), c.Type)
	}
	if l.kind == kindAtText {
		l.idType = "text"
	}
	if e.config.Order == ID {
		l.kind = kindInt
	}
	e.notNull(l, c)
}

func (e *examination) createdAt(l *layout) {
	if e.config.Columns.CreatedAt == "" {
		return
	}
	c, ok := e.column(l, "created_at", e.config.Columns.CreatedAt)
	if !ok {
		return
	}
	l.at = e.config.Columns.CreatedAt
	switch c.Type {
	case "timestamp with time zone":
		l.atType = "timestamptz"
	case "timestamp without time zone":
		l.atType = "timestamp"
		e.timeZone(l, c)
	default:
		e.refuse(fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s TYPE timestamptz", l.sql(), pgx.Identifier{c.Name}.Sanitize()),
			"column %s of %s is of type %s, not timestamptz", c.Name, l.name(), c.Type)
	}
	if e.config.Order != CreatedAt {
		return
	}
	e.notNull(l, c)
	if c.Typmod >= 0 && c.Typmod < 6 {
		// A stamp is rounded to the nearest value of its precision.
		l.rounding = time.Duration(float64(time.Second) / pow10(c.Typmod))
	}
	e.stamp(l, c)
}

func pow10(n int32) float64 {
	result := 1.0
	for range n {
		result *= 10
	}
	return result
}

var utc = []string{"UTC", "Etc/UTC", "UCT", "Etc/UCT", "Universal", "Etc/Universal", "Zulu", "Etc/Zulu", "GMT", "Etc/GMT"}

// timeZone refuses a timestamp without time zone whose meaning depends on the
// session that writes it.
func (e *examination) timeZone(l *layout, c column) {
	if !slices.Contains(utc, e.cat.timeZone) {
		e.refuse(fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s TYPE timestamptz", l.sql(), pgx.Identifier{c.Name}.Sanitize()),
			"column %s of %s is a timestamp without time zone and the database runs in %s, not in UTC: its values jump back when clocks are changed",
			c.Name, l.name(), e.cat.timeZone)
	}
}

// Defaults as pg_get_expr prints them, stripped of what does not change when the
// value is made: casts, a conversion to UTC, a precision.
var (
	wrapping   = regexp.MustCompile(`^\((.*)\)$`)
	cast       = regexp.MustCompile(`^(.*)::timestamp(\(\d\))? with(out)? time zone$`)
	atUTC      = regexp.MustCompile(`(?i)^(.*) AT TIME ZONE 'utc'::text$`)
	timezoneOf = regexp.MustCompile(`(?i)^timezone\('utc'::text, (.*)\)$`)
	afterLock  = regexp.MustCompile(`^clock_timestamp\(\)$`)
	atStart    = regexp.MustCompile(`^(now\(\)|transaction_timestamp\(\)|statement_timestamp\(\)|(CURRENT_TIMESTAMP|LOCALTIMESTAMP)(\(\d\))?|'now'::text)$`)
)

func stampOf(expression *string) stamp {
	if expression == nil {
		return stampElsewhere
	}
	text := *expression
	for stripped := ""; stripped != text; {
		stripped = text
		for _, around := range []*regexp.Regexp{wrapping, cast, atUTC, timezoneOf} {
			if m := around.FindStringSubmatch(text); m != nil {
				text = m[1]
			}
		}
	}
	switch {
	case afterLock.MatchString(text):
		return stampAfterLock
	case atStart.MatchString(text):
		return stampAtStart
	default:
		return stampElsewhere
	}
}

// stamp finds the weakest default among the tables that rows go into: a row
// inserted straight into a partition gets the partition's.
func (e *examination) stamp(l *layout, c column) {
	weakest := e.cat.members[0]
	for _, m := range e.cat.members {
		if s := stampOf(m.AtDefault); s >= l.stamp {
			l.stamp, weakest = s, m
		}
	}
	cure := fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET DEFAULT clock_timestamp()", weakest.Name, pgx.Identifier{c.Name}.Sanitize())
	switch {
	case l.stamp == stampAtStart:
		e.warn(cure, "column %s of %s defaults to %s, which is taken before the table is locked: every open transaction of this database, "+
			"a long report too, holds delivery up, and records wait %v", c.Name, weakest.Name, *weakest.AtDefault, l.slack(e.config))
	case l.stamp == stampElsewhere && weakest.AtDefault == nil:
		e.warn(cure+", or order by id", "column %s of %s has no default: a stamp of the application's clock may be older than what was delivered, "+
			"and only the latency of %v protects such a record from being passed over", c.Name, weakest.Name, l.slack(e.config))
	case l.stamp == stampElsewhere:
		e.warn(cure+", or order by id", "column %s of %s defaults to %s, which is not the database's clock at the time of the insert: "+
			"only the latency of %v protects a record from being passed over", c.Name, weakest.Name, *weakest.AtDefault, l.slack(e.config))
	}
}

func (e *examination) optional(l *layout) {
	columns := e.config.Columns
	for _, named := range [][2]string{{"key", columns.Key}, {"type", columns.Type}, {"headers", columns.Headers}, {"payload", columns.Payload}} {
		role, configured := named[0], named[1]
		if configured == "" {
			continue
		}
		c, ok := e.column(l, role, configured)
		if ok && role == "payload" {
			l.bytea = c.Type == "bytea"
		}
		if ok && role == "headers" && c.Type != "json" && c.Type != "jsonb" {
			e.refuse(fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s TYPE jsonb, or name another column in source.columns.headers",
				l.sql(), pgx.Identifier{c.Name}.Sanitize()),
				"column %s of %s is of type %s: headers are a JSON object of strings", c.Name, l.name(), c.Type)
		}
	}
}

// sequence checks what assigns the ids.
func (e *examination) sequence(l *layout) {
	switch len(e.sequences) {
	case 1:
	case 0:
		e.refuse("order by created_at", "no sequence assigns column %s of %s, so its values say nothing about the order of inserts",
			e.config.Columns.ID, l.name())
		return
	default:
		e.refuse("order by created_at", "several sequences assign column %s of %s in its partitions, so its values say nothing about the order of inserts",
			e.config.Columns.ID, l.name())
		return
	}
	seq := e.sequences[0]
	l.sequence = seq.OID
	if seq.Cache > 1 {
		e.refuse(fmt.Sprintf("ALTER SEQUENCE %s CACHE 1", seq.Name),
			"sequence %s hands out ids in blocks (CACHE %d): a session may commit an id below those already delivered", seq.Name, seq.Cache)
	}
	if seq.Increment < 0 {
		e.refuse(fmt.Sprintf("ALTER SEQUENCE %s INCREMENT BY 1", seq.Name), "sequence %s counts down", seq.Name)
	}
	if seq.Cycle {
		e.refuse(fmt.Sprintf("ALTER SEQUENCE %s NO CYCLE", seq.Name), "sequence %s starts again at its end (CYCLE), below what was delivered", seq.Name)
	}
	if !seq.Readable {
		e.refuse(fmt.Sprintf("GRANT SELECT ON SEQUENCE %s TO %s", seq.Name, pgx.Identifier{e.cat.role}.Sanitize()),
			"role %s may not read sequence %s, whose last value is the fence", e.cat.role, seq.Name)
	}
}

// index checks that an index gives the order, and that one keeps it unique.
func (e *examination) index(l *layout) {
	var wanted []string
	if l.ordersByTime() {
		parts, _ := parseName(l.at)
		wanted = append(wanted, parts[0])
	}
	parts, _ := parseName(e.config.Columns.ID)
	wanted = append(wanted, parts[0])
	if !slices.ContainsFunc(e.cat.indexes, func(i index) bool { return e.gives(i, wanted, l.kind == kindAtText) }) {
		e.warn(fmt.Sprintf("CREATE INDEX CONCURRENTLY ON %s (%s)", l.sql(), strings.ReplaceAll(strings.Join(l.orderBy(e.config), ", "), "t.", "")),
			"no index of %s begins with (%s): every read sorts the whole table", l.name(), strings.Join(wanted, ", "))
	}
	unique := func(i index) bool {
		return i.Unique && !i.Partial && !slices.ContainsFunc(i.Columns, func(c string) bool { return !slices.Contains(wanted, c) })
	}
	if l.ordersByTime() && !slices.ContainsFunc(e.cat.indexes, unique) {
		e.warn(fmt.Sprintf("CREATE UNIQUE INDEX CONCURRENTLY ON %s (%s)", l.sql(), quote(e.config.Columns.ID)),
			"nothing keeps (%s) of %s unique: of two rows with the same values, the second would be passed over", strings.Join(wanted, ", "), l.name())
	}
}

// gives reports whether an index yields the order by a range scan, in either
// direction. A partial one is taken to be made for the where clause.
func (e *examination) gives(i index, wanted []string, lastAsC bool) bool {
	if len(i.Columns) < len(wanted) || !slices.Equal(i.Columns[:len(wanted)], wanted) || i.Partial && e.config.Where == "" {
		return false
	}
	last := len(wanted) - 1
	return i.Direction[0] == i.Direction[last] && (!lastAsC || i.C[last])
}
