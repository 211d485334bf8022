package daemon

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/privilege"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Sink is where the records of a process go: one of the kinds, as the file
// describes it.
type Sink interface {
	// Kind is its key below sink in the file.
	Kind() string
	// settings decide where the records go, by name. No secret is among them.
	settings() map[string]string
	// window is how many records may be on their way unacknowledged.
	window() int
	// dispatch makes the sink, under the guarantee it can keep, and says how long
	// one call of it may take; 0 means the processor's default.
	dispatch(d dependencies) (processor.Dispatch, time.Duration, error)
}

// confider is a Sink with settings that may hold a secret. The audit has a digest
// of each.
type confider interface {
	Sink
	confidential() map[string]string
}

// examined is a Sink that can be held against its receiver.
type examined interface {
	// examine tells d what is wrong. Its error is that of a receiver which could
	// not be asked.
	examine(ctx context.Context, d *doctor, process string) error
}

// sink holds the sink of a process against its receiver, where it can be.
func (d *doctor) sink(ctx context.Context, p Process) error {
	if sink, ok := p.Sink.(examined); ok {
		return sink.examine(ctx, d, p.Name)
	}
	return nil
}

// needy is a Sink that needs privileges in the database of the cursor.
type needy interface {
	needs(ctx context.Context, pool *pgxpool.Pool) (privilege.Needs, error)
}

// needyElsewhere is a Sink that needs privileges in another database.
type needyElsewhere interface {
	// needsElsewhere is the SQL to be run there, with what was found out of it.
	needsElsewhere(ctx context.Context) (string, error)
}

// sinkKinds are all kinds, in the order in which messages name them.
var sinkKinds = []struct {
	name  string
	parse func(yamlfile.Node) Sink
}{
	{webhookKind, parseWebhook},
	{rabbitmqKind, parseRabbitMQ},
	{natsKind, parseNATS},
	{kafkaKind, parseKafka},
	{pubsubKind, parsePubSub},
	{sqlKind, parseSQL},
	{execKind, parseExec},
	{stdoutKind, parseStdout},
}

// sinkNames are the keys below sink.
func sinkNames() []string {
	names := make([]string, len(sinkKinds))
	for i, kind := range sinkKinds {
		names[i] = kind.name
	}
	return names
}

// parseSink returns nil where the file has a fault.
func parseSink(n yamlfile.Node) (s Sink) {
	known := sinkNames()
	if n.IsScalar() {
		n.Fault(`here must be keys with values, as in sink: {stdout: {}} or sink: {webhook: {url: "https://…"}}: the keys here are %s`, strings.Join(known, ", "))
		return nil
	}
	m := n.Mapping(known...)
	switch names := m.Names(); {
	case !n.Sound():
		return nil
	case len(names) == 0:
		last := len(known) - 1
		n.Fault("there is no sink: write %s or %s", strings.Join(known[:last], ", "), known[last])
	case len(names) > 1:
		n.Fault("there are several sinks (%s): keep one", strings.Join(names, ", "))
	}
	for _, kind := range sinkKinds {
		m.Read(kind.name, func(n yamlfile.Node) { s = kind.parse(n) })
	}
	return s
}

// defaultWindowTime is the time-out of the sinks that bound each answer of a window, and what a call of them has at least:
// it may have many records.
const defaultWindowTime = 30 * time.Second

// windowTimeout is how long a call of such a sink may take. A record that is not answered ends it by the sink's own time-out.
func windowTimeout(timeout time.Duration) time.Duration {
	return min(max(cmp.Or(timeout, defaultWindowTime)+callMargin, defaultWindowTime), maxCallTime)
}

// oneAtATime is the window of a sink that sends a record when the one before it
// is acknowledged.
type oneAtATime struct{}

func (oneAtATime) window() int { return 1 }
