package stdout

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// reader is the other end of a pipe.
type reader struct {
	mu     sync.Mutex
	all    []byte
	silent chan struct{} // closed: nobody reads
	over   <-chan struct{}
}

func (r *reader) Write(p []byte) (int, error) {
	select {
	case <-r.silent:
		<-r.over // as a full pipe
		return 0, io.ErrClosedPipe
	default:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, p...)
	return len(p), nil
}

func (r *reader) received(t testing.TB) []sinktest.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := []sinktest.Message{}
	lines := json.NewDecoder(bytes.NewReader(r.all))
	for {
		var l struct {
			DedupKey string          `json:"dedup_key"`
			Payload  json.RawMessage `json:"payload"`
		}
		err := lines.Decode(&l)
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
		all = append(all, sinktest.Message{DedupKey: l.DedupKey, Payload: string(l.Payload)})
	}
}

// A pipe has no connection, and refuses nothing.
func TestSink_KeepsThePromisesOfAllSinks(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, func(t *testing.T) sinktest.Subject {
		over := make(chan struct{})
		t.Cleanup(func() { close(over) })
		r := &reader{silent: make(chan struct{}), over: over}
		another := func(t testing.TB, _ string) processor.BatchSink { return sinktest.One(newSink(t, r)) }
		return sinktest.Subject{
			Sink:     another(t, "sms"),
			Another:  another,
			Received: r.received,
			Silence:  func(testing.TB) { close(r.silent) },
			Empty: func(testing.TB) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.all = nil
			},
			Order:   true,
			Compact: true,
		}
	})
}
