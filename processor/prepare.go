package processor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// Prepare makes a record ready for the sink, as by decompressing its payload. It returns the record with another
// Type, other Headers or another Payload; the processor takes over nothing else, so order and dedup key stay. It
// must not change what the given record refers to. It words its errors, which the log and the cursor's row get:
// they must not quote the record.
//
//   - An error that is marked with Permanent is the record's: the record is unreadable, and fails for good.
//   - Any other error is an outage. The record is tried again, with the back-off of Config.Retry, as one that did
//     not reach its receiver. Nothing passes it.
//   - A panic is the record's.
//
// A record may be prepared several times, and before this worker has the right to deliver it.
type Prepare func(ctx context.Context, r Record) (Record, error)

// The worker prepares records together until they have that many bytes, or that time has passed.
const (
	prepareBytes = heavyBytes
	prepareTime  = 200 * time.Millisecond
)

// ready reports whether a record can go to the sink.
func (c *Config) ready(r *Record) bool { return c.Prepare == nil || r.row != nil }

// prepare makes a record ready, or gives it its Fault. An error is an outage.
func (c *Config) prepare(ctx context.Context, r *Record) error {
	row := *r
	if row.Fault != nil { // there is nothing to prepare
		r.row = &row
		return nil
	}
	made, err := c.prepared(ctx, row)
	switch {
	case err == nil:
		r.Type, r.Headers, r.Payload = made.Type, made.Headers, made.Payload
	case IsPermanent(err) && ctx.Err() == nil:
		r.Fault = err
	default:
		return Unreached(errors.New(err.Error())) // no call was made, so a time-out leaves no outcome open
	}
	r.row = &row
	return nil
}

// prepared calls Config.Prepare.
func (c *Config) prepared(ctx context.Context, r Record) (_ Record, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	defer func() {
		if value := recover(); value != nil {
			c.Logger.Error("preparing a record panicked", "process", c.Process, "stack", string(debug.Stack()))
			err = Permanent(fmt.Errorf("preparing it panicked: %s", r.Redact(fmt.Sprint(value))))
		}
	}()
	return c.Prepare(ctx, r)
}

// prepareAll makes records ready, from the first on, until enough returns true, they have prepareBytes together, or
// one cannot be made ready now. It returns why.
func (c *Config) prepareAll(ctx context.Context, records []Record, enough func() bool) error {
	bytes := 0
	for i := range records {
		if !c.ready(&records[i]) {
			if err := c.prepare(ctx, &records[i]); err != nil {
				return err
			}
		}
		if bytes += len(records[i].Payload); bytes >= prepareBytes || enough() {
			return nil
		}
	}
	return nil
}

// prepareNext makes the first of the records ready, and a few after it. An error is that of the first one. Outages of
// the others show when they are the first.
func (s *shift) prepareNext(records []Record) error {
	if s.config.ready(&records[0]) {
		return nil
	}
	if err := s.lease.Held(); err != nil {
		return err
	}
	began := time.Now()
	err := s.config.prepareAll(s.calls, records[:min(len(records), s.chunkLimit())], func() bool {
		return s.ending() || time.Since(began) > prepareTime
	})
	if s.config.ready(&records[0]) {
		return nil
	}
	return err
}

// prepareAhead makes records ready that were read ahead, until the worker needs them. What is left, and what fails, is
// for prepareNext. So it may be given up at any time.
func (s *shift) prepareAhead(ctx context.Context, r *pending) {
	ctx, cancel := context.WithDeadline(ctx, r.began.Add(s.bound()/2)) // not even a slow store makes the read overdue
	defer cancel()
	_ = s.config.prepareAll(ctx, r.page.Records, func() bool { return ctx.Err() != nil || r.wanted.Load() })
}

// readyOnes is how many of the records are ready, from the first on.
func (c *Config) readyOnes(records []Record) int {
	for i := range records {
		if !c.ready(&records[i]) {
			return i
		}
	}
	return len(records)
}

// letGo drops the payloads of records that are done with. Together the records of a page may be far larger than the
// page was when it was read.
func letGo(records []Record) {
	for i := range records {
		if r := &records[i]; r.row != nil {
			r.Payload, r.row.Payload = nil, nil
		}
	}
}

// Row is the record as the source read it, before Config.Prepare changed it.
func (r Record) Row() Record {
	if r.row == nil {
		return r
	}
	return *r.row
}

// letterClass is the class of a record's dead letter. A record that could not be prepared was read as a whole.
func (r Record) letterClass(class cursor.Class) cursor.Class {
	if class == cursor.ClassUnreadable && r.row != nil && r.row.Fault == nil {
		return cursor.ClassUnprepared
	}
	return class
}

// prepareAgain makes the record of a dead letter ready. The dead letter has the row, so it is prepared as it would be
// now.
func (s *shift) prepareAgain(r *Record) error {
	if s.config.Prepare == nil {
		return nil
	}
	if err := s.config.prepare(s.calls, r); err != nil {
		return err
	}
	return r.Fault
}
