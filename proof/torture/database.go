package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
	"github.com/ordered-dispatcher/ordered-dispatcher/migrations"
)

// settings are for many sessions; fsync stays on.
var settings = map[string]string{
	"max_connections":           "250",
	"max_prepared_transactions": "100",
	"shared_buffers":            "128MB",
	"track_commit_timestamp":    "on",
}

// database is the primary, whichever it is at the moment.
type database struct {
	mu     sync.Mutex
	server *pglocal.Server
}

func newDatabase(ctx context.Context) (*database, error) {
	server, err := pglocal.Start(ctx, pglocal.Config{Settings: settings})
	if err != nil {
		return nil, err
	}
	d := &database{server: server}
	if err := d.create(ctx); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *database) create(ctx context.Context) error {
	if _, err := migrations.Up(ctx, migrations.Config{ConnString: d.url(), Schema: schema}); err != nil {
		return err
	}
	err := d.do(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, createSQL(), pgx.QueryExecModeSimpleProtocol)
		return err
	})
	if err != nil {
		return err
	}
	return d.createTarget(ctx)
}

// primary returns the server that is it now.
func (d *database) primary() *pglocal.Server {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.server
}

// replace makes another server the primary, and returns the old one.
func (d *database) replace(server *pglocal.Server) *pglocal.Server {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.server
	d.server = server
	return old
}

func (d *database) url() string { return d.primary().URL() }

// addr is host and port of the primary.
func (d *database) addr() string { return fmt.Sprintf("127.0.0.1:%d", d.primary().Port()) }

// through is the address of the database by way of a link, as a slot's daemon uses it.
func (d *database) through(addr string, s slot) (string, error) {
	u, err := url.Parse(d.url())
	if err != nil {
		return "", err
	}
	u.Host = addr
	query := u.Query()
	if _, pool := s.conns(); pool > 0 {
		query.Set("pool_max_conns", strconv.Itoa(pool))
	}
	u.RawQuery = query.Encode()
	if s.role != "" {
		u.User = url.UserPassword(s.role, s.role)
	}
	return u.String(), nil
}

const connectTimeout = 5 * time.Second

// connect opens a session. The caller closes it.
func (d *database) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(d.url())
	if err != nil {
		return nil, err
	}
	config.ConnectTimeout = connectTimeout
	config.RuntimeParams["application_name"] = "torture"
	return pgx.ConnectConfig(ctx, config)
}

// do runs an errand on a session of its own, since those that were there may be gone.
func (d *database) do(ctx context.Context, errand func(*pgx.Conn) error) error {
	conn, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return errand(conn)
}

// insist is do, again and again while the database is away. In the end it returns why it was away before the time was up.
func (d *database) insist(ctx context.Context, errand func(*pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := d.do(ctx, errand)
		if err == nil || !pause(ctx, 50*time.Millisecond) {
			return err
		}
	}
}

func (d *database) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return d.primary().Stop(ctx)
}

// pause returns after d, or when ctx ends; then false.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
