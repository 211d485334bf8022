package main

import (
	"fmt"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// tiedWorkload is rows that share their stamp with many others, of which some are committed later: the clock is rounded to a
// tenth of a second.
func tiedWorkload() workload {
	return workload{
		sources: []source{{name: "tied", order: "created_at", sql: fmt.Sprintf(sourceSQL, "tied", "clock_timestamp()::timestamptz(1)")}},
		processes: []process{
			{Process: history.Process{Name: "tied_plain", Table: "tied", Sink: history.Webhook, Checkpoint: 1}},
			{Process: history.Process{Name: "tied_seven", Table: "tied", Sink: history.Webhook, Checkpoint: 7}},
		},
	}
}
