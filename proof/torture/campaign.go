package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

// campaign is one run of one seed.
type campaign struct {
	seed      uint64
	length    time.Duration
	program   string // the built ordered-dispatcher
	histories string // directory
	log       *slog.Logger
	faults    string // of the cell, by their names; "" = all
}

// run breaks the field for as long as it is told to, and leaves the histories of all actors behind. An error means that
// there is nothing to judge.
func (c campaign) run(ctx context.Context) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	f, err := newField(ctx, c.program, c.histories, fail)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.keepLogs(), f.close()) }()
	w, err := f.watch(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(c.rage(ctx, f, fail), context.Cause(ctx)); err != nil {
		return errors.Join(err, w.close())
	}
	c.log.Info("the last fault is over: waiting for the processes to catch up")
	settled, err := f.settle(ctx)
	if err := errors.Join(err, w.close(), context.Cause(ctx)); err != nil {
		return err
	}
	ends, err := f.ends(ctx, settled)
	if err != nil {
		return err
	}
	return errors.Join(
		f.dismiss(ctx),
		f.receiver.close(),
		f.receiverLog.Close(),
		f.holds.Close(),
		f.testify(ctx),
		history.WriteAll(c.histories, history.EndActor, ends),
		history.WriteAll(c.histories, history.SettingActor, []history.Setting{setting(c.seed, c.length, f.clock.Drift())}))
}

// rage has producers commit while the nemesis strikes, and returns when both are done.
func (c campaign) rage(ctx context.Context, f *field, fail func(error)) error {
	faults := plan.Make(c.seed, c.length, shape())
	c.log.Info("the field is up", "seed", c.seed, "for", c.length, "faults planned", len(faults),
		"PostgreSQL", f.database.primary().Version(), "processes", len(processes()), "workers", len(workers()))
	stopProgress := c.progress(ctx, f)
	defer stopProgress()
	producing, stop := context.WithCancel(ctx)
	defer stop()
	market, err := openMarket(c, f)
	if err != nil {
		return err
	}
	market.start(producing, fail)
	market.group.Go(func() { f.doRounds(producing) })
	err = c.strike(ctx, f, market.slow, faults, fail)
	stop()
	return errors.Join(err, market.close(), context.Cause(ctx))
}

func (c campaign) strike(ctx context.Context, f *field, slow slow, faults []plan.Fault, fail func(error)) error {
	log, err := history.Create(c.histories, history.NemesisActor)
	if err != nil {
		return err
	}
	n := &nemesis{field: f, log: log, kinds: kinds(slow)}
	n.run(ctx, faults, c.length, fail)
	return log.Close()
}

// kinds are what the nemesis can do.
func kinds(slow slow) map[history.Kind]kind {
	all := map[history.Kind]kind{
		history.Kill:              replace((*worker).kill),
		history.Stop:              stop,
		history.Terminate:         replace((*worker).terminate),
		history.CutDatabase:       cut(toDatabase),
		history.StallDatabase:     stall(toDatabase),
		history.TearToDatabase:    tear(toDatabase, link.Client),
		history.TearFromDatabase:  tear(toDatabase, link.Server),
		history.TerminateBackend:  terminateBackend,
		history.Crash:             crash,
		history.Promote:           promote,
		history.StealLock:         stealLock,
		history.LockSinkTable:     lockSinkTable,
		history.CutReceiver:       cut(toReceiver),
		history.StallReceiver:     stall(toReceiver),
		history.TearToReceiver:    tear(toReceiver, link.Client),
		history.TearFromReceiver:  tear(toReceiver, link.Server),
		history.KillBroker:        killBroker,
		history.KillNATS:          killBroker,
		history.AnswerLate:        answerBy,
		history.AnswerNever:       answerBy,
		history.AnswerMute:        answerBy,
		history.AnswerError:       answerBy,
		history.AnswerLie:         answerBy,
		history.AnswerBusy:        answerBy,
		history.AnswerReset:       answerBy,
		history.AnswerPoison:      poison(retry),
		history.AnswerRedirect:    poison(retry),
		history.AnswerUnnoticed:   unnoticed,
		history.AnswerAside:       answerBy,
		history.OperatorReplay:    replayBy((*field).replayLetter),
		history.Outage:            outage,
		history.OperatorSkip:      poison(skip),
		history.OperatorPause:     pauseProcess,
		history.OperatorBack:      seek,
		history.OperatorForward:   seek,
		history.LongProducer:      slow.strike,
		history.ForgottenPrepared: slow.strike,
	}
	for _, w := range workloads() {
		maps.Copy(all, w.kinds)
	}
	return all
}

// market is the producers, with their histories.
type market struct {
	producers []*producer
	slow      slow
	group     sync.WaitGroup
}

func openMarket(c campaign, f *field) (*market, error) {
	m := &market{slow: slow{map[string]*producer{}}}
	open := func(name string, stream uint64) (*producer, error) {
		log, err := history.Create(c.histories, history.ProducerActor+name)
		return &producer{name: name, database: f.database, clock: f.clock, log: log, holds: f.holds, random: rand.New(rand.NewPCG(c.seed, stream))}, err
	}
	for i := range producers {
		p, err := open(fmt.Sprintf("p%d", i), uint64(1000+i))
		if err != nil {
			return nil, err
		}
		m.producers = append(m.producers, p)
	}
	for _, table := range shape().Tables {
		p, err := open("slow-"+table, 0)
		if err != nil {
			return nil, err
		}
		m.slow.producers[table] = p
	}
	return m, nil
}

func (m *market) start(ctx context.Context, fail func(error)) {
	for _, p := range m.producers {
		m.group.Go(func() {
			if err := p.run(ctx); err != nil {
				fail(err)
			}
		})
	}
}

// close waits for the producers, who were told to stop.
func (m *market) close() error {
	m.group.Wait()
	var faults []error
	for _, p := range m.producers {
		faults = append(faults, p.log.Close())
	}
	for _, p := range m.slow.producers {
		if p.conn != nil {
			_ = p.conn.Close(context.Background())
		}
		faults = append(faults, p.log.Close())
	}
	return errors.Join(faults...)
}

const progressInterval = 10 * time.Second

// progress tells what goes on until the returned function is called.
func (c campaign) progress(ctx context.Context, f *field) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		for pause(ctx, progressInterval) {
			received, applied := f.receiver.counts()
			c.log.Info("raging", "since", f.clock.Now().Round(time.Second), "received", received, "applied", applied)
		}
	})
	return func() {
		cancel()
		group.Wait()
	}
}
