package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// written records what a link has put on the wire: the requests with records, and those that end a transaction. The
// client sends both again by itself, and a refusal of the second request proves nothing about the first. The client
// does not report how often it asked.
type written struct {
	lost atomic.Int64 // requests with records whose answer was lost
	cut  atomic.Int64 // those, and ends of transactions, whose connection the other side ended

	// ended is true once a connection of the link was closed.
	ended atomic.Bool

	mu sync.Mutex
	// released is signalled when held or over changes.
	released *sync.Cond
	// held is true while the client does not have the whole window yet: nothing of it is written.
	held bool
	// cancel ends the window.
	cancel context.CancelCauseFunc
	// sent is how often each batch of this window went out.
	sent map[batchSent]int
	// producer is the producer of the window's first batch.
	producer *producer
	// ends is how often the end of its transaction was asked for.
	ends int
	// last is the connection over which each partition was last written to, in any window.
	last map[partitionSent]*watched
	// elsewhere is true if a request of this window went over another connection than the last one.
	elsewhere bool
	// refused is when a connection could not be made for the first time in this window; zero: all were made.
	refused time.Time
	// over is true once the window has been judged: no record of it is written any more.
	over bool
}

// partitionSent is a partition as a request names it: by the topic's name before Kafka 4, by its id from then on.
type partitionSent struct {
	topic     string
	id        topicID
	partition int32
}

// endOfTransaction is the partition that stands for the end of a transaction: that goes to a broker, and to no
// partition of it.
var endOfTransaction = partitionSent{partition: -1}

// OnBrokerE2E is called by the client at the end of each request, with an answer or without.
func (w *written) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e kgo.BrokerE2E) {
	err := e.Err()
	produce := key == kmsg.Produce.Int16()
	if !produce && key != kmsg.EndTxn.Int16() || e.BytesWritten == 0 || err == nil {
		return
	}
	if produce {
		w.lost.Add(1)
	}
	var silent interface{ Timeout() bool }
	ours := errors.Is(err, context.Canceled) || errors.Is(err, kgo.ErrClientClosed) || errors.Is(err, net.ErrClosed)
	if !ours && !(errors.As(err, &silent) && silent.Timeout()) {
		w.cut.Add(1)
	}
}

// begin forgets the requests of earlier windows, and holds the next window back until release.
func (w *written) begin(cancel context.CancelCauseFunc) {
	w.lost.Store(0)
	w.cut.Store(0)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.released = sync.NewCond(&w.mu)
	w.held, w.cancel = true, cancel
	w.sent, w.producer = map[batchSent]int{}, nil
	w.ends, w.over, w.elsewhere, w.refused = 0, false, false, time.Time{}
}

// release lets the window be written: the client has all of it.
func (w *written) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = false
	w.released.Broadcast()
}

// end returns the result of the window's requests. No request is added to the window after it.
func (w *written) end() requests {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.released.Broadcast()
	return requests{any: w.any(), lost: w.lost.Load() > 0, cut: w.cut.Load() > 0, ends: w.ends, again: w.again()}
}

// any reports whether a request with records was written.
func (w *written) any() bool {
	for _, n := range w.sent {
		if n > 0 {
			return true
		}
	}
	return false
}

// undialed notes that a connection could not be made. If nothing of a window was written, and the error has lasted,
// it ends the window. The client never gives up a batch that it has tried to write, even if none of the batch was
// written.
func (w *written) undialed(err error, patience time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.cancel == nil: // there is no window yet
	case w.refused.IsZero():
		w.refused = time.Now()
	case time.Since(w.refused) > patience && !w.any():
		w.cancel(err)
	}
}

// again reports whether a batch went to its partition more than once.
func (w *written) again() bool {
	again, named, numbered := false, false, false
	for p, n := range w.sent {
		again = again || n > 1
		if n > 0 {
			named, numbered = named || p.topic != "", numbered || p.topic == ""
		}
	}
	return again || named && numbered // brokers of two versions may have the same partition
}

