package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

const (
	// guardInterval is the pause between two looks at the partitions. The pause is guardFactor times the duration of
	// the last look if that is longer, so that questions about many partitions stay a small part of the load.
	guardInterval = time.Minute
	guardFactor   = 20
)

// guard asks again and again which partitions hold records that are not delivered, for each process of the file, in
// any state. When such a partition is detached or dropped, the cursor passes the place where its records were, and
// then there is no sign of them any more. So the guard notes it in the audit, for doctor and history. A plain table
// counts as its own partition: it is gone when another table gets its name.
//
// The memory of the guard ends with the worker. It takes records that were delivered between its last look and the
// DETACH for undelivered.
type guard struct {
	config Config
	pool   *pgxpool.Pool
	store  *cursor.Store
	log    *slog.Logger
	every  time.Duration

	sources map[string]*table.Source // by process; not the sources that deliver, since a read must not wait for a look
	kept    map[string]remains       // by process
	logged  problems
}

// remains are the partitions that held records for a process at the last look, by oid.
type remains map[uint32]remainder

// remainder is the content of a partition at the last look that found records in it.
type remainder struct {
	table.Partition
	after   cursor.Position // of the cursor
	records int64           // counted up to table.MaxUndelivered
	last    cursor.Position // where the records of the source's table ended; "" if that is not known
	event   int64           // the last one in the audit before the question
	seen    time.Time       // of the database, after the question
}

func newGuard(c RunConfig, pool *pgxpool.Pool, store *cursor.Store) (*guard, error) {
	g := &guard{config: c.Config, pool: pool, store: store, log: c.Logger, every: cmp.Or(c.lookInterval, guardInterval),
		sources: map[string]*table.Source{}, kept: map[string]remains{}, logged: problems{}}
	for _, p := range c.Config.Processes {
		source, err := c.Config.keys(p, pool)
		if err != nil {
			return nil, err
		}
		g.sources[p.Name] = source
	}
	return g, nil
}

// guardPartitions looks at the partitions until the crew ends. A crew that was refused for lack of connections asks
// nothing.
func (c *crew) guardPartitions() error {
	<-c.announced
	if c.refused {
		<-c.ctx.Done()
		return nil
	}
	c.guard.run(c.ctx)
	return nil
}

func (g *guard) run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		g.lookAll(ctx)
		pause(ctx, max(g.every, guardFactor*time.Since(began)))
	}
}

// lookAll looks once at the partitions of each process. A connection that fails is left for the process to log: the
// partitions are not at fault.
func (g *guard) lookAll(ctx context.Context) {
	for process := range g.sources {
		err := g.look(ctx, process)
		var connect *pgconn.ConnectError
		if ctx.Err() == nil && !errors.As(err, &connect) && g.logged.changes(process, err) && err != nil {
			g.log.Warn("the partitions cannot be inspected: the worker would not notice if one is dropped with undelivered records", "process", process, "err", err)
		}
	}
}

// look asks the partitions of one process what they hold, and lists them again afterwards. A partition that is
// missing then may have been gone before it was asked.
func (g *guard) look(ctx context.Context, process string) error {
	row, err := g.store.Look(ctx, process)
	if errors.Is(err, cursor.ErrUnknown) || err == nil && row.Position == cursor.Unplaced {
		return nil
	}
	if err != nil {
		return err
	}
	source, before := g.sources[process], g.kept[process]
	all, err := source.Tables(ctx)
	if err != nil || len(all)+len(before) == 0 {
		return err
	}
	now, err := g.remaining(ctx, process, row.Position, all)
	if err != nil || len(now)+len(before) == 0 {
		return err
	}
	if all, err = source.Tables(ctx); err != nil {
		return err
	}
	gone := maps.Clone(before)
	if gone == nil {
		gone = remains{}
	}
	maps.Copy(gone, now)
	for _, p := range all {
		if !p.Detaching {
			delete(gone, p.OID())
		}
	}
	g.kept[process] = now
	if len(now) != len(before) {
		g.log.Debug("partitions hold records that are not delivered", "process", process, "partitions", len(now))
	}
	if err := g.note(ctx, row, gone); err != nil {
		maps.Copy(now, gone) // the next look notes them
		return err
	}
	maps.DeleteFunc(now, func(oid uint32, _ remainder) bool { _, is := gone[oid]; return is })
	return nil
}

// remaining returns the partitions with records after a position. If the process has caught up, it does not ask each
// of them.
func (g *guard) remaining(ctx context.Context, process string, at cursor.Position, all []table.Partition) (remains, error) {
	source, found := g.sources[process], remains{}
	first, err := source.First(ctx, at)
	if err != nil || first == nil {
		return found, err
	}
	event, err := g.lastEvent(ctx, process)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.Detaching {
			continue // its rows are no longer read
		}
		records, err := source.Undelivered(ctx, at, p)
		if err != nil {
			return nil, err
		}
		if records == 0 {
			continue
		}
		seen, err := databaseTime(ctx, g.pool)
		if err != nil {
			return nil, err
		}
		found[p.OID()] = remainder{Partition: p, after: at, records: records, event: event, seen: seen}
	}
	if len(found) == 0 {
		return found, nil
	}
	last, err := g.lastOf(ctx, process)
	if err != nil {
		last = "" // then a seek past the records may be noted; nothing else is lost
	}
	for oid, r := range found {
		r.last = last
		found[oid] = r
	}
	return found, nil
}

