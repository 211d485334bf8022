package main

import (
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

const sourceSQL = `
CREATE TABLE app.%[1]s (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	created_at timestamptz NOT NULL DEFAULT %[2]s,
	key        text NOT NULL,
	payload    json NOT NULL
);
CREATE INDEX ON app.%[1]s (created_at, id);`

const partitionedSQL = `
CREATE TABLE app.parts (
	id         bigint GENERATED ALWAYS AS IDENTITY,
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	key        text NOT NULL,
	payload    json NOT NULL,
	region     integer NOT NULL DEFAULT (random() * 2)::integer,
	PRIMARY KEY (created_at, id, region)
) PARTITION BY LIST (region);
CREATE TABLE app.parts_0 PARTITION OF app.parts FOR VALUES IN (0);
CREATE TABLE app.parts_1 PARTITION OF app.parts FOR VALUES IN (1);
CREATE TABLE app.parts_2 PARTITION OF app.parts FOR VALUES IN (2);`

// commonWorkload is four tables, a process of each sort for each of them, and three daemons that all run everything,
// with no rights that they do not need. One also has no connection that it does not need.
func commonWorkload() workload {
	w := workload{
		sources: []source{
			{name: "clock", order: "created_at", sql: fmt.Sprintf(sourceSQL, "clock", "clock_timestamp()")},
			{name: "now", order: "created_at", sql: fmt.Sprintf(sourceSQL, "now", "now()")},
			{name: "ids", order: "id", sql: fmt.Sprintf(sourceSQL, "ids", "clock_timestamp()")},
			{name: "parts", order: "created_at", sql: partitionedSQL},
		},
		writes: []write{
			{"rolled back", 4, nil, rolledBack},
			{"prepared", 4, nil, prepared},
			{"with a savepoint rolled back", 4, nil, withSavepoints},
			{"COPY", 4, nil, copied},
			{"several rows in one statement", 4, nil, severalAlone},
			{"a row alone", 12, nil, oneAlone},
			{"several statements", 8, nil, severalStatements},
		},
		slots: []slot{{name: "A", role: "worker"}, {name: "B", role: "worker"}, {name: "C", role: "worker", pool: fewest}},
	}
	for _, s := range w.sources {
		w.processes = append(w.processes, s.readers()...)
	}
	return w
}

// readers are a process of each sort.
func (s source) readers() []process {
	var all []process
	for _, p := range []history.Process{
		{Name: s.name + "_fenced", Sink: history.Webhook, Checkpoint: 1, Fencing: true, Signed: true},
		{Name: s.name + "_plain", Sink: history.Webhook, Checkpoint: 1},
		{Name: s.name + "_seven", Sink: history.Webhook, Checkpoint: 7},
		{Name: s.name + "_sql", Sink: history.SQL, Checkpoint: 3},
		s.letters(),
	} {
		p.Table = s.name
		all = append(all, process{Process: p})
	}
	return all
}

// letters is the process that puts aside what is refused for good: some have a limit besides, or a breaker.
func (s source) letters() history.Process {
	p := history.Process{Name: s.name + "_letters", Sink: history.Webhook, Checkpoint: 1, Letters: true}
	if s.name == "now" || s.name == "parts" {
		p.Limit = 50
	}
	if s.name == "ids" || s.name == "parts" {
		p.Attempts, p.Breaker, p.Cooldown = 3, 5, 300*time.Millisecond
	}
	return p
}
