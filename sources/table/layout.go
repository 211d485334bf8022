package table

import (
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// layout is a table as the catalog describes it. Its name was resolved once to an oid.
type layout struct {
	oid          uint32
	schema       string
	table        string
	kind         kind
	idType       string // the type in positions; the column's own, or wider in its operator family
	at           string // column created_at, "" if it is not read
	atType       string
	stamp        stamp
	rounding     time.Duration // the most that a stamp of low precision may be off by
	sequence     uint32        // oid; order ID only
	sequenceName string        // as SQL takes it
	bytea        bool          // the payload column holds bytes
	asPrinted    bool          // the payload column needs no cast to text
	counter      uint32        // oid of the sequence that the ids come from, one by one; 0: none; order CreatedAt
	keyedByID    bool          // a record may have no created_at, so its dedup key consists of its id alone
	shared       bool          // nothing proves that no two rows have one position
	detail       detail        // how much a read fetches of each row
	partial      bool          // an index gives the order that holds only rows that Config.Where takes
	inspected    time.Time
}

// name is the table's name for people and dedup keys.
func (l *layout) name() string { return l.schema + "." + l.table }

// sql is the table's name for statements.
func (l *layout) sql() string { return pgx.Identifier{l.schema, l.table}.Sanitize() }

func (l *layout) ordersByTime() bool { return l.kind != kindInt }

// slack is the time that stays between the mark and the fence.
func (l *layout) slack(c Config) time.Duration {
	if !l.ordersByTime() {
		return 0
	}
	latency := c.Latency
	if latency == 0 {
		latency = defaultLatency
		if l.stamp == stampAtStart {
			latency = defaultTxLatency
		}
	}
	return latency + l.rounding
}

// quote quotes a column named as in SQL. validate has checked that it parses.
func quote(column string) string {
	parts, _ := parseName(column)
	return pgx.Identifier(parts).Sanitize()
}

// orderBy lists the parts of the position, qualified: after SELECT id::text, a bare ORDER BY id would sort by the
// text.
func (l *layout) orderBy(c Config) []string {
	id := "t." + quote(c.Columns.ID)
	if l.kind == kindAtText {
		id += ` COLLATE "C"`
	}
	if !l.ordersByTime() {
		return []string{id}
	}
	return []string{"t." + quote(l.at), id}
}

// behind is the condition for a record after a position: see after.
func (l *layout) behind(c Config, fromStart bool) string {
	if c.Where == "" {
		return l.after(c, fromStart)
	}
	return l.after(c, fromStart) + "\n\tAND (\n" + c.Where + "\n)" // a newline ends a comment
}

// after is the condition for a row after a position, whose parts are $1 and $2. Without them it takes all rows. A
// created_at of infinity is after every time and so is never read; Inspect names it.
func (l *layout) after(c Config, fromStart bool) string {
	var conditions []string
	order := strings.Join(l.orderBy(c), ", ")
	switch {
	case fromStart:
	case l.ordersByTime():
		conditions = append(conditions, fmt.Sprintf("(%s) > ($1::%s, $2::%s)", order, l.atType, l.idType))
	default:
		conditions = append(conditions, fmt.Sprintf("%s > $1::%s", order, l.idType))
	}
	if l.ordersByTime() {
		conditions = append(conditions, fmt.Sprintf("t.%s < 'infinity'", quote(l.at)))
	}
	if len(conditions) == 0 {
		return "true"
	}
	return strings.Join(conditions, "\n\tAND ")
}

// arguments returns the values of $1 and $2 in behind.
func (l *layout) arguments(k key) [][]byte {
	if !l.ordersByTime() {
		return [][]byte{[]byte(k.id)}
	}
	return [][]byte{timestamp(k.at), []byte(k.id)}
}

// timestamp writes a time as a parameter, from microseconds since 1970.
func timestamp(at int64) []byte {
	return []byte(time.UnixMicro(at).UTC().Format("2006-01-02 15:04:05.000000+00"))
}

// field is a part of a record, as a column of a read.
type field int

const (
	fieldID field = iota
	fieldPayload
	fieldAt
	fieldKey
	fieldType
	fieldHeaders
	fieldTaken // whether Config.Where takes the row
	fieldSize  // of the part that is not fetched if it is too large
	fieldCount
)

// fields returns the expressions of a read by field; "" for one that the source lacks.
func (l *layout) fields(c Config) [fieldCount]string {
	var all [fieldCount]string
	all[fieldID] = "t." + quote(c.Columns.ID)
	all[fieldPayload] = "row_to_json(t.*)" // t alone might be a column
	for field, column := range map[field]string{
		fieldPayload: c.Columns.Payload, fieldKey: c.Columns.Key, fieldType: c.Columns.Type, fieldHeaders: c.Columns.Headers} {
		if column != "" {
			all[field] = "t." + quote(column) + "::text"
		}
	}
	if l.asPrinted {
		all[fieldPayload] = "t." + quote(c.Columns.Payload)
	}
	if l.at != "" {
		all[fieldAt] = "t." + quote(l.at)
	}
	if l.sifts(c) {
		all[fieldTaken] = "true"
	}
	if l.detail != whole {
		l.withhold(c, &all)
	}
	return all
}

// columns returns the column of a read for each field; -1 for none.
func (l *layout) columns(c Config) [fieldCount]int {
	var at [fieldCount]int
	next := 0
	for field, expression := range l.fields(c) {
		at[field] = -1
		if expression != "" {
			at[field] = next
			next++
		}
	}
	return at
}

// readSQL reads the rows after a position by index range, in the columns' own types, with each part of the position
// in the order. Its last parameter bounds their number. Rows that Config.Where leaves out count as well, so a read is
// bounded however few records it meets. Of those rows it reads only the id and the time.
func (l *layout) readSQL(c Config, fromStart bool) string {
	limit := 1
	if !fromStart {
		limit += len(l.arguments(key{}))
	}
	fields, source := l.selected(c)
	where := l.behind(c, fromStart)
	if l.sifts(c) {
		where = l.after(c, fromStart)
	}
	return fmt.Sprintf(`/* source.read */
SELECT
	%s
FROM %s
WHERE %s
ORDER BY %s
LIMIT $%d::bigint`,
		strings.Join(fields, ",\n\t"), source, where, strings.Join(l.orderBy(c), ", "), limit)
}

// sifts reports whether a read meets rows that Config.Where leaves out.
func (l *layout) sifts(c Config) bool { return c.Where != "" && !l.partial }

// of returns the layout with another detail.
func (l *layout) of(d detail) *layout {
	changed := *l
	changed.detail = d
	return &changed
}

// uncounted returns the layout as if the ids did not show the order of inserts.
func (l *layout) uncounted() *layout {
	changed := *l
	changed.counter = 0
	return &changed
}

// selected returns the fields that a read selects, and their source. The server evaluates the condition once for each
// row. A row that it leaves out joins nothing.
func (l *layout) selected(c Config) (fields []string, source string) {
	if l.detail != whole {
		return l.weighed(c)
	}
	source = l.sql() + " AS t"
	var taken []string
	for f, expression := range l.fields(c) {
		switch {
		case expression == "":
		case !l.sifts(c) || field(f) == fieldID || field(f) == fieldAt:
			fields = append(fields, expression)
		default:
			fields = append(fields, fmt.Sprintf("taken.f%d", f))
			taken = append(taken, fmt.Sprintf("%s AS f%d", expression, f))
		}
	}
	if len(taken) > 0 {
		source += fmt.Sprintf("\nLEFT JOIN LATERAL (SELECT %s WHERE (\n%s\n)) AS taken ON true", strings.Join(taken, ", "), c.Where)
	}
	return fields, source
}

// finiteMicros is the record's time, or NULL for infinity of either sign. The last of the years that the server knows
// do not fit into a number; no position holds them.
func (l *layout) finiteMicros() string {
	at := "t." + quote(l.at)
	return fmt.Sprintf("CASE WHEN isfinite(%s) THEN %s END", at, l.micros(fmt.Sprintf("least(%s, '290000-01-01'::%s)", at, l.atType)))
}

// micros writes a time as microseconds since 1970. A timestamp without time zone is taken as UTC: Inspect refuses any
// other.
func (l *layout) micros(expression string) string {
	if l.atType == "timestamp" {
		expression += " AT TIME ZONE 'UTC'"
	}
	return fmt.Sprintf("(extract(epoch FROM %s) * 1000000)::bigint", expression)
}
