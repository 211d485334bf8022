package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

const (
	// standstill is for how long a process may deliver nothing when nothing is broken any more. A receiver may have asked
	// for two seconds, and a zombie's session is freed after ten. Both bounds are longer on a busy machine.
	standstill = 30 * time.Second
	// catchUp bounds the wait for all of them, whose backlogs may be long.
	catchUp = 10 * time.Minute
)

const standingsSQL = `/* torture.standings */
SELECT process_name, position, sequence, epoch, state, coalesce(failed_position, ''), coalesce(timeline, 0)
FROM dispatch.cursor
ORDER BY process_name
LIMIT 1000`

func standings(ctx context.Context, conn *pgx.Conn) (map[string]history.Standing, error) {
	all := map[string]history.Standing{}
	var name string
	var s history.Standing
	rows, _ := conn.Query(ctx, standingsSQL)
	_, err := pgx.ForEachRow(rows, []any{&name, &s.Position, &s.Sequence, &s.Epoch, &s.State, &s.Failed, &s.Timeline}, func() error {
		all[name] = s
		return nil
	})
	return all, err
}

// lastPositions are those of the last row of each source.
func lastPositions(ctx context.Context, conn *pgx.Conn, of []source) (map[string]string, error) {
	last := map[string]string{}
	for _, s := range of {
		var position string
		err := conn.QueryRow(ctx, fmt.Sprintf("SELECT coalesce((SELECT %s FROM %s ORDER BY %s DESC LIMIT 1), '')",
			s.position(), s.rows(), descending(s.columns()))).Scan(&position)
		if err != nil {
			return nil, err
		}
		last[s.name] = position
	}
	return last, nil
}

func descending(columns string) string {
	if columns == "id" {
		return columns
	}
	return "created_at DESC, id"
}

// settle waits until every process has delivered what there is, and returns how it came to that.
func (f *field) settle(ctx context.Context) (map[string]*history.End, error) {
	began := f.clock.Now()
	ends, moved := map[string]*history.End{}, map[string]time.Duration{}
	for _, p := range processes() {
		ends[p.Name], moved[p.Name] = &history.End{Process: p.Name, Patience: standstill}, began
	}
	for waiting := true; waiting && pause(ctx, 20*time.Millisecond) && f.metronome.since(began) < catchUp; {
		err := f.database.do(ctx, func(conn *pgx.Conn) (err error) {
			waiting, err = f.look(ctx, conn, began, moved, ends)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("look how it ended: %w", err)
		}
	}
	return ends, nil
}

// look notes which processes have caught up, and resumes those that halted after their nemesis had left.
func (f *field) look(ctx context.Context, conn *pgx.Conn, began time.Duration, moved map[string]time.Duration, ends map[string]*history.End) (waiting bool, err error) {
	last, err := lastPositions(ctx, conn, sources())
	if err != nil {
		return true, err
	}
	now, err := standings(ctx, conn)
	if err != nil {
		return true, err
	}
	for _, p := range processes() {
		e := ends[p.Name]
		if at := now[p.Name]; at != e.Cursor {
			e.Cursor, moved[p.Name] = at, f.clock.Now()
		}
		if e.Cursor.State == "halted" {
			if err := retry(ctx, f, p.Name); err != nil {
				return true, err
			}
		}
		if e.Cursor.Position < last[p.Table] || e.Cursor.State != "running" {
			e.Waited, e.Stood = f.clock.Now()-began, max(e.Stood, f.metronome.since(moved[p.Name]))
			waiting = waiting || e.Stood <= e.Patience
		}
	}
	return waiting, nil
}

const sessionsSQL = `/* torture.sessions */
SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'ordered-dispatcher%'`

// ends adds what status says and how many sessions there are.
func (f *field) ends(ctx context.Context, ends map[string]*history.End) ([]history.End, error) {
	sessions := 0
	err := f.database.do(ctx, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, sessionsSQL).Scan(&sessions) })
	if err != nil {
		return nil, err
	}
	told, err := f.askStatus(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range told {
		e := ends[t.Process]
		e.Status, e.Lag, e.Problem = t.At, t.Lag, t.Problem
		e.Status.Timeline = e.Cursor.Timeline
	}
	var all []history.End
	for _, p := range processes() {
		e := ends[p.Name]
		e.Sessions, e.Allowed, e.Files = sessions, allowed(), f.files()
		all = append(all, *e)
	}
	return all, nil
}

// sinkSessions are those of a sink with a target of its own: one that delivers, and one that another fault has left to end.
const sinkSessions = 2

// allowed is how many sessions the daemons may have together.
func allowed() int {
	n := 0
	for _, s := range slots() {
		conns, _ := s.conns()
		n += conns
		for _, p := range targeted() {
			if s.run(p) {
				n += sinkSessions
			}
		}
	}
	return n
}

// files is how many a worker has open, at most; 0 where the system does not tell.
func (f *field) files() int {
	most := 0
	for _, w := range f.workers {
		entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.process.Pid()))
		most = max(most, len(entries))
	}
	return most
}

