package processor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// meeting is a process that has delivered three orders, and meets a promoted server after its clock was corrected.
type meeting struct {
	pool   *pgxpool.Pool
	sink   *receiver
	behind string
}

func newMeeting(t *testing.T, id, behind string) *meeting {
	t.Helper()
	m := &meeting{pool: database(t), sink: &receiver{}, behind: behind}
	exec(t, m.pool, `CREATE TABLE dispatch.orders (id `+id+` PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), note text);
		CREATE INDEX ON dispatch.orders (created_at, id)`)
	for i := range 3 {
		m.insert(t, fmt.Sprint("known ", i))
	}
	return m
}

func (m *meeting) source(t *testing.T) *table.Source {
	t.Helper()
	return sourceOf(t, m.pool, table.Config{Table: "dispatch.orders"})
}

// start runs a worker until the three are delivered.
func (m *meeting) start(t *testing.T) (stop func() error) {
	t.Helper()
	stop = start(t, process(t, m.pool, processor.Each(m.sink), func(c *processor.Config) {
		c.Source = m.source(t)
		quick(c)
	}))
	eventually(t, "three are delivered", func() bool { return row(t, m.pool).Sequence >= 3 })
	return stop
}

func (m *meeting) insert(t *testing.T, note string) {
	t.Helper()
	exec(t, m.pool, `INSERT INTO dispatch.orders (note) VALUES ($1)`, note)
}

// lateOrders is also how many were delivered: ids that start again come to the position's.
const lateOrders = 3

// promote has the cursor look as if a standby was promoted since the last advance. Its clock was behind while it inserted
// rows, and is right again.
func (m *meeting) promote(t *testing.T) {
	t.Helper()
	exec(t, m.pool, `UPDATE dispatch.cursor SET timeline = timeline + 6`)
	for range lateOrders {
		exec(t, m.pool, `INSERT INTO dispatch.orders (created_at, note) VALUES (clock_timestamp() - $1::interval, 'late')`, m.behind)
	}
	m.insert(t, "new")
}

// pausedWhile pauses the process while something happens.
func (m *meeting) pausedWhile(t *testing.T, f func()) {
	t.Helper()
	decide(t, m.pool, (*operator.Operator).Pause)
	f()
	m.resume(t)
}

// resume is refused if the process has noticed already, as it does while it is paused.
func (m *meeting) resume(t *testing.T) {
	t.Helper()
	_, err := operator.New(store(t, m.pool)).Resume(t.Context(), "sms", cursor.Decision{Actor: "me"})
	if err != nil {
		require.ErrorContains(t, err, "the server's clock was behind the cursor")
	}
}

// refuse has the sink fail the orders of a note, until the returned function is called, and the process halt over one.
func (m *meeting) refuse(t *testing.T, err error) (accept func()) {
	t.Helper()
	var accepts atomic.Bool
	m.sink.answer = func(_ context.Context, d processor.Delivery) error {
		if noted(d, "refused") && !accepts.Load() {
			return err
		}
		return nil
	}
	m.start(t)
	m.insert(t, "refused")
	eventually(t, "the process halts", func() bool { return row(t, m.pool).State == cursor.Halted })
	return func() { accepts.Store(true) }
}

func noted(d processor.Delivery, note string) bool {
	return strings.Contains(string(d.Payload), `"note":"`+note+`"`)
}

// received is how many orders of a note the sink was called with.
func (m *meeting) received(note string) int {
	ids := map[string]bool{}
	for _, d := range m.sink.all() {
		if noted(d, note) {
			ids[d.ID] = true
		}
	}
	return len(ids)
}

// finds waits until the process halts over the late rows, does what the error says, and waits for them.
func (m *meeting) finds(t *testing.T) {
	t.Helper()
	eventually(t, "it halts over the clock, or goes on", func() bool {
		f := row(t, m.pool).Failure
		return f != nil && f.Class == cursor.ClassClock || m.received("new") > 0
	})
	r := row(t, m.pool)
	require.NotNil(t, r.Failure, "the late rows are passed over")
	require.Equal(t, cursor.ClassClock, r.Failure.Class, "the late rows are passed over")
	require.NotEqual(t, cursor.Running, r.State)
	at := cursor.Position(between(r.Failure.Error, "--to-position ", " -c"))
	seek(t, m.pool, at)
	if r.State == cursor.Paused {
		m.resume(t)
	}
	eventually(t, "all are delivered", func() bool { return m.received("late") == lateOrders && m.received("new") > 0 })
}

