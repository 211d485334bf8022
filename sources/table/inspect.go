package table

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Inspect reads the catalog and finds everything that breaks or weakens a promise, the worst first. It returns an
// error if the database did not answer.
func (s *Source) Inspect(ctx context.Context) ([]Finding, error) {
	_, findings, err := s.inspect(ctx)
	return findings, err
}

// inspect returns the layout, unless a finding refuses the table.
func (s *Source) inspect(ctx context.Context) (*layout, []Finding, error) {
	var l *layout
	var findings []Finding
	meant, err := s.meant(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("find out which table %s was: %w", s.config.Table, err)
	}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = s.inTx(ctx, options, func(ctx context.Context, tx pgx.Tx) error {
		located := s.located()
		cat, sequences, err := readCatalog(ctx, tx, located)
		if errors.Is(err, errNoTable) {
			findings = []Finding{missingTable(ctx, tx, located)}
			return nil
		}
		if denied, ok := s.deniedSchema(err); ok {
			findings = []Finding{denied}
			return errRefused
		}
		if err != nil {
			return err
		}
		if findings, err = s.settle(ctx, tx, cat, meant); err != nil || len(findings) > 0 {
			return err
		}
		if cat.standby {
			s.pool.Reset() // where the primary is now, only a new connection finds out
		}
		e := examination{config: s.config, cat: cat, sequences: sequences}
		l = e.run()
		if !e.refused() {
			err = e.probe(ctx, tx, l)
		}
		findings = e.plain()
		if e.refused() {
			l = nil
		}
		return err
	})
	if errors.Is(err, errRefused) {
		err = nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("inspect table %s: %w", s.config.Table, err)
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return strings.Compare(string(a.Severity), string(b.Severity)) })
	return l, findings, nil
}

// deniedSchema returns a finding that nothing in the table's schema can be examined.
func (s *Source) deniedSchema(err error) (Finding, bool) {
	parts, _ := parseName(s.located().Table)
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != "42501" || len(parts) != 2 {
		return Finding{}, false
	}
	role := s.pool.Config().ConnConfig.User
	fix := fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s", pgx.Identifier{parts[0]}.Sanitize(), pgx.Identifier{role}.Sanitize())
	return finding(Refuse, fix, "role %s may not use schema %s", role, parts[0]), true
}

// examination compares a table with the needs of the fence.
type examination struct {
	config    Config
	cat       *catalog
	sequences []sequence
	findings  []fault
	misfits   []Finding // of findings: those that would stop any role
	untied    int       // where in findings, from 1: nothing keeps positions unique, and an index could
}

func (e *examination) refuse(fix, format string, args ...any) {
	e.find(fault{Finding: finding(Refuse, fix, format, args...)})
}

// hides describes a table of which a role does not see all rows.
func hides(table, role string) (problem, fix string) {
	return fmt.Sprintf("row-level security hides rows of %s from role %s", table, role), "ALTER ROLE " + quoted(role) + " BYPASSRLS"
}

func (e *examination) find(f fault) { e.findings = append(e.findings, f) }

// alter finds a fault that a statement ends. apply may be nil: see fault.
func (e *examination) alter(severity Severity, apply func(), statement, format string, args ...any) {
	f := finding(severity, statement, format, args...)
	e.find(fault{Finding: f, statements: []string{f.Fix}, apply: apply})
}

// misfit refuses a fault that any role would meet: the table or its columns are not as the configuration describes
// them.
func (e *examination) misfit(fix, format string, args ...any) {
	e.refuse(fix, format, args...)
	e.misfits = append(e.misfits, e.findings[len(e.findings)-1].Finding)
}

func (e *examination) warn(fix, format string, args ...any) {
	e.find(fault{Finding: finding(Warn, fix, format, args...)})
}

func (e *examination) refused() bool {
	return slices.ContainsFunc(e.findings, func(f fault) bool { return f.Severity == Refuse })
}

// plain returns the findings as others see them.
func (e *examination) plain() (findings []Finding) {
	for _, f := range e.findings {
		findings = append(findings, f.Finding)
	}
	return findings
}

func (e *examination) run() *layout {
	l := &layout{oid: e.cat.oid, schema: e.cat.schema, table: e.cat.table, inspected: time.Now()}
	if e.config.KeysOnly {
		l.detail = bare
	}
	if !e.place(l) {
		return l
	}
	e.grants(l)
	e.owners(l)
	e.utf8()
	e.id(l)
	e.createdAt(l)
	e.optional(l)
	if e.config.Order == ID {
		e.sequence(l)
	} else {
		e.readable(l)
	}
	e.nullable(l)
	e.unique(l)
	e.triggers(l)
	return l
}