// testify reads what the database knows, when nobody writes any more.
func (f *field) testify(ctx context.Context) error {
	return f.database.do(ctx, func(conn *pgx.Conn) error {
		return errors.Join(f.rows(ctx, conn), f.moves(ctx, conn), f.actions(ctx, conn), f.letters(ctx, conn), f.applied(ctx))
	})
}

func (f *field) rows(ctx context.Context, conn *pgx.Conn) error {
	var all []history.Row
	for _, s := range sources() {
		some, err := readRows(ctx, conn, s)
		if err != nil {
			return fmt.Errorf("read the rows of %s: %w", s.name, err)
		}
		all = append(all, some...)
	}
	return history.WriteAll(f.histories, history.RowsActor, all)
}

// readRows reads the rows of a source, in their order.
func readRows(ctx context.Context, conn *pgx.Conn, s source) ([]history.Row, error) {
	rows, _ := conn.Query(ctx, fmt.Sprintf(`/* torture.rows */
		SELECT '%[2]s', %[1]s, key, encode(sha256(convert_to(payload::text, 'UTF8')), 'hex')
		FROM %[4]s ORDER BY %[3]s LIMIT 10000000`, s.position(), s.name, s.columns(), s.rows()))
	return pgx.CollectRows(rows, pgx.RowToStructByPos[history.Row])
}

const movesSQL = `/* torture.moves */
SELECT
	n, at, pg_xact_commit_timestamp(xmin), tx, backend, process_name,
	old ->> 'position', (old ->> 'sequence')::bigint, (old ->> 'epoch')::bigint, old ->> 'state', coalesce(old ->> 'failed_position', ''), coalesce((old ->> 'timeline')::bigint, 0),
	new ->> 'position', (new ->> 'sequence')::bigint, (new ->> 'epoch')::bigint, new ->> 'state', coalesce(new ->> 'failed_position', ''), coalesce((new ->> 'timeline')::bigint, 0)
FROM app.cursor_audit
ORDER BY n
LIMIT 10000000`

func (f *field) moves(ctx context.Context, conn *pgx.Conn) error {
	rows, _ := conn.Query(ctx, movesSQL)
	moves, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m history.Move, err error) {
		var at, committed time.Time
		err = row.Scan(&m.N, &at, &committed, &m.Tx, &m.Backend, &m.Process,
			&m.From.Position, &m.From.Sequence, &m.From.Epoch, &m.From.State, &m.From.Failed, &m.From.Timeline,
			&m.To.Position, &m.To.Sequence, &m.To.Epoch, &m.To.State, &m.To.Failed, &m.To.Timeline)
		m.T, m.Committed = f.clock.At(at), f.clock.At(committed)
		return m, err
	})
	if err != nil {
		return fmt.Errorf("read the audit of the cursors: %w", err)
	}
	return history.WriteAll(f.histories, history.CursorActor, moves)
}

// actionsSQL: the event and the move of one transaction are told by its id, which the event's row bears.
const actionsSQL = `/* torture.actions */
SELECT at, xmin::text, process_name, action, actor, coalesce(from_position, ''), coalesce(to_position, '')
FROM dispatch.cursor_event
ORDER BY id
LIMIT 10000000`

func (f *field) actions(ctx context.Context, conn *pgx.Conn) error {
	rows, _ := conn.Query(ctx, actionsSQL)
	actions, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a history.Action, err error) {
		var at time.Time
		err = row.Scan(&at, &a.Tx, &a.Process, &a.Kind, &a.Actor, &a.From, &a.To)
		a.T = f.clock.At(at)
		return a, err
	})
	if err != nil {
		return fmt.Errorf("read the audit of the operators: %w", err)
	}
	return history.WriteAll(f.histories, history.OperatorActor, actions)
}

const lettersSQL = `/* torture.letters */
SELECT xmin::text, process_name, key, position, encode(sha256(payload), 'hex'), sequence, attempts, coalesce(resolution, '')
FROM dispatch.dead_letter
ORDER BY id
LIMIT 10000000`

func (f *field) letters(ctx context.Context, conn *pgx.Conn) error {
	rows, _ := conn.Query(ctx, lettersSQL)
	letters, err := pgx.CollectRows(rows, pgx.RowToStructByPos[history.Letter])
	if err != nil {
		return fmt.Errorf("read the dead letters: %w", err)
	}
	return history.WriteAll(f.histories, history.LettersActor, letters)
}

func (f *field) applied(ctx context.Context) error {
	var all []history.Applied
	for _, p := range processes() {
		if b := f.brokers[p.Sink]; b != nil {
			some, err := b.read(ctx, p.Name)
			if err != nil {
				return fmt.Errorf("read what %s published: %w", p.Name, err)
			}
			all = append(all, some...)
		}
		if p.Sink != history.SQL && p.Sink != history.Remote {
			continue
		}
		some, err := f.database.readApplied(ctx, p)
		if err != nil {
			return fmt.Errorf("read what %s applied: %w", p.Name, err)
		}
		all = append(all, some...)
	}
	return history.WriteAll(f.histories, history.AppliedActor, all)
}
