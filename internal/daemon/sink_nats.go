package daemon

import (
	"context"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
)

const natsKind = "nats"

// NATSSink publishes to a stream of JetStream, in a window of its own.
type NATSSink struct{ Config nats.Config }

func parseNATS(n yamlfile.Node) Sink {
	var c nats.Config
	m := n.Mapping("url", "user", "password", "token", "credentials", "nkey", "tls", "stream", "subject", "fence", "declare", "window", "timeout", "quote_answers")
	if n, ok := m.Need("url", `url: "nats://host:4222"`); ok {
		c.URL = n.Secret()
	}
	if n, ok := m.Need("stream", "stream: ORDERS"); ok {
		c.Stream = n.Text()
	}
	if n, ok := m.Need("subject", `subject: "orders.{{.ID}}"`); ok {
		c.Subject = n.Text()
	}
	m.Read("user", func(n yamlfile.Node) { c.User = n.Text() })
	m.Read("password", func(n yamlfile.Node) { c.Password = n.Secret() })
	m.Read("token", func(n yamlfile.Node) { c.Token = n.Secret() })
	m.Read("credentials", func(n yamlfile.Node) { c.Credentials = n.Text() })
	m.Read("nkey", func(n yamlfile.Node) { c.NKey = n.Text() })
	m.Read("tls", func(n yamlfile.Node) { c.TLS = parseTLS(n) })
	m.Read("fence", func(n yamlfile.Node) { c.Fence = n.Text() })
	m.Read("declare", func(n yamlfile.Node) { c.Declare = parseDeclare(n) })
	m.Read("window", func(n yamlfile.Node) { c.Window = n.Int(1, nats.MaxWindow) })
	m.Read("timeout", func(n yamlfile.Node) { c.Timeout = n.Duration(minCallTime, maxCallTime) })
	m.Read("quote_answers", func(n yamlfile.Node) { c.HideAnswers = n.OneOf("true", "false") == "false" })
	if n.Sound() {
		if _, err := nats.New(c); err != nil {
			n.Fault("%v", err)
		}
	}
	return NATSSink{c}
}

func parseDeclare(n yamlfile.Node) *nats.Declare {
	d := &nats.Declare{}
	m := n.Mapping("subjects", "replicas", "duplicate_window")
	if n, ok := m.Need("subjects", `subjects: "orders.>"`); ok {
		d.Subjects = strings.FieldsFunc(n.Text(), func(r rune) bool { return r == ',' || r == ' ' })
	}
	m.Read("replicas", func(n yamlfile.Node) { d.Replicas = n.Int(1, nats.MaxReplicas) })
	m.Read("duplicate_window", func(n yamlfile.Node) { d.DuplicateWindow = n.Duration(minCallTime, maxDuplicateWindow) })
	return d
}

const maxDuplicateWindow = 30 * 24 * time.Hour

// Kind is nats.
func (NATSSink) Kind() string { return natsKind }

func (s NATSSink) settings() map[string]string {
	return map[string]string{"target": s.Config.String(), "subject": s.Config.Subject, "fence": s.Config.Fence}
}

func (s NATSSink) window() int { return s.Config.Window }

func (s NATSSink) dispatch(d dependencies) (processor.Dispatch, time.Duration, error) {
	dispatch, err := openPipeline(d, s, func(s NATSSink) (*nats.Sink, error) { return nats.New(s.Config) })
	return dispatch, windowTimeout(s.Config.Timeout), err
}

// examine looks at the stream.
func (s NATSSink) examine(ctx context.Context, d *doctor, process string) error {
	sink, err := nats.New(s.Config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, receiverTime)
	defer cancel()
	findings, err := sink.Check(ctx, process, besideNATS(d.config, process)...)
	if err != nil {
		d.find(process, Refuse, "fix the sink or its stream as it says, then run doctor again", "%v", err)
		return nil
	}
	for _, f := range findings {
		severity := Note
		if f.Weakens {
			severity = Warn
		}
		d.find(process, severity, f.Fix, "%s", f.Problem)
	}
	return nil
}

// besideNATS are the other processes of the file that publish to streams.
func besideNATS(c Config, process string) (others []nats.Beside) {
	for _, p := range c.Processes {
		s, is := p.Sink.(NATSSink)
		if !is || p.Name == process {
			continue
		}
		if sink, err := nats.New(s.Config); err == nil { // parseNATS names the fault
			others = append(others, nats.Beside{Process: p.Name, Sink: sink})
		}
	}
	return others
}