// place checks where the rows are. It reports whether this is a table: of anything else, nothing more can be
// examined.
func (e *examination) place(l *layout) bool {
	kinds := map[string]string{"v": "view", "m": "materialized view", "f": "foreign table", "S": "sequence", "i": "index", "c": "composite type"}
	if what, bad := kinds[e.cat.relkind]; bad {
		e.misfit("name the table behind it in source.table", "%s is a %s: its inserters hold no lock that a fence could see", l.name(), what)
		return false
	}
	for _, m := range e.cat.members {
		if m.Kind != "f" {
			continue
		}
		fix := "ALTER TABLE " + l.sql() + " DETACH PARTITION " + m.Name
		if !m.Partition {
			fix = "ALTER TABLE " + m.Name + " NO INHERIT " + l.sql()
		}
		e.refuse(fix, "%s, a part of %s, is a foreign table: its inserters hold no lock that a fence could see", m.Name, l.name())
	}
	for _, m := range e.cat.members {
		if m.Unlogged {
			e.alter(Warn, nil, fmt.Sprintf("ALTER TABLE %s SET LOGGED", m.Name), "%s is unlogged: a crash of the server empties it, what was not delivered is lost, and ids may start again", m.Name)
		}
	}
	if e.cat.standby {
		e.refuse("connect to the primary, for example with target_session_attrs=read-write in the URL",
			"the server is a standby: what it shows may lag, and a cursor cannot be advanced there")
	}
	if e.cat.hidesRows {
		problem, fix := hides(l.name(), e.cat.role)
		e.refuse(fix, "%s, and a row that is hidden would be passed over", problem)
	}
	if e.cat.published {
		e.warn("read the table where its rows are inserted",
			"rows of %s arrive by logical replication, with stamps of another server: only the latency protects their order", l.name())
	}
	return true
}

// grants checks that the role may read each column that the source reads.
func (e *examination) grants(l *layout) {
	var denied []string
	whole := e.config.Columns.Payload == "" && !e.config.KeysOnly
	for name, column := range e.cat.columns {
		if !column.Readable && (whole || e.reads(name)) {
			denied = append(denied, pgx.Identifier{name}.Sanitize())
		}
	}
	all := len(denied) == len(e.cat.columns)
	if e.config.Order == CreatedAt && !e.config.KeysOnly && !e.cat.versions {
		denied = append(denied, `"xmin"`)
	}
	if len(denied) == 0 {
		return
	}
	slices.Sort(denied)
	role := pgx.Identifier{e.cat.role}.Sanitize()
	fix := fmt.Sprintf("GRANT SELECT (%s) ON %s TO %s", strings.Join(denied, ", "), l.sql(), role)
	if all {
		fix = fmt.Sprintf("GRANT SELECT ON %s TO %s", l.sql(), role)
	}
	e.refuse(fix, "role %s may not read %s of %s", e.cat.role, strings.Join(denied, ", "), l.name())
}

func (e *examination) reads(name string) bool {
	c := e.config.Columns
	read := []string{c.ID, c.CreatedAt}
	if !e.config.KeysOnly {
		read = append(read, c.Key, c.Type, c.Headers, c.Payload)
	}
	for _, column := range read {
		if parts, err := parseName(column); err == nil && parts[0] == name {
			return true
		}
	}
	return false
}

// column finds a configured column, or refuses the table.
func (e *examination) column(l *layout, role, configured string) (column, bool) {
	parts, _ := parseName(configured)
	found, ok := e.cat.columns[parts[0]]
	if !ok {
		names := slices.Sorted(maps.Keys(e.cat.columns))
		fix := visible.Inline(fmt.Sprintf("name it in source.columns.%s: %s has %s", role, l.name(), strings.Join(names, ", ")))
		if role == "created_at" {
			fix = e.otherOrder(l)
		}
		e.misfit(fix, "table %s has no column %s", l.name(), configured)
		e.addable(l, &e.findings[len(e.findings)-1], role, parts[0])
	}
	return found, ok
}

// otherOrder proposes a fix where created_at is not a column to order by: a timestamptz of another name, the id, or a
// new column.
func (e *examination) otherOrder(l *layout) string {
	if ways := e.otherWays(l); len(ways) > 0 {
		return strings.Join(ways, "; or ")
	}
	added := "the order needs a column that the database assigns. As the owner: " + e.addStamp(knownCreatedAt)
	if unordered := e.unorderedOld(); unordered != "" {
		return added + ". Then " + unordered + "; " + e.orderOld(l)
	}
	return added + ", which gives the rows that are there one time, and so the order of their ids"
}