// moved reports whether the client has gone on over another connection than before, or asked once more. Then another
// broker may answer, or an older copy of the first broker's data.
func (w *written) moved() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.elsewhere || w.ends > 1 || w.again()
}

// route notes the connection over which a request to a partition goes. Another connection than last time does not
// always mean that one was lost: the client closes an idle connection. The link looked, as it began, at any partition
// that it has not written to. That look holds for the connections that were made before any was closed: a broker that
// is set back ends its own.
func (w *written) route(p partitionSent, c *watched) {
	if w.last == nil {
		w.last = map[partitionSent]*watched{}
	}
	last, known := w.last[p]
	w.elsewhere = w.elsewhere || known && last != c || !known && c.later
	w.last[p] = c
}

// requests summarizes the requests of a window.
type requests struct {
	any   bool // at least one was written, in part
	lost  bool // the answer to one was lost
	cut   bool // because the other side ended the connection
	again bool // a batch went to its partition more than once
	ends  int  // how often the end of its transaction was asked for

	silent bool // the broker has not answered for a part of the window
}

// note records a request that is about to be written to a connection. It returns a function that takes this back if
// nothing was written. If ok is false, the request must not be written any more. A request with records waits until
// the client has the whole window.
func (w *written) note(c *watched, request []byte) (back func(), ok bool) {
	produce, read := readProduce(request)
	end := isOf(request, kmsg.EndTxn)
	w.mu.Lock()
	defer w.mu.Unlock()
	for produce != nil && w.held && !w.over {
		w.released.Wait()
	}
	switch {
	case !read:
		w.cancel(errUnread)
		return nil, false
	case produce == nil && !end:
		return func() {}, true
	case w.over:
		return nil, false
	case end:
		w.ends++
		w.route(endOfTransaction, c)
		return func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.ends--
		}, true
	case !whole(produce):
		return nil, false
	}
	batches := batchesOf(produce)
	switch renumbered := w.isRenumbered(batches); {
	case renumbered && produce.TransactionID != nil:
		w.cancel(errForgotten)
		return nil, false
	case renumbered && (w.lost.Load() > 0 || w.again()):
		w.cancel(errRenumbered)
		return nil, false
	}
	for _, b := range batches {
		w.route(b.partitionSent, c)
		w.sent[b]++
	}
	sent := w.sent
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, b := range batches {
			sent[b]--
		}
	}, true
}

// isRenumbered reports whether batches are under another producer id or epoch than the window's earlier batches.
func (w *written) isRenumbered(batches []batchSent) bool {
	for _, b := range batches {
		if w.producer == nil {
			w.producer = &b.producer
		}
		if b.producer != *w.producer {
			return true
		}
	}
	return false
}

// readProduce reads a request with records in the form in which the client writes it, whole. It returns nil for any
// other request. ok is false if the request has records that cannot be read.
func readProduce(request []byte) (produce *kmsg.ProduceRequest, ok bool) {
	if !isOf(request, kmsg.Produce) {
		return nil, true
	}
	produce = kmsg.NewPtrProduceRequest()
	produce.SetVersion(int16(binary.BigEndian.Uint16(request[6:])))
	body := request[header:]
	if name := int(int16(binary.BigEndian.Uint16(request[12:]))); name > 0 {
		body = body[min(name, len(body)):]
	}
	if produce.IsFlexible() {
		body = body[min(1, len(body)):] // no tags
	}
	return produce, produce.ReadFrom(body) == nil
}

// isOf reports whether a request is of a kind. The messages of a login may be shorter than any request.
func isOf(request []byte, kind kmsg.Key) bool {
	return len(request) >= header && binary.BigEndian.Uint16(request[4:]) == uint16(kind.Int16())
}

// header is the least size of a request before its body: length, key, version, number of the request, length of the
// client's name.
const header = 4 + 2 + 2 + 4 + 2
