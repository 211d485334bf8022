package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
)

const (
	processName = "booking_sms"
	configFile  = "dispatcher.yaml"
)

// pair is the two workers of one process, and the directory that they run in.
type pair struct {
	dir   *throwaway.Dir
	store *cursor.Store
	both  []*worker
}

// startPair starts the workers; one that ends unasked ends the run. The caller closes the pair.
func startPair(ctx context.Context, executable string, db *database, receiver string, fail func(error)) (*pair, error) {
	store, err := cursor.NewStore(db.pool, cursor.Config{Schema: db.schema})
	if err != nil {
		return nil, err
	}
	newDir := throwaway.New
	if db.server == nil { // the password in its files is the user's, and no other account's business
		newDir = throwaway.NewOwn
	}
	dir, err := newDir(ctx)
	if err != nil {
		return nil, fmt.Errorf("start the workers: %w", err)
	}
	c := &pair{dir: dir, store: store}
	if err := c.start(executable, db, receiver, fail); err != nil {
		return nil, errors.Join(fmt.Errorf("start the workers: %w", err), c.close())
	}
	return c, nil
}

func (c *pair) start(executable string, db *database, receiver string, fail func(error)) error {
	program, err := c.dir.Executable(executable)
	if err != nil {
		return err
	}
	if err := c.writeFiles(db, receiver); err != nil {
		return err
	}
	for _, name := range []string{"A", "B"} {
		w := &worker{name: name, dir: c.dir}
		// exec: the process that is killed must be the worker, not a shell in front of it.
		w.process, err = c.dir.Start(w.log(), "sh", "-c", `. ./environment && exec "$0" run -c `+configFile, program)
		if err != nil {
			return err
		}
		c.both = append(c.both, w)
		go w.watch(fail)
	}
	return nil
}

// config is what a user would write, with the address of the database in a file since it holds a password.
const config = `database: ${file:%[1]s}
schema: %[2]s
processes:
  %[3]s:
    source:
      table: %[2]s.bookings
      columns: {key: customer_id}
    start: beginning
    sink:
      webhook: {url: "%[4]s"}
`

func (c *pair) writeFiles(db *database, receiver string) error {
	environment, err := environment(db.url, os.Environ())
	if err != nil {
		return err
	}
	const databaseFile = "database-url"
	return errors.Join(
		c.dir.WriteFile(databaseFile, []byte(db.url)),
		c.dir.WriteFile("environment", []byte(environment)),
		c.dir.WriteFile(configFile, fmt.Appendf(nil, config, c.dir.Path(databaseFile), db.schema, processName, receiver)))
}

// environment gives the workers what throwaway keeps from its programs, and a DATABASE_URL may count on: PGSSLMODE and
// the like. User and password are those that we connect with: a password file may be out of the workers' reach.
func environment(address string, environ []string) (string, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return "", errors.New("the address of the database cannot be read") // openPool has read it
	}
	kept := slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		return !strings.HasPrefix(entry, "PG") && !strings.HasPrefix(entry, "HOME=")
	})
	kept = append(kept, "PGUSER="+config.User)
	if config.Password != "" {
		kept = append(kept, "PGPASSWORD="+config.Password)
	}
	var script strings.Builder
	for _, entry := range kept {
		name, value, _ := strings.Cut(entry, "=")
		fmt.Fprintf(&script, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	return script.String(), nil
}

// holding returns the worker that delivers under an epoch: the cursor's row names its process id.
func (c *pair) holding(ctx context.Context, epoch int64) (*worker, error) {
	row, err := c.store.Look(ctx, processName)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(row.Holder, ":")
	for _, w := range c.both {
		if int64(row.Epoch) == epoch && slices.Contains(parts, strconv.Itoa(w.process.Pid())) {
			return w, nil
		}
	}
	return nil, fmt.Errorf("find the worker of epoch %d: the cursor is held by %q in epoch %d", epoch, row.Holder, row.Epoch)
}

// other is the colleague of a worker.
func (c *pair) other(w *worker) *worker {
	if c.both[0] == w {
		return c.both[1]
	}
	return c.both[0]
}

// close ends what still runs, at once, and removes the directory.
func (c *pair) close() error {
	for _, w := range c.both {
		w.dismiss.Store(true)
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	return removed(c.dir.Close(ctx))
}

// stop ends the workers that are left as an operator would, and reports one that takes it badly.
func (c *pair) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	var faults []error
	for _, w := range c.both {
		if w.dismiss.Swap(true) {
			continue
		}
		err := w.process.Stop(ctx, syscall.SIGTERM)
		if err == nil {
			err = w.process.Err()
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("stop worker %s with SIGTERM: %w; %s", w.name, err, w.tail()))
		}
	}
	return errors.Join(faults...)
}