// former takes the schema back to what it was before cursors had a horizon.
func former(t *testing.T, config migrations.Config) {
	t.Helper()
	for {
		undone, err := migrations.Down(t.Context(), config)
		require.NoError(t, err)
		if undone.Version == 3 {
			return
		}
	}
}

// lateMeetings are the ways to meet a server late. Each ends with the process going on.
var lateMeetings = map[string]func(*testing.T, *meeting){
	"paused": func(t *testing.T, m *meeting) {
		m.start(t)
		m.pausedWhile(t, func() { m.promote(t) })
	},
	"worker down": func(t *testing.T, m *meeting) {
		stop := m.start(t)
		require.NoError(t, stop())
		m.promote(t)
		m.start(t)
	},
	"upgraded, worker down": func(t *testing.T, m *meeting) { // or the upgrade was lost with the old primary
		stop := m.start(t)
		require.NoError(t, stop())
		config := migrations.Config{ConnString: pgtest.URL(t), Schema: schema}
		former(t, config)
		m.promote(t)
		_, err := migrations.Up(t.Context(), config)
		require.NoError(t, err)
		m.start(t)
	},
	"upgraded after a pause, worker down": func(t *testing.T, m *meeting) {
		stop := m.start(t)
		require.NoError(t, stop())
		config := migrations.Config{ConnString: pgtest.URL(t), Schema: schema}
		former(t, config)
		m.promote(t)
		exec(t, m.pool, `WITH paused AS (UPDATE dispatch.cursor SET state = 'paused' RETURNING process_name)
			INSERT INTO dispatch.cursor_event (process_name, actor, action) SELECT process_name, 'me', 'pause' FROM paused`) // by the former program
		_, err := migrations.Up(t.Context(), config)
		require.NoError(t, err)
		m.resume(t)
		m.start(t)
	},
	"upgraded twice, worker down": func(t *testing.T, m *meeting) {
		stop := m.start(t)
		require.NoError(t, stop())
		m.promote(t)
		downAndUp(t)
		downAndUp(t)
		m.start(t)
	},
	"halted over a record": func(t *testing.T, m *meeting) {
		accept := m.refuse(t, processor.Permanent(errors.New("no such customer")))
		m.promote(t)
		accept() // it comes again after the seek
		decide(t, m.pool, (*operator.Operator).Skip)
	},
	"refused": func(t *testing.T, m *meeting) {
		accept := m.refuse(t, processor.Refused(errors.New("401")))
		m.promote(t)
		accept()
		decide(t, m.pool, (*operator.Operator).Retry)
	},
	"second promotion": func(t *testing.T, m *meeting) {
		m.start(t)
		m.start(t) // one of them waits for the other
		m.pausedWhile(t, func() {
			m.promote(t)
			exec(t, m.pool, `UPDATE dispatch.cursor SET timeline = timeline + 6`)
		})
	},
}

// downAndUp takes the upgrade of the tables back, and makes it again.
func downAndUp(t *testing.T) {
	t.Helper()
	config := migrations.Config{ConnString: pgtest.URL(t), Schema: schema}
	former(t, config)
	_, err := migrations.Up(t.Context(), config)
	require.NoError(t, err)
}

// TestRun_AServerThatIsMetAfterItsClockWasCorrectedHaltsTheProcess: its clock was behind when it was promoted. A running process
// sees that. One that does not run finds the rows, however far behind the clock was, or a day where the ids say nothing.
func TestRun_AServerThatIsMetAfterItsClockWasCorrectedHaltsTheProcess(t *testing.T) {
	t.Parallel()
	for name, ids := range map[string]struct{ id, behind string }{
		"ids of a sequence": {`bigint GENERATED ALWAYS AS IDENTITY`, "3 days"},
		"uuids":             {`uuid DEFAULT gen_random_uuid()`, "20 hours"},
		"blocks of ids":     {`bigint GENERATED ALWAYS AS IDENTITY (CACHE 50)`, "20 hours"},
	} {
		for how, meet := range lateMeetings {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				m := newMeeting(t, ids.id, ids.behind)
				meet(t, m)
				m.finds(t)
			})
		}
	}
}

const numbered = `bigint GENERATED BY DEFAULT AS IDENTITY`

