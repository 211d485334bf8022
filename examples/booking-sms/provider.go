package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	failsAt   = 40 // SMS: from then on the provider is down for a while
	failsFor  = 10 // requests
	forgetsAt = 90 // SMS: this one is sent, and the answer is lost
)

// provider sends SMS. It knows a request that comes again by its key, as most providers do.
type provider struct {
	out io.Writer

	mu       sync.Mutex
	keys     map[string]bool
	texts    []string
	requests int
	failed   int
}

// ServeHTTP sends one SMS.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var message sms
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1000)).Decode(&message); err != nil {
		http.Error(w, "send an SMS as JSON", http.StatusBadRequest)
		return
	}
	if !p.take(r.Header.Get("Idempotency-Key"), message) {
		http.Error(w, "try later", http.StatusServiceUnavailable)
		return
	}
	if first, _ := p.sent(); len(first) == forgetsAt && r.Header.Get("Ordered-Attempt") == "1" {
		fmt.Fprintln(p.out, "the provider sends an SMS, and its answer is lost")
		panic(http.ErrAbortHandler)
	}
}

// take notes an SMS, once, and reports whether the provider is up.
func (p *provider) take(key string, message sms) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	if len(p.texts) == failsAt && p.failed < failsFor {
		if p.failed++; p.failed == 1 {
			fmt.Fprintln(p.out, "the provider is down")
		}
		return false
	}
	if p.keys == nil {
		p.keys = map[string]bool{}
	}
	if !p.keys[key] {
		p.keys[key] = true
		p.texts = append(p.texts, message.Text)
	}
	return true
}

// sent returns the texts of the SMS in their order, and how many requests there were.
func (p *provider) sent() (texts []string, requests int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.texts), p.requests
}

// wait waits until so many SMS are sent.
func (p *provider) wait(ctx context.Context, n int) error {
	for {
		if texts, _ := p.sent(); len(texts) >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
