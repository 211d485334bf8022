package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	producers       = 8
	maxTransaction  = 200 * time.Millisecond // a transaction lasts up to this
	maxBookings     = 4                      // and inserts one booking at least, so many at most
	rollbackPercent = 10
	customers       = 500
)

// market is the producers and what they noted.
type market struct {
	db        *database
	closing   chan struct{}
	committed atomic.Int64 // bookings
	group     sync.WaitGroup

	mu  sync.Mutex
	log []entry
}

// openMarket starts the producers, and beside them a transaction that writes to another table and stays open as long
// as they work. They end with close; if one fails, it ends the run.
func openMarket(ctx context.Context, db *database, fail func(error)) *market {
	m := &market{db: db, closing: make(chan struct{})}
	start := func(work func(context.Context) error) {
		m.group.Go(func() {
			if err := work(ctx); err != nil {
				fail(fmt.Errorf("commit bookings: %w", err))
			}
		})
	}
	for range producers {
		start(m.produce)
	}
	start(m.report)
	return m
}

// close lets the transactions in hand come to their end, and returns the producers' log.
func (m *market) close() []entry {
	close(m.closing)
	m.group.Wait()
	return m.log
}

func (m *market) open() bool {
	select {
	case <-m.closing:
		return false
	default:
		return true
	}
}

func (m *market) produce(ctx context.Context) error {
	for m.open() {
		if err := m.transaction(ctx); err != nil {
			return err
		}
	}
	return nil
}

var errChangedMind = errors.New("the customer changed their mind")

// transaction inserts bookings over some time, and commits them or not.
func (m *market) transaction(ctx context.Context) error {
	n := 1 + rand.IntN(maxBookings)
	step := rand.N(maxTransaction) / time.Duration(n)
	entries := make([]entry, n)
	err := pgx.BeginFunc(ctx, m.db.pool, func(tx pgx.Tx) (err error) {
		for i := range entries {
			if entries[i].Booking, err = m.insert(ctx, tx); err != nil {
				return err
			}
			if err := wait(ctx, step); err != nil {
				return err
			}
		}
		if rand.IntN(100) < rollbackPercent {
			return errChangedMind
		}
		return nil
	})
	if err != nil && !errors.Is(err, errChangedMind) {
		return err
	}
	m.note(entries, err == nil, time.Now())
	return nil
}

func (m *market) note(entries []entry, committed bool, at time.Time) {
	for i := range entries {
		entries[i].Committed, entries[i].EndedAt = committed, at
	}
	if committed {
		m.committed.Add(int64(len(entries)))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, entries...)
}

const insertSQL = `/* demo.insert */
INSERT INTO {schema}.bookings (customer_id, phone, status, amount)
VALUES ($1, $2, $3, $4)
RETURNING id, created_at`

func (m *market) insert(ctx context.Context, tx pgx.Tx) (booking, error) {
	b := booking{
		Customer: 1 + rand.Int64N(customers),
		Phone:    fmt.Sprintf("+1 555 %07d", rand.IntN(10_000_000)),
		Status:   "confirmed",
		Amount:   json.Number(fmt.Sprintf("%d.%02d", 1+rand.IntN(500), rand.IntN(100))),
	}
	err := tx.QueryRow(ctx, m.db.sql(insertSQL), b.Customer, b.Phone, b.Status, string(b.Amount)).Scan(&b.ID, &b.CreatedAt)
	return b, err
}

// reportSQL keeps a server's own time-out from ending a transaction that is idle on purpose.
const reportSQL = `/* demo.report */
SELECT set_config('idle_in_transaction_session_timeout', '0', true)`

// report is the stranger that must hold nothing up: it writes to another table and takes its time.
func (m *market) report(ctx context.Context) error {
	return pgx.BeginFunc(ctx, m.db.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, reportSQL); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, m.db.sql("/* demo.report */ INSERT INTO {schema}.report (line) VALUES ('a long report')")); err != nil {
			return err
		}
		select {
		case <-m.closing:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// wait returns after d, or with the reason why ctx has ended.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