// otherWays proposes what to order by instead of created_at, without a new column.
func (e *examination) otherWays(l *layout) []string {
	var ways, stamps []string
	for name, column := range e.cat.columns {
		if column.Type == "timestamp with time zone" {
			stamps = append(stamps, name)
		}
	}
	if len(stamps) > 0 {
		slices.Sort(stamps)
		ways = append(ways, fmt.Sprintf("name a timestamptz of %s in source.columns.created_at: %s", l.name(), strings.Join(stamps, ", ")))
	}
	if e.idAssigned() {
		ways = append(ways, fmt.Sprintf("set source.order: id, since a sequence assigns column %s", e.config.Columns.ID))
	}
	return ways
}

func (e *examination) isNotNull(column string) bool {
	parts, _ := parseName(column)
	return e.cat.columns[parts[0]].NotNull
}

func (e *examination) notNull(l *layout, c column) {
	if !c.NotNull {
		e.alter(Refuse, nil, fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET NOT NULL", l.sql(), pgx.Identifier{c.Name}.Sanitize()),
			"column %s of %s may be NULL, and a row without it has no place in the order", c.Name, l.name())
	}
}

// utf8 refuses a session in another encoding: receivers take keys, headers and payloads as UTF-8. PostgreSQL does not
// convert SQL_ASCII, on either side.
func (e *examination) utf8() {
	server, client := e.cat.server, e.cat.client
	if client == "UTF8" || server == "SQL_ASCII" || server == "UTF8" && client == "SQL_ASCII" {
		return
	}
	e.refuse(fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET client_encoding = 'UTF8'", pgx.Identifier{e.cat.role}.Sanitize(), e.cat.database),
		"client_encoding of role %s is %s, and receivers take records as UTF-8; what it cannot hold would stop the process", e.cat.role, client)
}

// idOrder refuses ids whose bytes sort differently in UTF-8 than in the encoding of the database. The bytes of Latin
// 1 keep their order.
func (e *examination) idOrder(l *layout, c column) {
	if slices.Contains([]string{"UTF8", "LATIN1", "SQL_ASCII"}, e.cat.server) {
		return
	}
	e.misfit("name a column that is a number or a uuid in source.columns.id",
		"column %s of %s is a text, and the database is in %s: in UTF-8 its ids sort in another order than on the server",
		c.Name, l.name(), e.cat.server)
}

// nullable refuses a table below this one whose rows may have no place in the order.
func (e *examination) nullable(l *layout) {
	for _, n := range e.cat.nullable {
		if e.cat.columns[n.Column].NotNull {
			e.alter(Refuse, nil, fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET NOT NULL", n.Table, pgx.Identifier{n.Column}.Sanitize()),
				"column %s of %s, a part of %s, may be NULL, and a row without it has no place in the order", n.Column, n.Table, l.name())
		}
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
		e.misfit("name a column of another type in source.columns.id",
			"column %s of %s is of type %s: an id must be bigint, integer, smallint, uuid or text", c.Name, l.name(), c.Type)
		l.kind = kindAtText
	case e.config.Order == ID && l.kind != kindAtInt:
		e.misfit("order by created_at", "column %s of %s is of type %s: order id is for integers that a sequence assigns", c.Name, l.name(), c.Type)
	}
	switch l.kind {
	case kindAtText:
		l.idType = "text"
		e.idOrder(l, c)
	case kindAtInt:
		l.idType = "bigint"
		l.counter = e.countedBy()
	}
	if e.config.Order == ID {
		l.kind = kindInt
	}
	e.notNull(l, c)
}

// knownCreatedAt is the column that gives records ordered by id their time, where the configuration names none.
const knownCreatedAt = "created_at"

func (e *examination) createdAt(l *layout) {
	defer func() { l.keyedByID = l.at == "" || !e.isNotNull(l.at) }()
	if e.config.Columns.CreatedAt == "" {
		c, ok := e.cat.columns[knownCreatedAt]
		if ok && c.Type == "timestamp with time zone" && c.Readable {
			l.at, l.atType = knownCreatedAt, "timestamptz"
		}
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
	case "date":
		e.misfit(fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s TYPE timestamptz", l.sql(), pgx.Identifier{c.Name}.Sanitize()),
			"column %s of %s is of type date, not timestamptz", c.Name, l.name())
	default:
		e.misfit(e.otherOrder(l), "column %s of %s is of type %s, not timestamptz", c.Name, l.name(), c.Type)
	}
	if e.config.Order != CreatedAt {
		e.ageZone(l, c)
		return
	}
	e.notNull(l, c)
	e.stamp(l, c)
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
			// The server prints these types as a cast to text would.
			l.asPrinted = slices.Contains([]string{"bytea", "json", "jsonb", "text", "character varying"}, c.Type)
		}
		if ok && role == "headers" && c.Type != "json" && c.Type != "jsonb" {
			e.misfit("name a json or jsonb column in source.columns.headers",
				"column %s of %s is of type %s: headers are a JSON object of strings", c.Name, l.name(), c.Type)
		}
	}
}
