package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// producer commits rows in every way there is, and notes what it knows of each transaction. Its sessions are broken like
// everyone's.
type producer struct {
	name     string
	database *database
	clock    history.Clock
	log      *history.Log
	holds    *history.Log
	random   *rand.Rand
	conn     *pgx.Conn // nil: to be opened
	load     string    // the way to write of the open transaction
	suffix   string    // of the keys of its rows
	txs      int
	rows     int
	prepared []undecided
	wrote    time.Duration // when the first INSERT of the open transaction was answered; 0 = not yet
}

// undecided is a transaction that is prepared.
type undecided struct {
	tx, table string
	due       time.Duration
	commit    bool
	since     time.Duration // when that was answered; 0 = it may not be prepared
}

// row is a row to insert.
type row struct{ key, payload string }

const (
	producers    = 8
	maxRest      = 300 * time.Millisecond // between two transactions
	maxLinger    = 250 * time.Millisecond // within one
	maxUndecided = 2 * time.Second
)

// run produces until ctx ends, and then decides on what is prepared; that takes as long as it must, up to a minute.
func (p *producer) run(ctx context.Context) error {
	for ctx.Err() == nil {
		p.decideDue(ctx)
		if conn, err := p.session(ctx); err == nil {
			p.transaction(ctx, conn)
		}
		pause(ctx, upTo(p.random, maxRest))
	}
	ctx = context.WithoutCancel(ctx)
	for _, x := range p.prepared {
		if err := p.database.insist(ctx, func(conn *pgx.Conn) error { return p.decide(ctx, conn, x) }); err != nil {
			return fmt.Errorf("%s: decide on %s: %w", p.name, x.tx, err)
		}
	}
	if p.conn != nil {
		return p.conn.Close(ctx)
	}
	return nil
}

func upTo(random *rand.Rand, below time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(below)))
}

// session returns one that works, as far as it is known.
func (p *producer) session(ctx context.Context) (*pgx.Conn, error) {
	if p.conn != nil && !p.conn.IsClosed() {
		return p.conn, nil
	}
	conn, err := p.database.connect(ctx)
	p.conn = conn
	return conn, err
}

// transaction runs one of some way to write. Its statements do not end with ctx, so that a run ends with whole transactions.
func (p *producer) transaction(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	w := p.choose()
	into := w.into
	if into == nil {
		into = open()
	}
	p.load = w.name
	w.run(ctx, p, conn, into[p.random.IntN(len(into))])
}

// choose picks a way to write by its weight.
func (p *producer) choose() write {
	all, sum := writes(), 0
	for _, w := range all {
		sum += w.weight
	}
	n := p.random.IntN(sum)
	for _, w := range all {
		if n -= w.weight; n < 0 {
			return w
		}
	}
	panic("unreachable: n is below the sum")
}

// open are the sources that every way to write may insert into.
func open() []string {
	var names []string
	for _, s := range sources() {
		if !s.private {
			names = append(names, s.name)
		}
	}
	return names
}

// The common ways to write.

func rolledBack(ctx context.Context, p *producer, conn *pgx.Conn, table string) {
	p.inTx(ctx, conn, table, end{"ROLLBACK", history.Aborted}, p.insertSome)
}

func prepared(ctx context.Context, p *producer, conn *pgx.Conn, table string) {
	p.prepare(ctx, conn, table)
}

func withSavepoints(ctx context.Context, p *producer, conn *pgx.Conn, table string) {
	p.inTx(ctx, conn, table, end{"COMMIT", history.Committed}, p.savepoints)
}

func copied(ctx context.Context, p *producer, conn *pgx.Conn, table string) {
	p.inTx(ctx, conn, table, end{"COMMIT", history.Committed}, p.copy)
}

func severalAlone(ctx context.Context, p *producer, conn *pgx.Conn, table string) {
	p.alone(ctx, conn, table, 2+p.random.IntN(10))
}

func oneAlone(ctx context.Context, p *producer, conn *pgx.Conn, table string) {
	p.alone(ctx, conn, table, 1)
}

