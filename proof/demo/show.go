package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// show is one run, once everybody is there.
type show struct {
	screen  *screen
	db      *database
	sms     *receiver
	workers *pair
	market  *market
	began   time.Time
}

// run goes through the acts and returns what everybody noted.
func (s *show) run(ctx context.Context, config Config, fail func(error)) (h history, err error) {
	s.announce(config.Duration)
	s.began = time.Now()
	s.market = openMarket(ctx, s.db, fail)
	closeMarket := sync.OnceValue(s.market.close)
	defer closeMarket()
	stopWatching := s.watch(ctx, config.stall, fail)
	defer stopWatching()

	if err := s.until(ctx, config.Duration/2); err != nil {
		return h, err
	}
	k, err := s.crash(ctx)
	if err != nil {
		return h, err
	}
	if err := s.until(ctx, config.Duration); err != nil {
		return h, err
	}
	h.Kills, h.Log = []kill{k}, closeMarket()
	s.say("the producers stop")
	if h.Table, err = s.db.bookings(ctx); err != nil {
		return h, err
	}
	if err := s.drain(ctx, h.Table); err != nil {
		return h, err
	}
	stopWatching()
	s.say("the last booking has arrived; the worker that is left is told to stop")
	if err := s.workers.stop(ctx); err != nil {
		return h, err
	}
	h.Deliveries = s.sms.noted()
	return h, nil
}

// until waits for a time of the show.
func (s *show) until(ctx context.Context, elapsed time.Duration) error {
	return wait(ctx, elapsed-time.Since(s.began))
}

// crash kills the active worker while the receiver holds a delivery of its back, and waits for the other to take over.
func (s *show) crash(ctx context.Context) (kill, error) {
	next, release := s.sms.hold()
	defer release()
	held, err := receive(ctx, next)
	if err != nil {
		return kill{}, err
	}
	victim, err := s.workers.holding(ctx, held.Epoch)
	if err != nil {
		return kill{}, err
	}
	takeOver := s.sms.await(func(d delivery) bool { return d.Epoch > held.Epoch })
	k := kill{At: time.Now(), Worker: victim.name, Held: held}
	if err := victim.kill(ctx); err != nil {
		return kill{}, err
	}
	s.say("kill -9 %d, worker %s, with booking %d sent and not yet acknowledged", victim.process.Pid(), victim.name, held.Booking)
	first, err := receive(ctx, takeOver)
	if err != nil {
		return kill{}, err
	}
	s.say("worker %s takes over after %s, in epoch %d; nobody is restarted", s.workers.other(victim).name, short(first.At.Sub(k.At)), first.Epoch)
	return k, nil
}

// drain waits for the last booking of the table. Whatever has not arrived by then has been passed over, for the order
// lets nothing come behind it.
func (s *show) drain(ctx context.Context, table []booking) error {
	if len(table) == 0 {
		return nil
	}
	_, err := receive(ctx, s.sms.arrival(table[len(table)-1].ID))
	return err
}

// watch shows the progress, and ends the run if there is none, until the returned function is called.
func (s *show) watch(ctx context.Context, stall time.Duration, fail func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(s.screen.interval())
		defer ticker.Stop()
		var last progress
		moved := time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			now := s.progress()
			if now != last || s.waiting(now) == 0 {
				last, moved = now, time.Now()
			}
			if time.Since(moved) > stall {
				fail(s.stalled(now, stall))
			}
		}
	})
	return func() {
		cancel()
		group.Wait()
	}
}

func (s *show) stalled(p progress, stall time.Duration) error {
	err := fmt.Errorf("nothing was delivered for %v, though %d bookings wait", stall, s.waiting(p))
	for _, w := range s.workers.both {
		if !w.dismiss.Load() {
			err = fmt.Errorf("%w\nworker %s (process %d): %s", err, w.name, w.process.Pid(), w.tail())
		}
	}
	return fmt.Errorf("%w\nCorrect what the log names, then run the demo again", err)
}

func (s *show) waiting(p progress) int64 { return max(0, s.market.committed.Load()-p.delivered) }