// TestRun_LateRowsAreFoundFromAPositionThatIsNoRows: its id may be above those of all rows.
func TestRun_LateRowsAreFoundFromAPositionThatIsNoRows(t *testing.T) {
	t.Parallel()
	t.Run("of a row that is deleted", func(t *testing.T) {
		t.Parallel()
		m := newMeeting(t, numbered, "3 days")
		m.start(t)
		m.pausedWhile(t, func() {
			exec(t, m.pool, `DELETE FROM dispatch.orders WHERE id = 3`)
			m.promote(t)
		})
		m.finds(t)
	})
	t.Run("sought by time", func(t *testing.T) {
		t.Parallel()
		m := newMeeting(t, numbered, "3 days")
		m.start(t)
		m.pausedWhile(t, func() {
			at, err := m.source(t).At(t.Context(), time.Now())
			require.NoError(t, err)
			seek(t, m.pool, at)
			m.promote(t)
		})
		m.finds(t)
	})
}

// TestRun_LateRowsAreFoundWhereIDsStartAgain: their ids are below those that were delivered, and no clock shows that.
func TestRun_LateRowsAreFoundWhereIDsStartAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ ddl, then string }{
		"truncated":                   {`TRUNCATE dispatch.orders RESTART IDENTITY`, ""},
		"emptied, and set back":       {`DELETE FROM dispatch.orders; SELECT setval('dispatch.orders_id_seq', 1, false)`, ""},
		"set back":                    {`SELECT setval('dispatch.orders_id_seq', -1000)`, ""},
		"started again, and gone on":  {`ALTER TABLE dispatch.orders ALTER id RESTART WITH -1000`, `SELECT setval('dispatch.orders_id_seq', 5000)`},
		"another sequence":            {`CREATE SEQUENCE dispatch.other MINVALUE -1000; ALTER TABLE dispatch.orders ALTER id DROP IDENTITY, ALTER id SET DEFAULT nextval('dispatch.other')`, `SELECT setval('dispatch.other', 5000)`},
		"a sequence that was there":   {`ALTER TABLE dispatch.orders ALTER id DROP IDENTITY, ALTER id SET DEFAULT nextval('dispatch.older')`, `SELECT setval('dispatch.older', 5000)`},
		"the id of the row is larger": {`SELECT setval('dispatch.orders_id_seq', 1, false); DELETE FROM dispatch.orders WHERE id < 3; UPDATE dispatch.orders SET id = 100`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMeeting(t, `bigint GENERATED BY DEFAULT AS IDENTITY (MINVALUE -1000 START 1)`, "20 hours")
			exec(t, m.pool, `CREATE SEQUENCE dispatch.older MINVALUE -1000`)
			m.start(t)
			m.pausedWhile(t, func() {
				for _, statement := range strings.Split(c.ddl, "; ") {
					exec(t, m.pool, statement)
				}
				m.promote(t)
				if c.then != "" {
					exec(t, m.pool, c.then)
				}
			})
			m.finds(t)
		})
	}
}

// TestRun_AnIDOfItsOwnHidesNoLateRow: a row that an application gave an id far above the sequence.
func TestRun_AnIDOfItsOwnHidesNoLateRow(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, numbered, "3 days")
	exec(t, m.pool, `INSERT INTO dispatch.orders (id, created_at, note) VALUES (1000000, clock_timestamp() - interval '1 hour', 'its own')`)
	m.start(t)
	eventually(t, "four are delivered", func() bool { return row(t, m.pool).Sequence == 4 })
	m.pausedWhile(t, func() { m.promote(t) })
	m.finds(t)
}

// TestRun_RowsThatWereDeliveredAndChangedSinceAreNotLate: however old they are, and also if their ids are above the one of the
// position, as of transactions that ran side by side.
func TestRun_RowsThatWereDeliveredAndChangedSinceAreNotLate(t *testing.T) {
	t.Parallel()
	m := newMeeting(t, numbered, "")
	m.insert(t, "known 3")
	exec(t, m.pool, `UPDATE dispatch.orders SET created_at = created_at - (ARRAY['3 hours', '0', '2 seconds', '1 second'])[id]::interval`)
	m.start(t)
	eventually(t, "four are delivered", func() bool { return row(t, m.pool).Sequence == 4 })
	m.pausedWhile(t, func() {
		exec(t, m.pool, `UPDATE dispatch.cursor SET timeline = timeline + 6`)
		exec(t, m.pool, `UPDATE dispatch.orders SET note = 'changed' WHERE id < 4`)
		m.insert(t, "new")
	})
	eventually(t, "it halts, or goes on", func() bool { return row(t, m.pool).State == cursor.Halted || m.received("new") > 0 })
	require.Equal(t, cursor.Running, row(t, m.pool).State)
	require.Equal(t, "promoted", lastAction(t, m.pool))
}
