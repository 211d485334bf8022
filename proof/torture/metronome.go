package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// metronome does a little work at regular times, and notes how long it took: so the judge knows how busy the machine was,
// and no verdict depends on that.
type metronome struct {
	clock history.Clock
	log   *history.Log
	echo  net.Listener
	stop  context.CancelFunc
	group sync.WaitGroup

	mu    sync.Mutex
	tempo history.Tempo
}

// startMetronome begins to beat. The caller closes it.
func startMetronome(clock history.Clock, histories string) (*metronome, error) {
	log, err := history.Create(histories, history.BeatsActor)
	if err != nil {
		return nil, err
	}
	m := &metronome{clock: clock, log: log}
	if m.echo, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, errors.Join(fmt.Errorf("start the metronome: %w", err), log.Close())
	}
	wire, err := net.Dial("tcp", m.echo.Addr().String())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the metronome: %w", err), m.echo.Close(), log.Close())
	}
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.group.Go(m.answer)
	m.group.Go(func() { m.beat(ctx, wire) })
	return m, nil
}

// answer sends back what comes, as a receiver does.
func (m *metronome) answer() {
	conn, err := m.echo.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.Copy(conn, conn)
}

func (m *metronome) beat(ctx context.Context, wire net.Conn) {
	defer wire.Close()
	for due := m.clock.Now() + history.BeatInterval; pause(ctx, due-m.clock.Now()); due = m.clock.Now() + history.BeatInterval {
		if work(wire) != nil {
			return
		}
		b := history.Beat{T: m.clock.Now()}
		b.Took = b.T - due
		m.log.Note(b)
		m.note(b)
	}
}

func (m *metronome) note(b history.Beat) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tempo.Add(b)
}

// work is what delivering a few records takes, about: some reckoning, and a message that is answered.
func work(wire net.Conn) error {
	var text [1 << 16]byte
	for range reckoning {
		sum := sha256.Sum256(text[:])
		copy(text[:], sum[:])
	}
	message := text[:16]
	if _, err := wire.Write(message); err != nil {
		return err
	}
	_, err := io.ReadFull(wire, message)
	return err
}

// reckoning takes about half of history.BeatNominal.
const reckoning = 200

// since is what the time since a moment is worth.
func (m *metronome) since(from time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tempo.Between(from, m.clock.Now())
}

func (m *metronome) close() error {
	m.stop()
	err := m.echo.Close()
	m.group.Wait()
	return errors.Join(err, m.log.Close())
}
