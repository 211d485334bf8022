package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// webhookTimeout is what the workers are configured with.
const webhookTimeout = time.Second

// maxThink is how long the receivers of processes with a checkpoint above 1 take to answer, at most: long enough for
// something to happen between two of its records.
const maxThink = 20 * time.Millisecond

// receiver notes every attempt, applies what it is not told to leave, and answers by script. One lock is around all it
// notes, so its history is a total order.
type receiver struct {
	server    *http.Server
	addr      string
	clock     history.Clock
	log       *history.Log
	processes map[string]history.Process

	mu      sync.Mutex
	ids     int
	applied int
	epochs  map[string]int64
	scripts map[string]*script
}

// newReceiver listens on a free port of 127.0.0.1. The caller closes it.
func newReceiver(clock history.Clock, log *history.Log) (*receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the receiver: %w", err)
	}
	r := &receiver{
		addr: listener.Addr().String(), clock: clock, log: log,
		processes: map[string]history.Process{}, epochs: map[string]int64{}, scripts: map[string]*script{},
	}
	for _, p := range processes() {
		r.processes[p.Name] = p
	}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go r.server.Serve(listener)
	return r, nil
}

func (r *receiver) close() error { return r.server.Close() }

// arm has the next attempt of a process answered by script.
func (r *receiver) arm(process string, s *script) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scripts[process] = s
}

// disarm reports whether the script is still unused, and takes it back.
func (r *receiver) disarm(process string, s *script) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.scripts[process] != s {
		return false
	}
	delete(r.scripts, process)
	return true
}

// elsewhere is where redirects point. Whoever follows one is noted, for a process that there is not.
const elsewhere = "/elsewhere"

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path == elsewhere {
		r.take(history.Delivery{Process: elsewhere})
		w.WriteHeader(http.StatusNoContent)
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // torn: it never arrived
	}
	d, err := r.read(req, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s := r.take(d)
	status, ok := s.await(req.Context())
	switch {
	case !ok:
		panic(http.ErrAbortHandler)
	case status == 0:
		reset(w)
	default:
		r.note(history.Delivery{Act: history.Reply, ID: s.attempt, Status: status})
		switch status {
		case http.StatusTooManyRequests:
			w.Header().Set("Retry-After", strconv.Itoa(s.retryAfter))
		case http.StatusFound, http.StatusTemporaryRedirect:
			w.Header().Set("Location", "http://"+r.addr+elsewhere)
		}
		w.WriteHeader(status)
	}
}

// take notes an attempt and what is done with it, and returns how it is answered.
func (r *receiver) take(d history.Delivery) answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids++
	d.ID, d.Act = r.ids, history.Receive
	stale := d.Epoch < r.epochs[d.Process]
	r.epochs[d.Process] = max(d.Epoch, r.epochs[d.Process])
	a := answer{attempt: d.ID, script: plain}
	if s := r.scripts[d.Process]; s != nil && !stale {
		if !s.lasts {
			delete(r.scripts, d.Process)
		}
		s.meet()
		a.script, d.Fault = s, s.fault
	}
	if p := r.processes[d.Process]; p.Checkpoint > 1 && a.delay == 0 {
		a.think = rand.N(maxThink)
	}
	r.noteLocked(d)
	switch {
	case stale && r.processes[d.Process].Fencing:
		a.script = refusal
		r.noteLocked(history.Delivery{Act: history.Refuse, ID: d.ID})
	case a.applies:
		r.applied++
		r.noteLocked(history.Delivery{Act: history.Apply, ID: d.ID, N: r.applied})
	}
	return a
}

func (r *receiver) note(d history.Delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteLocked(d)
}

func (r *receiver) noteLocked(d history.Delivery) {
	d.T = r.clock.Now()
	r.log.Note(d)
}

// read takes a delivery out of a request, without any code of the sink that sent it.
func (r *receiver) read(req *http.Request, body []byte) (history.Delivery, error) {
	process, worker, _ := strings.Cut(strings.Trim(req.URL.Path, "/"), "/")
	p, ok := r.processes[process]
	if !ok || req.Method != http.MethodPost {
		return history.Delivery{}, fmt.Errorf("%s %s is nobody's", req.Method, req.URL.Path)
	}
	d := history.Delivery{
		Process: process, Worker: worker, Hash: digest(body),
		DedupKey: req.Header.Get("Idempotency-Key"), BadSign: p.Signed && !signedRight(req.Header, body),
	}
	for name, to := range map[string]*string{"Ordered-Key": &d.Key, "Ordered-Position": &d.Position} {
		text, err := url.PathUnescape(req.Header.Get(name))
		if err != nil || text == "" {
			return d, fmt.Errorf("header %s: %q", name, req.Header.Get(name))
		}
		*to = text
	}
	attempt := int64(0)
	for name, to := range map[string]*int64{"Ordered-Sequence": &d.Sequence, "Ordered-Epoch": &d.Epoch, "Ordered-Attempt": &attempt} {
		n, err := strconv.ParseInt(req.Header.Get(name), 10, 64)
		if err != nil {
			return d, fmt.Errorf("header %s: %w", name, err)
		}
		*to = n
	}
	d.Attempt = int(attempt)
	return d, nil
}

// signedRight checks a signature as Standard Webhooks has it.
func signedRight(header http.Header, body []byte) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%s.%s.%s", header.Get("Webhook-Id"), header.Get("Webhook-Timestamp"), body)
	return header.Get("Webhook-Signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// reset closes a connection so that the other side gets an error instead of an answer.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// counts are those of all attempts so far.
func (r *receiver) counts() (received, applied int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids, r.applied
}
