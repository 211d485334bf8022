package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// keys are those of the rows of a cell: none comes again, in whichever server.
type keys struct{ last atomic.Int64 }

func (k *keys) next() string { return fmt.Sprintf("row-%08d", k.last.Add(1)) }

const (
	produceInterval = 50 * time.Millisecond
	produceTimeout  = 5 * time.Second
)

// produce commits rows at an address until ctx ends, each in a transaction of its own. Where the database is away it tries
// again, with other rows.
func (c *cell) produce(ctx context.Context, address string) {
	for pause(ctx, produceInterval) {
		conn, err := c.session(ctx, address)
		if err != nil {
			continue
		}
		for pause(ctx, produceInterval) && c.insert(ctx, conn) {
		}
		_ = conn.Close(context.WithoutCancel(ctx))
	}
}

func (c *cell) session(ctx context.Context, address string) (*pgx.Conn, error) {
	url, err := c.database.through(address, slot{})
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.ConnectTimeout = connectTimeout
	config.RuntimeParams["application_name"] = "torture"
	return pgx.ConnectConfig(ctx, config)
}

// insert adds a row to each table, and reports whether the session is still good.
func (c *cell) insert(ctx context.Context, conn *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), produceTimeout)
	defer cancel()
	for _, s := range cellSources() {
		key := c.keys.next()
		payload := fmt.Sprintf(`{"key": %q}`, key)
		w := history.Write{T: c.clock.Now(), Step: history.Insert, Tx: key, Table: s.name, Key: key, Hash: digest([]byte(payload))}
		c.notes.Note(w)
		lazy := c.lazy.Load()
		err := c.waitForDisk(ctx, conn, !lazy)
		if err == nil {
			_, err = conn.Exec(ctx, s.insert(1), key, payload)
		}
		w.Step = history.Committed
		if err != nil || lazy {
			w.Step = history.Unknown
		}
		w.T = c.clock.Now()
		c.notes.Note(w)
		if err != nil {
			return false
		}
	}
	return true
}

const waitSQL = `/* torture.wait */
SELECT set_config('synchronous_commit', CASE WHEN $1::boolean THEN 'on' ELSE 'off' END, false)`

// waitForDisk sets whether the commits of a session wait until they outlive a crash.
func (c *cell) waitForDisk(ctx context.Context, conn *pgx.Conn, wait bool) error {
	_, err := conn.Exec(ctx, waitSQL, wait)
	return err
}