func severalStatements(ctx context.Context, p *producer, conn *pgx.Conn, table string) {
	p.inTx(ctx, conn, table, end{"COMMIT", history.Committed}, p.insertSome)
}

func (p *producer) note(tx string, step history.Step) {
	p.log.Note(history.Write{T: p.clock.Now(), Step: step, Tx: tx})
}

// begin names a transaction.
func (p *producer) begin() string {
	p.txs++
	return fmt.Sprintf("%s-%d", p.name, p.txs)
}

// make notes rows that a transaction is about to insert.
func (p *producer) make(tx, table string, n int) []row {
	rows := make([]row, n)
	for i := range rows {
		p.rows++
		key := fmt.Sprintf("%s-%d%s", p.name, p.rows, p.suffix)
		rows[i] = row{key, p.payload(key)}
		p.log.Note(history.Write{T: p.clock.Now(), Step: history.Insert, Tx: tx, Table: table, Key: key, Hash: digest([]byte(rows[i].payload)), Load: p.load})
	}
	return rows
}

// payload is JSON that whoever decodes it and encodes it again changes.
func (p *producer) payload(key string) string {
	filler := strings.Repeat("é\\u00e9 ", p.random.IntN(30))
	name, _ := json.Marshal(key) // never fails for a string
	return fmt.Sprintf(`{ "key":%s,  "n": %d%d, "e": 1e400, "text": "%s" }`, name, p.random.Uint64(), p.random.Uint64(), filler)
}

// outcome notes how a statement that commits ended. Without an answer of the server nobody knows; neither after an answer
// that tells of the session's end.
func (p *producer) outcome(tx string, conn *pgx.Conn, err error, good history.Step) {
	switch {
	case err == nil:
		p.note(tx, good)
	case conn.IsClosed():
		p.note(tx, history.Unknown)
	default:
		p.note(tx, history.Aborted)
	}
}

// alone inserts rows in one statement without a transaction around it.
func (p *producer) alone(ctx context.Context, conn *pgx.Conn, table string, n int) {
	tx := p.begin()
	rows := p.make(tx, table, n)
	p.note(tx, history.Try)
	p.outcome(tx, conn, insert(ctx, conn, table, rows), history.Committed)
}

// end of a transaction, and what it is if that works.
type end struct {
	sql  string
	step history.Step
}

// inTx runs work in a transaction that lingers before and after it. What fails before the end was rolled back.
func (p *producer) inTx(ctx context.Context, conn *pgx.Conn, table string, e end, work func(context.Context, *pgx.Conn, string, string) error) string {
	tx := p.begin()
	p.wrote = 0
	err := p.work(ctx, conn, tx, table, work)
	if err != nil {
		_, _ = conn.Exec(ctx, "ROLLBACK")
		p.note(tx, history.Aborted)
		return tx
	}
	p.note(tx, history.Try)
	before := p.clock.Now()
	tag, err := conn.Exec(ctx, strings.ReplaceAll(e.sql, "{tx}", tx))
	if err == nil && tag.String() == "ROLLBACK" {
		e.step = history.Aborted // a transaction that had failed answers COMMIT so
	} else if err == nil {
		p.held(table, p.wrote, before)
	}
	p.outcome(tx, conn, err, e.step)
	return tx
}

// shortestHold is worth a note: nobody sees shorter ones.
const shortestHold = 500 * time.Millisecond

// held notes that a transaction which had written to a table was open, or prepared, from one moment to the other.
func (p *producer) held(table string, from, to time.Duration) {
	if from > 0 && to-from > shortestHold {
		p.holds.Note(history.Hold{From: from, To: to, Kind: history.HoldsTable, Table: table})
	}
}

func (p *producer) work(ctx context.Context, conn *pgx.Conn, tx, table string, work func(context.Context, *pgx.Conn, string, string) error) error {
	if _, err := conn.Exec(ctx, "BEGIN"); err != nil {
		return err
	}
	p.linger(ctx)
	if err := work(ctx, conn, tx, table); err != nil {
		return err
	}
	p.linger(ctx)
	return nil
}

