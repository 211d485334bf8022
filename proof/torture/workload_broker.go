package main

import "github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"

// brokerAttempts is more than the time-outs of a stalled link use up, and fewer than a broker that is killed would.
const brokerAttempts = 8

// brokerWorkload is the processes that publish to message brokers. Some would put a record aside. None ever is.
func brokerWorkload() workload {
	return workload{processes: []process{
		{Process: history.Process{Name: "clock_queue", Table: "clock", Sink: history.Queue, Checkpoint: 1, Letters: true, Attempts: brokerAttempts}},
		{Process: history.Process{Name: "ids_queue", Table: "ids", Sink: history.Queue, Checkpoint: 7}},
		{Process: history.Process{Name: "clock_stream", Table: "clock", Sink: history.Stream, Checkpoint: 7, Letters: true, Attempts: brokerAttempts}},
	}}
}
