package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/torture/history"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/torture/plan"
)

const (
	schema = "dispatch" // of the cursor tables
	secret = "torture-torture-torture-torture"
)

// desk is what an operator's requests to receivers say in the place of a worker's name.
const desk = "desk"

// workers are the slots, each with a daemon that runs all processes.
var workers = []string{"A", "B", "C"}

// source is a table that producers write to.
type source struct {
	name  string
	order string
	sql   string
}

// position spells the position of a row as the source does, by SQL of our own.
func (s source) position() string {
	if s.order == "id" {
		return `'int:' || lpad(id::text, 20, '0')`
	}
	return `'at.int:' || to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z/"') || lpad(id::text, 20, '0')`
}

func (s source) columns() string {
	if s.order == "id" {
		return "id"
	}
	return "created_at, id"
}

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

var sources = []source{
	{name: "clock", order: "created_at", sql: fmt.Sprintf(sourceSQL, "clock", "clock_timestamp()")},
	{name: "now", order: "created_at", sql: fmt.Sprintf(sourceSQL, "now", "now()")},
	{name: "ids", order: "id", sql: fmt.Sprintf(sourceSQL, "ids", "clock_timestamp()")},
	{name: "parts", order: "created_at", sql: partitionedSQL},
}

// sourceOf is the table that a process reads.
func sourceOf(process string) source {
	for _, p := range processes() {
		for _, s := range sources {
			if p.Name == process && p.Table == s.name {
				return s
			}
		}
	}
	panic("no process is called " + process)
}

// processes are five for each table, and three that publish to brokers.
func processes() []history.Process {
	var all []history.Process
	for _, s := range sources {
		all = append(all,
			history.Process{Name: s.name + "_fenced", Table: s.name, Sink: history.Webhook, Checkpoint: 1, Fencing: true, Signed: true},
			history.Process{Name: s.name + "_plain", Table: s.name, Sink: history.Webhook, Checkpoint: 1},
			history.Process{Name: s.name + "_seven", Table: s.name, Sink: history.Webhook, Checkpoint: 7},
			history.Process{Name: s.name + "_sql", Table: s.name, Sink: history.SQL, Checkpoint: 3},
			s.letters())
	}
	return append(all,
		history.Process{Name: "clock_queue", Table: "clock", Sink: history.Queue, Checkpoint: 1},
		history.Process{Name: "ids_queue", Table: "ids", Sink: history.Queue, Checkpoint: 7},
		history.Process{Name: "clock_stream", Table: "clock", Sink: history.Stream, Checkpoint: 7})
}

// letters is the process that puts aside what is refused for good: some have a limit besides, or a breaker.
func (s source) letters() history.Process {
	p := history.Process{Name: s.name + "_letters", Table: s.name, Sink: history.Webhook, Checkpoint: 1, Letters: true}
	if s.name == "now" || s.name == "parts" {
		p.Limit = 50
	}
	if s.name == "ids" || s.name == "parts" {
		p.Attempts, p.Breaker, p.Cooldown = 3, 5, 300*time.Millisecond
	}
	return p
}

func shape() plan.Shape {
	s := plan.Shape{Workers: workers, Processes: processes()}
	for _, source := range sources {
		s.Tables = append(s.Tables, source.name)
	}
	return s
}

const auditSQL = `
CREATE TABLE app.cursor_audit (
	n            bigint GENERATED ALWAYS AS IDENTITY,
	at           timestamptz NOT NULL DEFAULT clock_timestamp(),
	tx           text NOT NULL DEFAULT pg_current_xact_id()::text,
	backend      integer NOT NULL DEFAULT pg_backend_pid(),
	process_name text NOT NULL,
	old          jsonb NOT NULL,
	new          jsonb NOT NULL
);
CREATE FUNCTION app.audit_cursor() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO app.cursor_audit (process_name, old, new) VALUES (NEW.process_name, to_jsonb(OLD), to_jsonb(NEW));
	RETURN NULL;
END
$$;
CREATE TRIGGER audit AFTER UPDATE ON dispatch.cursor FOR EACH ROW EXECUTE FUNCTION app.audit_cursor();`

// appliedSQL is the table of a sql sink. Nothing in it is unique: the judge counts.
const appliedSQL = `
CREATE TABLE app.applied_%s (
	n        bigint GENERATED ALWAYS AS IDENTITY,
	key      text NOT NULL,
	position text NOT NULL,
	sequence bigint NOT NULL,
	hash     text NOT NULL
);`

// createSQL makes all that is not the dispatcher's own.
func createSQL() string {
	var b strings.Builder
	b.WriteString("CREATE SCHEMA app;")
	for _, s := range sources {
		b.WriteString(s.sql)
	}
	for _, p := range processes() {
		if p.Sink == history.SQL {
			fmt.Fprintf(&b, appliedSQL, p.Name)
		}
	}
	b.WriteString(auditSQL)
	return b.String()
}

// configuration is the file of a worker's daemon. receiver tells the host and port of a process's receiver.
func configuration(worker, databaseFile string, receiver func(process string) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "database: ${file:%s}\nschema: %s\nprocesses:\n", databaseFile, schema)
	for _, p := range processes() {
		fmt.Fprintf(&b, "  %s:\n    source: {table: app.%s, order: %s, columns: {key: key, payload: payload}}\n", p.Name, p.Table, sourceOf(p.Name).order)
		fmt.Fprintf(&b, "    checkpoint: %d\n    retry: {initial: 20ms, max: 500ms, attempts: %d}\n", p.Checkpoint, p.Attempts)
		if p.Letters {
			b.WriteString("    on_poison: dead_letter\n")
		}
		if p.Limit > 0 {
			fmt.Fprintf(&b, "    limit: %d/s\n", p.Limit)
		}
		if p.Breaker > 0 {
			fmt.Fprintf(&b, "    breaker: {failures: %d, cooldown: %v}\n", p.Breaker, p.Cooldown)
		}
		b.WriteString("    sink:\n" + sinkConfiguration(p, worker, receiver))
	}
	return b.String()
}

func sinkConfiguration(p history.Process, worker string, receiver func(process string) string) string {
	if p.Sink == history.Queue {
		return fmt.Sprintf("      rabbitmq: {url: \"amqp://%s:%s@%s/\", routing_key: %s, timeout: %v}\n",
			broker.RabbitMQUser, broker.RabbitMQPassword, receiver(p.Name), p.Name, webhookTimeout)
	}
	if p.Sink == history.Stream {
		return fmt.Sprintf("      nats: {url: \"nats://%s\", user: %s, password: %s, stream: %[4]s, subject: %[4]s, "+
			"declare: {subjects: %[4]s, duplicate_window: %v}, window: %d, timeout: %v}\n",
			receiver(p.Name), broker.NATSUser, broker.NATSPassword, p.Name, duplicateWindow, p.Checkpoint, webhookTimeout)
	}
	if p.Sink == history.SQL {
		return fmt.Sprintf(`      sql:
        statement: >-
          INSERT INTO app.applied_%s (key, position, sequence, hash)
          VALUES (@key, @position, @sequence, encode(sha256(convert_to(@payload, 'UTF8')), 'hex'))
`, p.Name)
	}
	signed := ""
	if p.Signed {
		signed = ", secret: " + secret
	}
	return fmt.Sprintf("      webhook: {url: \"http://%s/%s/%s\", timeout: %v%s}\n", receiver(p.Name), p.Name, worker, webhookTimeout, signed)
}
