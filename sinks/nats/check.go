package nats

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Finding is something about the stream that an operator should know.
type Finding struct {
	// Weakens means that a promise does not hold in the present state.
	Weakens bool
	Problem string
	Fix     string
}

// Check looks at the stream, over a connection of its own, and changes nothing. Its error explains why the records of
// a process cannot go there. A stream that is to be declared may be missing. It is then one stream for all processes
// that use it; others may name these processes.
func (s *Sink) Check(ctx context.Context, process string, others ...Beside) ([]Finding, error) {
	l, err := s.open(ctx)
	if err != nil {
		return nil, s.guard.Error(s.unsent(err))
	}
	defer l.connection.Close()
	ctx, cancel := l.within(ctx, s.config.Timeout)
	defer cancel()
	fence, err := s.fenceOf(processor.Delivery{Process: process})
	if err != nil {
		return nil, err
	}
	looking := s.config
	looking.exists = true
	err = l.find(ctx, looking, fence, "")
	if errors.Is(err, jetstream.ErrStreamNotFound) && s.config.Declare != nil {
		missing := Finding{Problem: fmt.Sprintf("there is no %s yet: the first delivery makes it", s)}
		return append([]Finding{missing}, s.beside(fence, others)...), nil
	}
	if err != nil {
		return nil, s.guard.Error(s.unsent(ended(ctx, err)))
	}
	full, err := l.filling(ctx, s.config, fence)
	if err != nil {
		return nil, s.guard.Error(s.unsent(ended(ctx, err)))
	}
	return append(findings(s.config.Stream, l.stream.CachedInfo().Config), full...), nil
}

func findings(name string, c jetstream.StreamConfig) []Finding {
	all := []Finding{{Problem: fmt.Sprintf("stream %q remembers a message's id for %v: a record that comes again later is a second message", name, c.Duplicates)}}
	if c.Storage == jetstream.MemoryStorage {
		all = append(all, Finding{true, fmt.Sprintf("stream %q is kept in memory: a restart of the server loses what was acknowledged", name), "use storage file"})
	}
	if c.PersistMode == jetstream.AsyncPersistMode {
		all = append(all, Finding{true, fmt.Sprintf("stream %q has persist_mode async: what was acknowledged is lost when the server is killed", name), "use persist_mode default"})
	}
	if c.Storage == jetstream.FileStorage && c.Replicas < 2 {
		all = append(all, Finding{Problem: fmt.Sprintf("stream %q has one replica, which is on disk only after the server's sync_interval (2m by default): "+
			"a power cut loses what was acknowledged", name), Fix: "set sync_interval: always in the server's jetstream section, or use 3 replicas"})
	}
	if c.Discard == jetstream.DiscardOld && (c.MaxMsgs > 0 || c.MaxBytes > 0) {
		all = append(all, Finding{true, fmt.Sprintf("stream %q discards its oldest messages when it is full, read or not", name), "use discard new, under which delivery waits"})
	}
	if c.MaxMsgsPerSubject > 0 && !c.DiscardNewPerSubject {
		all = append(all, Finding{true, fmt.Sprintf("stream %q keeps at most %d of the messages of one subject and discards the older ones, read or not, also with discard new", name, c.MaxMsgsPerSubject),
			"unless consumers want the last state of each subject alone: set discard_new_per_subject, under which delivery waits, with rollups allowed"})
	}
	return all
}
