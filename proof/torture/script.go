package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// script is what the receiver does with one attempt.
type script struct {
	fault      int
	applies    bool
	delay      time.Duration // before the answer, beyond what receivers take anyhow
	status     int           // 0 = the connection is reset
	retryAfter int           // in seconds
	lasts      bool          // for the attempts behind it too, until it is called off
	taken      chan struct{} // closed when an attempt has met it
	once       sync.Once     // closes it
}

// never is longer than any attempt waits.
const never = time.Hour

var (
	plain   = &script{applies: true, status: http.StatusNoContent}
	refusal = &script{status: http.StatusConflict}
)

// newScript returns the script of a kind of fault.
func newScript(kind history.Kind, fault int, choice uint64) *script {
	s := &script{status: http.StatusInternalServerError}
	switch kind {
	case history.AnswerLate:
		s = &script{applies: true, status: http.StatusNoContent, delay: webhookTimeout + time.Duration(choice%700)*time.Millisecond}
	case history.AnswerNever:
		s = &script{applies: true, delay: never}
	case history.AnswerMute:
		s = &script{delay: never}
	case history.AnswerLie:
		s.applies = true
	case history.AnswerBusy:
		s = &script{status: http.StatusTooManyRequests, retryAfter: int(1 + choice%2)}
	case history.AnswerReset:
		s = &script{applies: true}
	case history.AnswerPoison, history.OperatorSkip, history.AnswerUnnoticed, history.AnswerAside, history.OperatorReplay,
		history.OperatorsSkip, history.OperatorsDiffer, history.OperatorsReplay, history.OperatorUncertain:
		s = &script{status: http.StatusUnprocessableEntity}
	case history.AnswerRedirect:
		s = &script{status: []int{http.StatusFound, http.StatusTemporaryRedirect}[choice%2]}
	case history.AnswerRefusesUs:
		s = &script{status: refusals()[choice%uint64(len(refusals()))], lasts: true}
	case history.Outage:
		s = &script{status: http.StatusServiceUnavailable, lasts: true}
	}
	s.fault, s.taken = fault, make(chan struct{})
	return s
}

// meet says that an attempt has met it.
func (s *script) meet() { s.once.Do(func() { close(s.taken) }) }

// answer is a script on its way to an attempt.
type answer struct {
	*script
	attempt int
	think   time.Duration
}

// await returns the status when it is time; false if whoever asked is gone by then.
func (a answer) await(ctx context.Context) (status int, ok bool) {
	if a.delay+a.think == 0 {
		return a.status, true
	}
	timer := time.NewTimer(a.delay + a.think)
	defer timer.Stop()
	select {
	case <-timer.C:
		return a.status, true
	case <-ctx.Done():
		return 0, false
	}
}
