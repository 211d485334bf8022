package daemon_test

import (
	"sync"
	"testing"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

// patient is a sink whose receiver is silent until all sinks are being closed.
type patient struct{ begun *sync.WaitGroup }

func (p patient) Close() error {
	p.begun.Done()
	p.begun.Wait()
	return nil
}

func TestRun_TheSinksOfManyProcessesAreClosedAtOnce(t *testing.T) {
	t.Parallel()
	var begun sync.WaitGroup
	begun.Add(3)
	closed := make(chan struct{})
	go func() {
		daemon.CloseAll(patient{&begun}, patient{&begun}, patient{&begun})
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(30 * time.Second):
		t.Fatal("one sink waits for another")
	}
}
