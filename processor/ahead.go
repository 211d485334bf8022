package processor

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// A read takes several batches while records go out fast: then more records share the cost of a read before its
// first row.
const (
	readAheadTime    = 40 * time.Millisecond
	readAheadBatches = 16
)

// readLimit is how many records to read ahead after the given number were delivered in the given time: as many
// as go out in readAheadTime, between one and readAheadBatches batches.
func (s *shift) readLimit(delivered int, took time.Duration) int {
	batch := s.config.Batch
	return min(max(batch, int(int64(delivered)*int64(readAheadTime)/int64(took+1))), readAheadBatches*batch)
}

// heavyBytes is the payload from which a record is in memory alone. Two of that size at a time become four
// while one of them is copied, and eight with a garbage collector that waits until the heap has doubled.
const heavyBytes = 8 << 20

func heavy(records []Record) bool {
	for i := range records {
		if r := &records[i]; len(r.Payload) >= heavyBytes && (len(records) == 1 || r.row != nil) {
			return true
		}
	}
	return false
}

// readBehind reads the records after these once these are delivered, and not if they failed. It gives their
// memory back first.
func (s *shift) readBehind(records []Record, limit int) func(error) (Page, error) {
	after := records[len(records)-1].Position
	return func(failed error) (Page, error) {
		s.recycle(records)
		if failed != nil {
			return Page{}, failed
		}
		return s.await(s.begin(after, limit))
	}
}

// readAhead reads the records after these while these are delivered. The returned function waits for the read,
// and drops it if they failed. It gives the memory of the records back last: a source may take it only between
// two reads.
func (s *shift) readAhead(records []Record, limit int) func(error) (Page, error) {
	read := s.begin(records[len(records)-1].Position, limit)
	return func(failed error) (Page, error) {
		defer s.recycle(records)
		if failed != nil {
			s.drop(read)
			return Page{}, failed
		}
		return s.await(read)
	}
}

// recycle gives the memory of a delivered page back to the source.
func (s *shift) recycle(records []Record) {
	if r, ok := s.config.Source.(Recycler); ok {
		r.Recycle(records)
	}
}

// pending is a read that goes on in the background.
type pending struct {
	after  cursor.Position
	began  time.Time
	done   chan struct{}
	cancel context.CancelFunc
	wanted atomic.Bool // the worker waits for it
	page   Page        // once done
	err    error       // once done
}

// begin starts to read the records after a position.
func (s *shift) begin(after cursor.Position, limit int) *pending {
	ctx, cancel := context.WithTimeout(s.run, s.patience)
	r := &pending{after: after, began: time.Now(), done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(r.done)
		defer cancel()
		if r.page, r.err = s.reader.read(ctx, after, limit); r.err == nil {
			r.err = s.reader.onServer(s.lease, r.page)
		}
		if r.err == nil && s.config.Prepare != nil {
			s.prepareAhead(ctx, r)
		}
	}()
	return r
}

// drop waits until a read that is not needed any more is done, or overdue. The lease is given back already; a
// source allows only one reader at a time.
func (s *shift) drop(r *pending) {
	if !s.doneInTime(r) {
		r.cancel()
	}
	<-r.done
}

// bound is how long a worker waits for a read, from its beginning.
func (s *shift) bound() time.Duration { return s.config.Store.LeaseTimeout() / overdueFraction }

// doneInTime waits for a read until it is overdue, and reports whether it is done.
func (s *shift) doneInTime(r *pending) bool {
	r.wanted.Store(true)
	timer := time.NewTimer(max(0, s.bound()-time.Since(r.began)))
	defer timer.Stop()
	select {
	case <-r.done:
		return true
	case <-timer.C:
	}
	select {
	case <-r.done: // done at the same time
		return true
	default:
		return false
	}
}

// await waits for a read while the lease is held, until it is overdue. Then it releases the lease, for a worker
// whose reads are answered.
func (s *shift) await(r *pending) (Page, error) {
	if s.doneInTime(r) {
		s.reader.noteLog(r.page)
		return r.page, s.reader.ofServer(r.err)
	}
	hint := crowded(s.config.Store) // while the lease still counts
	s.lease.Release()
	r.cancel()
	<-r.done
	return Page{}, fmt.Errorf("read after position %q: %w (%v): this worker releases the lease, so that another worker can deliver%s", r.after, errOverdue, s.bound(), hint)
}
