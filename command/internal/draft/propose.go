package draft

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Proposal is how the rows of a table may be delivered.
type Proposal struct {
	Table  Table
	Preset table.Preset
	Order  table.Order
	// Columns are the names as in SQL; "" where a preset or a default names the column.
	Columns table.Columns
	// Keys are columns that may be the key of a record; it is left to people to choose.
	Keys []string
	// Why explains the order, and Notes what else people should know.
	Why   string
	Notes []string
	// Unordered explains why the rows that the table holds would come in no order; "" if they have one.
	Unordered string
	// SQL makes what the proposal needs and the table lacks, besides what package outbox proposes.
	SQL []string
}

const (
	timestamptz = "timestamp with time zone"
	naive       = "timestamp without time zone"
	newID       = "dispatch_id"
)

// IDOf is the column that identifies the rows of a table, as in SQL: that of the name id, or else the one that Propose
// chooses. It is "" if the table has none yet.
func IDOf(t Table) string {
	if t.column("id") != nil {
		return "id"
	}
	if p := Propose(t); len(p.SQL) == 0 {
		return p.Columns.ID
	}
	return ""
}

// Propose chooses the columns of a table.
func Propose(t Table) Proposal {
	p := Proposal{Table: t, Preset: presetOf(t)}
	id := p.chooseID()
	p.chooseOrder(id)
	p.choosePayload()
	p.warn()
	return p
}

// outboxColumns are those by which the table of package outbox is known, and routerColumns those of Debezium.
var (
	outboxColumns = []string{"id", "created_at", "aggregate_type", "aggregate_id", "key", "type", "payload", "headers"}
	routerColumns = []string{"id", "aggregatetype", "aggregateid", "type", "payload"}
)

func presetOf(t Table) table.Preset {
	has := func(names []string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return t.column(name) == nil })
	}
	switch {
	case has(outboxColumns):
		return table.Outbox
	case has(routerColumns):
		return table.Debezium
	default:
		return ""
	}
}

// canBeID reports whether a column has a type that an id may have.
func (c Column) canBeID() bool {
	return slices.Contains([]string{"bigint", "integer", "smallint", "uuid", "text"}, c.Type)
}

// chooseID chooses a column that identifies a row among all. A part of a composite key does so only if a sequence or a
// random default makes it.
func (p *Proposal) chooseID() *Column {
	var found *Column
	best := 0
	for i := range p.Table.Columns {
		c := &p.Table.Columns[i]
		if rank := p.idRank(c); c.canBeID() && rank > best {
			found, best = c, rank
		}
	}
	if found == nil {
		p.Columns.ID = newID
		p.SQL = append(p.SQL,
			fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s", p.Table.quoted(), newID, p.Table.counted()),
			p.Table.index("UNIQUE ", newID))
		p.Notes = append(p.Notes, "No column identifies a row alone, so one is proposed: "+newID+". To add it writes the whole table anew, under a lock.")
		return &Column{Name: newID, Type: "bigint", NotNull: true, Assigned: true, Unique: true}
	}
	if found.Name != "id" {
		p.Columns.ID = written(found.Name)
	}
	return found
}

func (p *Proposal) idRank(c *Column) int {
	own := c.Assigned || c.Type == "uuid" && strings.Contains(c.Default, "uuid")
	rank := 0
	switch {
	case c.Unique && c.Primary:
		rank = 60
	case c.Primary && (own || p.restIsTime(c)):
		rank = 50
	case c.Unique && c.NotNull && own:
		rank = 40
	case c.Unique && c.NotNull && c.Type != "text":
		rank = 30
	case own && c.NotNull:
		rank = 20
	default:
		return 0
	}
	if c.Name == "id" {
		rank += 5
	}
	return rank
}

// restIsTime reports whether the other columns of the primary key are times, as where a table is partitioned by time.
func (p *Proposal) restIsTime(c *Column) bool {
	return !slices.ContainsFunc(p.Table.Columns, func(other Column) bool {
		return other.Primary && other.Name != c.Name && !slices.Contains([]string{timestamptz, naive, "date"}, other.Type)
	})
}

// notBirth are names of times that are not those of the insert.
var notBirth = regexp.MustCompile(`updat|modif|chang|delet|expir|valid|due|start|end|schedul|publish|process|sent|deliver`)

// stamp ranks the default of a time: 3 for each row's own, 2 for that of its transaction, 1 for another or none.
func (c Column) stamp() int {
	switch {
	case c.Default == "clock_timestamp()":
		return 3
	case slices.Contains([]string{"now()", "CURRENT_TIMESTAMP", "transaction_timestamp()", "statement_timestamp()"}, c.Default):
		return 2
	default:
		return 1
	}
}

