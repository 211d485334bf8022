package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// field is everything that one run needs.
type field struct {
	clock     history.Clock
	metronome *metronome
	histories string // directory
	database  *database
	receiver  *receiver
	brokers   map[history.SinkKind]messageBroker // by the sink of those that publish there
	receivers map[string]*link.Link              // by process
	dir       *throwaway.Dir                     // of the workers
	links     []*link.Link                       // to the database
	workers   map[string]*worker
	desk      *worker // where an operator sits: no daemon runs there, and nothing is broken

	receiverLog *history.Log
	holds       *history.Log
	unnoticed   sync.Map // processes whose halt nobody shall notice for a while
}

// newField starts everything but producers and faults. The caller closes the field.
func newField(ctx context.Context, program, histories string, fail func(error)) (*field, error) {
	f := &field{
		clock: history.NewClock(), histories: histories,
		brokers: map[history.SinkKind]messageBroker{}, receivers: map[string]*link.Link{}, workers: map[string]*worker{},
	}
	if err := f.open(ctx, program, fail); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *field) open(ctx context.Context, program string, fail func(error)) (err error) {
	if f.metronome, err = startMetronome(f.clock, f.histories); err != nil {
		return err
	}
	if f.database, err = newDatabase(ctx); err != nil {
		return err
	}
	if err := f.openBrokers(ctx); err != nil {
		return err
	}
	if err := f.openReceiver(); err != nil {
		return err
	}
	if f.dir, err = throwaway.New(ctx); err != nil {
		return err
	}
	if program, err = f.dir.Executable(program); err != nil {
		return err
	}
	if f.desk, err = f.equip(slot{name: desk, role: operatorRole}, program, fail); err != nil {
		return err
	}
	if err := f.createRoles(ctx); err != nil {
		return err
	}
	for _, s := range slots() {
		if f.workers[s.name], err = f.equip(s, program, fail); err != nil {
			return err
		}
		if err := f.workers[s.name].start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (f *field) openReceiver() (err error) {
	if f.receiverLog, err = history.Create(f.histories, history.ReceiverActor); err != nil {
		return err
	}
	if f.holds, err = history.Create(f.histories, history.HoldsActor); err != nil {
		return err
	}
	if f.receiver, err = newReceiver(f.clock, f.receiverLog); err != nil {
		return err
	}
	for _, p := range processes() {
		to := f.receiver.addr
		if p.Sink == history.Remote {
			to = f.database.addr()
		}
		if b := f.brokers[p.Sink]; b != nil {
			to = b.Addr()
		}
		if f.receivers[p.Name], err = link.Listen(to); err != nil {
			return err
		}
	}
	return nil
}

// equip prepares a worker behind a link of its own.
func (f *field) equip(s slot, program string, fail func(error)) (*worker, error) {
	w := &worker{name: s.name, dir: f.dir, program: program, failed: fail, dismiss: map[*throwaway.Process]bool{}}
	var err error
	if w.database, err = link.Listen(f.database.addr()); err != nil {
		return nil, err
	}
	f.links = append(f.links, w.database)
	address, err := f.database.through(w.database.Addr(), s)
	if err != nil {
		return nil, err
	}
	file := "database-" + s.name
	text := configuration(s, f.dir.Path(file), func(process string) string { return f.receivers[process].Addr() })
	return w, errors.Join(f.dir.WriteFile(file, []byte(address)), f.dir.WriteFile(w.config(), []byte(text)))
}

// keepLogs copies the workers' logs to the histories.
func (f *field) keepLogs() error {
	var faults []error
	for _, w := range f.workers {
		text, err := os.ReadFile(f.dir.Path(w.log()))
		if err == nil {
			err = os.WriteFile(filepath.Join(f.histories, w.log()), text, 0o644)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// dismiss ends the workers in good order.
func (f *field) dismiss(ctx context.Context) error {
	var faults []error
	for _, w := range f.workers {
		faults = append(faults, w.terminate(ctx))
	}
	return errors.Join(faults...)
}

// close ends what still runs, at once, and removes it. A field may be half open.
func (f *field) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var faults []error
	for _, w := range f.workers {
		if w != nil && w.process != nil {
			faults = append(faults, w.kill(ctx))
		}
	}
	for _, l := range f.links {
		l.Close()
	}
	if f.dir != nil {
		faults = append(faults, f.dir.Close(ctx))
	}
	for _, l := range f.receivers {
		l.Close()
	}
	if f.receiver != nil {
		faults = append(faults, f.receiver.close())
	}
	for _, b := range f.brokers {
		faults = append(faults, b.Close(ctx))
	}
	if f.metronome != nil {
		faults = append(faults, f.metronome.close())
	}
	if f.database != nil {
		faults = append(faults, f.database.close())
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("remove what the torture made: %w", err)
	}
	return nil
}