// linger lets time pass in the transaction, mostly none.
func (p *producer) linger(ctx context.Context) {
	if p.random.IntN(3) == 0 {
		pause(ctx, upTo(p.random, maxLinger))
	}
}

func (p *producer) insertSome(ctx context.Context, conn *pgx.Conn, tx, table string) error {
	for range 1 + p.random.IntN(3) {
		if err := insert(ctx, conn, table, p.make(tx, table, 1+p.random.IntN(2))); err != nil {
			return err
		}
		if p.wrote == 0 {
			p.wrote = p.clock.Now()
		}
		p.linger(ctx)
	}
	return nil
}

func (p *producer) copy(ctx context.Context, conn *pgx.Conn, tx, table string) error {
	rows := p.make(tx, table, 1+p.random.IntN(12))
	_, err := conn.CopyFrom(ctx, pgx.Identifier{"app", table}, []string{"key", "payload"},
		pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) { return []any{rows[i].key, rows[i].payload}, nil }))
	return err
}

// savepoints keeps a row, gives one up under a name of its own, and keeps another.
func (p *producer) savepoints(ctx context.Context, conn *pgx.Conn, tx, table string) error {
	if err := insert(ctx, conn, table, p.make(tx, table, 1)); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "SAVEPOINT a"); err != nil {
		return err
	}
	given := p.begin()
	err := insert(ctx, conn, table, p.make(given, table, 2))
	p.note(given, history.Aborted)
	if err != nil {
		return err
	}
	p.linger(ctx)
	if _, err := conn.Exec(ctx, "ROLLBACK TO SAVEPOINT a"); err != nil {
		return err
	}
	return insert(ctx, conn, table, p.make(tx, table, 1))
}

// prepare leaves a prepared transaction behind, to be decided on later.
func (p *producer) prepare(ctx context.Context, conn *pgx.Conn, table string) {
	x := undecided{table: table}
	x.tx = p.inTx(ctx, conn, table, end{"PREPARE TRANSACTION '{tx}'", history.Prepared}, p.insertSome)
	if !conn.IsClosed() {
		x.since = p.clock.Now() // if it was not prepared, nobody can decide on it
	}
	x.due, x.commit = p.clock.Now()+upTo(p.random, maxUndecided), p.random.IntN(4) > 0
	p.prepared = append(p.prepared, x)
}

// decideDue ends the prepared transactions that are due, as far as the database is there.
func (p *producer) decideDue(ctx context.Context) {
	var waiting []undecided
	for _, x := range p.prepared {
		conn, err := p.session(ctx)
		if x.due > p.clock.Now() || err != nil || p.decide(ctx, conn, x) != nil {
			waiting = append(waiting, x)
		}
	}
	p.prepared = waiting
}

// decide ends a prepared transaction. One that does not exist was never prepared, or was decided on before the answer
// was lost: the table tells.
func (p *producer) decide(ctx context.Context, conn *pgx.Conn, x undecided) error {
	verb, step := "ROLLBACK", history.Aborted
	if x.commit {
		verb, step = "COMMIT", history.Committed
	}
	p.note(x.tx, history.Try)
	before := p.clock.Now()
	_, err := conn.Exec(ctx, verb+" PREPARED '"+x.tx+"'")
	var pgErr interface{ SQLState() string }
	switch {
	case err == nil:
		p.held(x.table, x.since, before)
		p.note(x.tx, step)
	case errors.As(err, &pgErr) && pgErr.SQLState() == "42704":
		p.note(x.tx, history.Unknown)
	default:
		return err
	}
	return nil
}

// insert inserts rows in one statement.
func insert(ctx context.Context, conn *pgx.Conn, table string, rows []row) error {
	var args []any
	for _, r := range rows {
		args = append(args, r.key, r.payload)
	}
	_, err := conn.Exec(ctx, sourceCalled(table).insert(len(rows)), args...)
	return err
}
