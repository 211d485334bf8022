package table

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// producer commits rows in every way there is, as fast as it can, until it is
// told to stop. It keeps its own account of what it committed.
type producer struct {
	ground    ground
	conn      *pgx.Conn
	name      string
	random    *rand.Rand
	rows      int
	committed []string
	prepared  []undecided
}

// undecided is a transaction that is prepared.
type undecided struct {
	gid    string
	labels []string
	due    time.Time
	commit bool
}

// run produces until the deadline and then decides on what is prepared.
func (p *producer) run(ctx context.Context, deadline time.Time) error {
	for time.Now().Before(deadline) {
		if err := p.decide(ctx, time.Now()); err != nil {
			return err
		}
		labels, err := p.transaction(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		p.committed = append(p.committed, labels...)
	}
	return p.decide(ctx, deadline.Add(time.Hour))
}

// transaction runs one of some kind, and returns the labels that it committed.
func (p *producer) transaction(ctx context.Context) ([]string, error) {
	switch p.random.IntN(14) {
	case 0, 1:
		labels := p.labels(1)
		return labels, p.insert(ctx, labels)
	case 2:
		labels := p.labels(2 + p.random.IntN(20))
		return labels, p.insert(ctx, labels)
	case 3, 4:
		labels := p.labels(1 + p.random.IntN(50))
		return labels, p.inTx(ctx, "COMMIT", func() error { return p.copy(ctx, labels) })
	case 5:
		return p.savepoints(ctx)
	case 6:
		return nil, p.inTx(ctx, "ROLLBACK", func() error { return p.insert(ctx, p.labels(2)) })
	case 7:
		return nil, p.prepare(ctx)
	case 8:
		return p.importRows(ctx)
	default:
		var labels []string
		err := p.inTx(ctx, "COMMIT", func() error {
			for range 1 + p.random.IntN(3) {
				some := p.labels(1)
				labels = append(labels, some...)
				if err := p.insert(ctx, some); err != nil {
					return err
				}
				if err := p.linger(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		return labels, err
	}
}

// inTx runs f in a transaction that lingers before it and after it.
func (p *producer) inTx(ctx context.Context, end string, f func() error) error {
	for _, step := range []func() error{
		func() error { return p.exec(ctx, "BEGIN") },
		func() error { return p.linger(ctx) },
		f,
		func() error { return p.linger(ctx) },
		func() error { return p.exec(ctx, end) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (p *producer) exec(ctx context.Context, sql string) error {
	_, err := p.conn.Exec(ctx, sql)
	return err
}

// linger lets time pass in the transaction: mostly none or little, at times up to
// 200 ms.
func (p *producer) linger(ctx context.Context) error {
	long := 0
	switch p.random.IntN(6) {
	case 0:
		long = p.random.IntN(200)
	case 1, 2:
		long = p.random.IntN(10)
	default:
		return nil
	}
	return p.exec(ctx, fmt.Sprintf("SELECT pg_sleep(%d / 1000.0)", long))
}

func (p *producer) labels(n int) []string {
	labels := make([]string, n)
	for i := range labels {
		p.rows++
		labels[i] = fmt.Sprintf("%s-%d", p.name, p.rows)
	}
	return labels
}

// into is the table, or one of its partitions, and the values that go with it.
func (p *producer) into() (table, columns, values string) {
	if len(p.ground.leaves) == 0 || p.random.IntN(2) == 0 {
		return "app.bookings", "label", ""
	}
	leaf := p.ground.leaves[p.random.IntN(len(p.ground.leaves))]
	return leaf.table, "label, id, region", leaf.values
}

// insert inserts all labels in one statement.
func (p *producer) insert(ctx context.Context, labels []string) error {
	table, columns, values := p.into()
	var rows []string
	for _, label := range labels {
		rows = append(rows, fmt.Sprintf("('%s'%s)", label, values))
	}
	return p.exec(ctx, fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", table, columns, strings.Join(rows, ", ")))
}

func (p *producer) copy(ctx context.Context, labels []string) error {
	rows := strings.NewReader(strings.Join(labels, "\n") + "\n")
	_, err := p.conn.PgConn().CopyFrom(ctx, rows, "COPY app.bookings (label) FROM STDIN")
	return err
}

// savepoints inserts, undoes some of it, and inserts again.
func (p *producer) savepoints(ctx context.Context) ([]string, error) {
	kept, undone, last := p.labels(p.random.IntN(2)), p.labels(1), p.labels(1)
	err := p.inTx(ctx, "COMMIT", func() error {
		if len(kept) > 0 {
			if err := p.insert(ctx, kept); err != nil {
				return err
			}
		}
		if err := p.exec(ctx, "SAVEPOINT a"); err != nil {
			return err
		}
		if err := p.insert(ctx, undone); err != nil {
			return err
		}
		if err := p.linger(ctx); err != nil {
			return err
		}
		if err := p.exec(ctx, "ROLLBACK TO a"); err != nil {
			return err
		}
		return p.insert(ctx, last)
	})
	return append(kept, last...), err
}

// importRows commits many transactions in one message: as such, or in a procedure.
func (p *producer) importRows(ctx context.Context) ([]string, error) {
	labels := p.labels(20 + p.random.IntN(200))
	if p.random.IntN(2) == 0 {
		return labels, p.exec(ctx, fmt.Sprintf("CALL app.import_labels('{%s}')", strings.Join(labels, ",")))
	}
	var message strings.Builder
	for _, label := range labels {
		fmt.Fprintf(&message, "BEGIN; INSERT INTO app.bookings (label) VALUES ('%s'); COMMIT;", label)
	}
	return labels, simply(ctx, p.conn.PgConn(), message.String())
}

// prepare leaves a prepared transaction behind, to be decided on later.
func (p *producer) prepare(ctx context.Context) error {
	labels := p.labels(1 + p.random.IntN(3))
	gid := fmt.Sprintf("%s %s %d", p.conn.Config().Database, p.name, p.rows)
	err := p.inTx(ctx, "PREPARE TRANSACTION "+literal(gid), func() error { return p.insert(ctx, labels) })
	due := time.Now().Add(time.Duration(p.random.IntN(300)) * time.Millisecond)
	p.prepared = append(p.prepared, undecided{gid, labels, due, p.random.IntN(4) > 0})
	return err
}

// decide ends the prepared transactions that are due.
func (p *producer) decide(ctx context.Context, now time.Time) error {
	var waiting []undecided
	for _, x := range p.prepared {
		if x.due.After(now) {
			waiting = append(waiting, x)
			continue
		}
		verb := "ROLLBACK"
		if x.commit {
			verb = "COMMIT"
		}
		if err := p.exec(ctx, verb+" PREPARED "+literal(x.gid)); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if x.commit {
			p.committed = append(p.committed, x.labels...)
		}
	}
	p.prepared = waiting
	return nil
}
