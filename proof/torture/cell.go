package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// cell is a database whose servers are replaced, with its producer, its daemons, its receivers and an operator who does what
// the handbook says. It has a history and invariants of its own (I14 to I17), so that those of the field stay as strict as
// they are: here commits are lost, and ids come again.
type cell struct {
	clock     history.Clock
	metronome *metronome
	histories string // directory
	log       *slog.Logger
	random    *rand.Rand
	program   string
	dir       *throwaway.Dir // of the daemons

	database  *database    // the primary
	servers   atomic.Int64 // that were it
	books     *books
	address   *link.Link // of the database, for producer and operator
	links     []*link.Link
	workers   []*worker
	receivers []cellReceiver
	notes     *history.Log // of the producer
	keys      keys
	lazy      atomic.Bool       // producers do not wait for the disk
	receipts  []history.Receipt // of what was emptied

	mu      sync.Mutex
	changes []history.Change
}

// newCell starts everything but producer, operator and faults. The caller closes the cell.
func newCell(ctx context.Context, c campaign, fail func(error)) (*cell, error) {
	x := &cell{
		clock: history.NewClock(), histories: filepath.Join(c.histories, history.CellDir), log: c.log,
		random: rand.New(rand.NewPCG(c.seed, 2000)), books: newBooks(),
	}
	x.servers.Add(1)
	if err := x.open(ctx, c, fail); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

func (c *cell) open(ctx context.Context, run campaign, fail func(error)) (err error) {
	if err := os.Mkdir(c.histories, 0o755); err != nil {
		return err
	}
	if c.metronome, err = startMetronome(c.clock, c.histories); err != nil {
		return err
	}
	if c.notes, err = history.Create(c.histories, history.CellProducerActor); err != nil {
		return err
	}
	if c.database, err = openCellDatabase(ctx); err != nil {
		return err
	}
	if c.receivers, err = openCellReceivers(ctx, c.clock, run.length); err != nil {
		return err
	}
	if c.dir, err = throwaway.New(ctx); err != nil {
		return err
	}
	if c.program, err = c.dir.Executable(run.program); err != nil {
		return err
	}
	if c.address, err = c.equip(desk); err != nil {
		return err
	}
	for _, name := range []string{"R", "S"} {
		w := &worker{name: name, dir: c.dir, program: c.program, failed: fail, dismiss: map[*throwaway.Process]bool{}}
		if w.database, err = c.equip(name); err != nil {
			return err
		}
		c.workers = append(c.workers, w)
		if err := w.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// server is the number of the primary.
func (c *cell) server() int { return int(c.servers.Load()) }

// equip writes the configuration of a daemon, or of the operator, whose database is behind a link.
func (c *cell) equip(name string) (*link.Link, error) {
	l, err := link.Listen(c.database.addr())
	if err != nil {
		return nil, err
	}
	c.links = append(c.links, l)
	address, err := c.database.through(l.Addr(), slot{})
	if err != nil {
		return nil, err
	}
	file := "database-" + name
	text := cellConfiguration(c.receivers, c.dir.Path(file))
	return l, errors.Join(c.dir.WriteFile(file, []byte(address)), c.dir.WriteFile(name+".yaml", []byte(text)))
}

// lead has daemons, producer and operator find a server behind the address of the database.
func (c *cell) lead(to string, with ...func(*link.Link)) {
	for _, l := range c.links {
		l.Retarget(to)
		for _, do := range with {
			do(l)
		}
	}
}

// cutOff ends the connections that a link has.
func cutOff(l *link.Link) { l.Cut() }

// away takes the database off the network, for all but the cell itself.
func (c *cell) away() {
	for _, l := range c.links {
		l.Away()
	}
}

// run has the producer commit while one fault follows the other, waits until all is delivered, and leaves the histories.
func (c *cell) run(ctx context.Context, faults []cellFault, until func() bool) (err error) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	var group, producing sync.WaitGroup
	produce, enough := context.WithCancel(working)
	defer enough()
	group.Go(func() { c.operate(working) })
	producing.Go(func() { c.produce(produce, c.address.Addr()) })
	err = c.strike(ctx, faults, until)
	enough()
	producing.Wait()
	if err == nil {
		c.log.Info("the last fault of the cell is over: waiting for its processes to catch up")
		err = c.conclude(ctx)
	}
	stop()
	group.Wait()
	return errors.Join(err, c.notes.Close(), context.Cause(ctx))
}

// strike inflicts the faults one after another, each on what the one before left behind: all of them once, and again in
// another order until it is time.
func (c *cell) strike(ctx context.Context, faults []cellFault, until func() bool) error {
	for {
		for _, i := range c.random.Perm(len(faults)) {
			if err := c.inflict(ctx, faults[i]); err != nil {
				return fmt.Errorf("inflict %q on the cell: %w", faults[i].kind, err)
			}
		}
		if until() {
			return nil
		}
	}
}

// patience is how long the processes may take after a change until they have delivered what there was.
const patience = 60 * time.Second

func (c *cell) inflict(ctx context.Context, fault cellFault) error {
	if err := c.warmUp(ctx); err != nil {
		return err
	}
	change := history.Change{Kind: fault.kind, From: c.clock.Now(), Patience: patience}
	c.log.Info("cell", "fault", string(fault.kind), "server", c.server())
	if err := fault.strike(ctx, c, &change); err != nil {
		return err
	}
	return c.outlast(ctx, change)
}

// outlast waits for the processes after a change, and notes it.
func (c *cell) outlast(ctx context.Context, change history.Change) error {
	change.Server, change.To = c.server(), c.clock.Now()
	err := c.recover(ctx, &change)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes = append(c.changes, change)
	return err
}

// close ends what still runs, and removes it. A cell may be half open.
func (c *cell) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var faults []error
	for _, w := range c.workers {
		if w.process != nil {
			faults = append(faults, c.keepLog(w), w.kill(ctx))
		}
	}
	for _, l := range c.links {
		l.Close()
	}
	if c.dir != nil {
		faults = append(faults, c.dir.Close(ctx))
	}
	for _, r := range c.receivers {
		faults = append(faults, r.close(ctx))
	}
	if c.metronome != nil {
		faults = append(faults, c.metronome.close())
	}
	if c.database != nil {
		faults = append(faults, c.database.close())
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("remove what the cell made: %w", err)
	}
	return nil
}

func (c *cell) keepLog(w *worker) error {
	return os.WriteFile(filepath.Join(c.histories, w.log()), w.text(0), 0o644)
}
