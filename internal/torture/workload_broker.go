package main

import "github.com/ordered-dispatcher/ordered-dispatcher/internal/torture/history"

// brokerWorkload is the processes that publish to message brokers.
func brokerWorkload() workload {
	return workload{processes: []process{
		{Process: history.Process{Name: "clock_queue", Table: "clock", Sink: history.Queue, Checkpoint: 1}},
		{Process: history.Process{Name: "ids_queue", Table: "ids", Sink: history.Queue, Checkpoint: 7}},
		{Process: history.Process{Name: "clock_stream", Table: "clock", Sink: history.Stream, Checkpoint: 7}},
	}}
}
