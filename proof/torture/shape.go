package main

import (
	"fmt"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

const (
	schema = "dispatch" // of the cursor tables
	secret = "torture-torture-torture-torture"
)

// desk is what an operator's requests to receivers say in the place of a worker's name.
const desk = "desk"

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
CREATE FUNCTION app.audit_cursor() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
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
	for _, s := range sources() {
		b.WriteString(s.sql)
	}
	for _, p := range processes() {
		if p.Sink == history.SQL {
			fmt.Fprintf(&b, appliedSQL, p.Name)
		}
	}
	b.WriteString(auditSQL)
	for _, w := range workloads() {
		b.WriteString(w.sql)
	}
	return b.String()
}

// configuration is the file of a slot's daemon. receiver names the host and port of a process's receiver.
func configuration(s slot, databaseFile string, receiver func(process string) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "database: ${file:%s}\nschema: %s\nprocesses:\n", databaseFile, schema)
	for _, p := range configured() {
		if !s.run(p.Process) {
			continue
		}
		source := sourceOf(p.Name)
		fmt.Fprintf(&b, "  %s:\n    source: {table: app.%s, order: %s, columns: {key: key, payload: payload}%s}\n    start: beginning\n", p.Name, source.relation(), source.order, p.source)
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
		b.WriteString(p.keys + "    sink:\n" + sinkConfiguration(p.Process, s.name, receiver))
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
	if p.Sink == history.SQL || p.Sink == history.Remote {
		address := ""
		if p.Sink == history.Remote {
			address = fmt.Sprintf("\n        url: %q", targetURL(receiver(p.Name)))
		}
		return fmt.Sprintf(`      sql:%[2]s
        statement: >-
          INSERT INTO app.applied_%[1]s (key, position, sequence, hash)
          VALUES (@key, @position, @sequence, pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(@payload, 'UTF8')), 'hex'))
`, p.Name, address)
	}
	signed := ""
	if p.Signed {
		signed = ", secret: " + secret
	}
	return fmt.Sprintf("      webhook: {url: \"http://%s/%s/%s\", timeout: %v%s}\n", receiver(p.Name), p.Name, worker, webhookTimeout, signed)
}
