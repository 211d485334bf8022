package main

import (
	"context"
	"net/http"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/plan"
)

// refusalWorkload is receivers that refuse the sender and not a record: a secret that was rotated, an address that is gone.
// Every process must halt then, and none may put records aside.
func refusalWorkload() workload {
	w := workload{
		kinds:  map[history.Kind]kind{history.AnswerRefusesUs: refuseUs},
		faults: map[string][]plan.Chance{},
	}
	for _, s := range commonWorkload().sources {
		for _, p := range s.readers() {
			if p.Sink == history.Webhook {
				w.faults[p.Name] = []plan.Chance{{Weight: 3, Kind: history.AnswerRefusesUs, Min: time.Second, Max: 3 * time.Second}}
			}
		}
	}
	return w
}

// refusals are answers that speak of the sender.
func refusals() []int {
	return []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone, http.StatusPaymentRequired}
}

// refuseUs has all attempts of a process refused for as long as the fault lasts. Then somebody corrects what was wrong, and
// retries.
func refuseUs(ctx context.Context, f *field, fault plan.Fault, begin func()) error {
	if err := outage(ctx, f, fault, begin); err != nil {
		return err
	}
	f.decideOnHalt(ctx, fault, retry)
	return nil
}
