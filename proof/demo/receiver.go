package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// receiver is the SMS service: it notes every delivery and acknowledges it. What it notes is judged later, so it
// refuses nothing but what it cannot read.
type receiver struct {
	server *http.Server
	url    string

	mu         sync.Mutex
	deliveries []delivery
	seen       map[int64]bool
	watches    []watch
}

// watch waits for the first delivery of a kind.
type watch struct {
	wanted  func(delivery) bool
	arrived chan delivery
	answer  <-chan struct{} // its answer waits until this is closed
}

// progress is how far the receiver has come.
type progress struct{ delivered, duplicates, epoch int64 }

const (
	maxBody       = 1 << 20
	headerTimeout = 10 * time.Second
)

// newReceiver listens on a free port of 127.0.0.1. The caller closes it.
func newReceiver() (*receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the SMS service: %w; does this machine let processes listen on loopback?", err)
	}
	r := &receiver{url: fmt.Sprintf("http://%s/sms", listener.Addr()), seen: map[int64]bool{}}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: headerTimeout}
	go r.server.Serve(listener)
	return r, nil
}

func (r *receiver) close() error { return r.server.Close() }

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	d, err := readDelivery(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, answer := range r.note(d) {
		select {
		case <-answer:
		case <-req.Context().Done(): // whoever sent it is gone
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// note takes the time under the lock, so that it grows from delivery to delivery.
func (r *receiver) note(d delivery) (answers []<-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d.At = time.Now()
	r.deliveries = append(r.deliveries, d)
	r.seen[d.Booking] = true
	waiting := r.watches[:0]
	for _, watch := range r.watches {
		if !watch.wanted(d) {
			waiting = append(waiting, watch)
			continue
		}
		watch.arrived <- d
		answers = append(answers, watch.answer)
	}
	r.watches = waiting
	return answers
}

// await returns a channel that gets the next delivery that is wanted.
func (r *receiver) await(wanted func(delivery) bool) <-chan delivery {
	answer := make(chan struct{})
	close(answer)
	return r.watch(wanted, answer)
}

// hold returns a channel that gets the next delivery. It is not answered before release is called.
func (r *receiver) hold() (next <-chan delivery, release func()) {
	answer := make(chan struct{})
	return r.watch(func(delivery) bool { return true }, answer), sync.OnceFunc(func() { close(answer) })
}

// arrival returns a channel that gets a delivery of this booking, even if it has arrived already.
func (r *receiver) arrival(id int64) <-chan delivery {
	arrived := r.await(func(d delivery) bool { return d.Booking == id })
	for _, d := range r.noted() {
		if d.Booking == id {
			past := make(chan delivery, 1)
			past <- d
			return past
		}
	}
	return arrived
}

func (r *receiver) watch(wanted func(delivery) bool, answer <-chan struct{}) <-chan delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	arrived := make(chan delivery, 1)
	r.watches = append(r.watches, watch{wanted, arrived, answer})
	return arrived
}

func (r *receiver) progress() progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := progress{delivered: int64(len(r.seen)), duplicates: int64(len(r.deliveries) - len(r.seen))}
	if len(r.deliveries) > 0 {
		p.epoch = r.deliveries[len(r.deliveries)-1].Epoch
	}
	return p
}

// noted returns all deliveries so far.
func (r *receiver) noted() []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]delivery(nil), r.deliveries...)
}

// readDelivery reads what the webhook sink sends: see its package comment.
func readDelivery(req *http.Request) (delivery, error) {
	position, positionErr := url.PathUnescape(req.Header.Get("Ordered-Position"))
	if position == "" && positionErr == nil {
		positionErr = errors.New("no header Ordered-Position")
	}
	sequence, sequenceErr := number(req, "Ordered-Sequence")
	epoch, epochErr := number(req, "Ordered-Epoch")
	b, bodyErr := readBooking(req)
	d := delivery{Booking: b.ID, Digest: b.digest(), Position: position, Sequence: sequence, Epoch: epoch}
	return d, errors.Join(positionErr, sequenceErr, epochErr, bodyErr)
}

func number(req *http.Request, header string) (int64, error) {
	n, err := strconv.ParseInt(req.Header.Get(header), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read header %s: %w", header, err)
	}
	return n, nil
}

func readBooking(req *http.Request) (b booking, err error) {
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(body, &b)
	}
	if err != nil {
		return booking{}, fmt.Errorf("read the booking: %w", err)
	}
	return b, nil
}

// receive waits for a delivery, or for the end of the run.
func receive(ctx context.Context, from <-chan delivery) (delivery, error) {
	select {
	case d := <-from:
		return d, nil
	case <-ctx.Done():
		return delivery{}, context.Cause(ctx)
	}
}