// note writes into the audit which partitions are gone. It does not name a partition beside one above it that went,
// too.
func (g *guard) note(ctx context.Context, row cursor.Row, gone remains) error {
	for _, r := range gone {
		if gone.hold(r) {
			continue
		}
		if err := g.noteOne(ctx, row, r); err != nil {
			return err
		}
	}
	return nil
}

// hold reports whether a partition is a part of one of these.
func (all remains) hold(r remainder) bool {
	for _, other := range all {
		if r.Below(other.Partition) {
			return true
		}
	}
	return false
}

// The fates of a partition, or of the table itself.
const (
	fateDetached = "detached"
	fateDropped  = "dropped"
	fateReplaced = "replaced" // the table itself: another one has its name
)

// goneAction is the action of the event.
const goneAction = "partition_gone"

// goneDetail is the event's detail.
type goneDetail struct {
	Table   string `json:"table"`
	OID     uint32 `json:"oid"`
	Fate    string `json:"fate"`
	Records int64  `json:"records"`
	Attach  string `json:"attach"` // "" for the table itself
	// Seen is when it was last seen to hold records; nil in an event of a former version.
	Seen *time.Time `json:"seen,omitempty"`
}

// byRetention reports whether a rule has taken a partition since it was seen: by then each process had passed its
// records. A role that may not read that takes them for undelivered.
func (d goneDetail) byRetention(ctx context.Context, store *cursor.Store) (bool, error) {
	if d.Seen == nil {
		return false, nil
	}
	dropped, err := operator.New(store).Dropped(ctx, d.OID, *d.Seen)
	if denied(err) {
		return false, nil
	}
	return dropped, err
}

const presentSQL = `/* daemon.partition_present */ SELECT coalesce((SELECT format('%s.%I', relnamespace::regnamespace, relname) FROM pg_class WHERE oid = $1), '')`

// now describes the present name of a table that was replaced.
func (d goneDetail) now(present string) string {
	if d.Fate != fateReplaced || present == "" {
		return ""
	}
	return " and is " + present + " now"
}

// presentName returns the name that a table has now; "" if it was dropped.
func presentName(ctx context.Context, pool *pgxpool.Pool, oid uint32) (name string, err error) {
	err = ask(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, presentSQL, binary, oid).Scan(&name)
	})
	return name, err
}

// goneSQL notes once, for all workers that have seen it, that a partition ($7: its oid) is gone. An event of another
// worker is the same one if it came after this worker last saw the partition attached ($8: the last event before
// that). If an operator has sought back since, the partition was attached again, and went a second time. The
// statement reads the index on (process_name, id).
const goneSQL = `/* daemon.partition_gone */
INSERT INTO {schema}.cursor_event (process_name, actor, action, reason, from_position, to_position, detail)
SELECT $1, $2, '` + goneAction + `', $3, $4, $5, $6::jsonb
WHERE NOT EXISTS (
	SELECT 1
	FROM {schema}.cursor_event noted
	WHERE process_name = $1 AND action = '` + goneAction + `' AND detail->>'oid' = $7 AND id > $8
	AND NOT EXISTS (
		SELECT 1
		FROM {schema}.cursor_event back
		WHERE back.process_name = $1 AND back.id > noted.id AND back.action = 'seek' AND back.to_position <= noted.from_position
	)
)`

func (g *guard) noteOne(ctx context.Context, row cursor.Row, r remainder) error {
	r, settled, err := g.settled(ctx, row.Process, r)
	if err != nil || settled {
		return err
	}
	present, err := presentName(ctx, g.pool, r.OID())
	if err != nil {
		return err
	}
	detail := goneDetail{Table: r.Name(), OID: r.OID(), Fate: fateDetached, Records: r.records, Attach: r.Attach, Seen: &r.seen}
	if taken, err := detail.byRetention(ctx, g.store); err != nil || taken {
		return err
	}
	switch {
	case present == "":
		detail.Fate = fateDropped
	case r.Attach == "":
		detail.Fate = fateReplaced
	}
	text, err := json.Marshal(detail)
	if err != nil {
		return err
	}
	reason := fmt.Sprintf("%s was %s%s. It was last seen to hold %s after this position, which may not have been delivered", detail.Table, detail.Fate, detail.now(present), countOf(r.records))
	return ask(ctx, g.pool, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, g.config.sql(goneSQL), row.Process, g.store.Worker(), visible.Line(reason), string(r.after), string(row.Position),
			string(text), fmt.Sprint(r.OID()), r.event)
		if err == nil && tag.RowsAffected() > 0 {
			g.log.Warn("a partition, or the table itself, is gone with records that may not have been delivered; `ordered-dispatcher doctor` prints what to do",
				"process", row.Process, "table", detail.Table, "fate", detail.Fate, "records", r.records, "position", visible.Cut(string(r.after)))
		}
		return err
	})
}