// time chooses the time of the insert; nil if there is none.
func (p *Proposal) time() *Column {
	var found []*Column
	for i := range p.Table.Columns {
		if c := &p.Table.Columns[i]; c.Type == timestamptz && !notBirth.MatchString(c.Name) {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return slices.MaxFunc(found, func(a, b *Column) int {
		return cmp.Or(cmp.Compare(a.stamp(), b.stamp()), cmp.Compare(birth(a.Name), birth(b.Name)))
	})
}

func birth(name string) int {
	switch {
	case name == "created_at":
		return 2
	case strings.HasPrefix(name, "creat") || strings.HasPrefix(name, "insert"):
		return 1
	default:
		return 0
	}
}

func (p *Proposal) chooseOrder(id *Column) {
	at := p.time()
	counts := id.Assigned && id.Type != "smallint" && id.Type != "text" && id.Type != "uuid"
	switch {
	case at != nil && at.stamp() == 3:
		p.by(at, "Records come in the order of "+written(at.Name)+", which clock_timestamp() stamps for each row.")
	case counts:
		p.Order = table.ID
		p.Why = "Records come in the order of " + written(id.Name) + ", which a sequence assigns."
		if at != nil && at.Name != "created_at" {
			p.Columns.CreatedAt = written(at.Name)
		}
	case at != nil && at.stamp() == 2:
		p.by(at, "Records come in the order of "+written(at.Name)+", which has the time at which the transaction began. So all rows of a transaction "+
			"have the same time, and any long transaction holds delivery up. clock_timestamp() as the default would be better: see the SQL below.")
	case at != nil:
		p.by(at, "Records come in the order of "+written(at.Name)+", which your application stamps. So a row may come late, and be passed over. "+
			"Let the database stamp it: see the SQL below.")
	default:
		p.by(&Column{Name: "created_at"}, "Records come in the order of created_at, a column that the table does not have yet: see the SQL below.")
		p.noteOld(id)
	}
}

// noteOld says that the rows of the table get one time, if the ids do not give them an order.
func (p *Proposal) noteOld(id *Column) {
	if slices.Contains([]string{"bigint", "integer", "smallint"}, id.Type) || p.Table.column("created_at") != nil {
		return
	}
	p.Unordered = "The rows that the table holds get one created_at with the SQL below. So they come in the order of " + written(id.Name) + ", a " + id.Type +
		": unless it grows, in a random order. If their order matters, set their created_at before the first run, or begin after them, with `end`."
	var times []string
	for _, c := range p.Table.Columns {
		if slices.Contains([]string{timestamptz, naive, "date"}, c.Type) {
			times = append(times, written(c.Name))
		}
	}
	if len(times) > 0 {
		p.Unordered += " Their own time may be in " + strings.Join(times, ", ") + "."
	}
}

func (p *Proposal) by(at *Column, why string) {
	p.Order, p.Why = table.CreatedAt, why
	if at.Name != "created_at" {
		p.Columns.CreatedAt = written(at.Name)
	}
}

// choosePayload names the columns that look like those of an event. Without them, a record is the whole row.
func (p *Proposal) choosePayload() {
	for _, c := range p.Table.Columns {
		if strings.HasSuffix(c.Name, "_id") && c.Name != p.Columns.ID && !c.Unique {
			p.Keys = append(p.Keys, written(c.Name))
		}
	}
	if p.Preset != "" {
		return
	}
	for _, c := range p.Table.Columns {
		isJSON := c.Type == "jsonb" || c.Type == "json"
		switch {
		case isJSON && p.Columns.Payload == "" && slices.Contains([]string{"payload", "data", "body", "event", "message"}, c.Name):
			p.Columns.Payload = written(c.Name)
		case isJSON && c.Name == "headers":
			p.Columns.Headers = written(c.Name)
		case c.Type == "text" && p.Columns.Type == "" && slices.Contains([]string{"type", "event_type"}, c.Name):
			p.Columns.Type = written(c.Name)
		case c.Name == "key":
			p.Columns.Key = written(c.Name)
		}
	}
}

// warn notes what the catalog shows besides.
func (p *Proposal) warn() {
	t := p.Table
	if t.Parent != "" {
		p.Notes = append(p.Notes, "This table is a partition of "+t.Parent+". Rows of the other partitions are not delivered.")
	}
	if t.Heirs {
		p.Notes = append(p.Notes, "Other tables inherit from this one. Their rows are delivered, too, and each needs the same defaults and indexes.")
	}
	for _, c := range t.Columns {
		if c.Type == naive && birth(c.Name) > 0 {
			p.Notes = append(p.Notes, written(c.Name)+" is a timestamp without time zone. It gives an order only where the database runs in UTC, so it is not used.")
		}
	}
}

// quoted is the name of the table in SQL.
func (t Table) quoted() string { return pgx.Identifier{t.Schema, t.Name}.Sanitize() }

// counted is the type of a column that a sequence fills. PostgreSQL adds no identity to a table with others below it.
func (t Table) counted() string {
	if t.Kind == "p" || t.Heirs {
		return "bigserial"
	}
	return "bigint GENERATED ALWAYS AS IDENTITY"
}

// index is the statement that makes an index. A partitioned table cannot have one made beside writers.
func (t Table) index(unique, columns string) string {
	concurrently := "CONCURRENTLY "
	if t.Kind == "p" {
		concurrently, unique = "", ""
	}
	return fmt.Sprintf("CREATE %sINDEX %sON %s (%s)", unique, concurrently, t.quoted(), columns)
}
