package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon/yamlfile"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/privilege"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// RemoteSQLSink runs statements in another database.
type RemoteSQLSink struct {
	oneAtATime
	Config sql.RemoteConfig
}

func parseRemoteSQL(n yamlfile.Node, m yamlfile.Mapping) Sink {
	var c sql.RemoteConfig
	m.Read("statement", func(n yamlfile.Node) {
		c.Statement = n.Text()
		c.Secrets = n.References()
		if _, err := sql.New(sql.Config{Statement: c.Statement}); err != nil && n.Sound() {
			n.Refuse(err)
		}
	})
	if n, ok := m.Need("url", `url: "postgres://user:${PASSWORD}@host:5432/database"; without it the sink is in the database of the cursor, and has a statement alone`); ok {
		c.URL = n.Secret()
	}
	m.Read("schema", func(n yamlfile.Node) { c.Schema = n.Text() })
	m.Read("rows", func(n yamlfile.Node) { c.RequireRow = requireRow(n) })
	m.Read("timeout", func(n yamlfile.Node) { c.Timeout = n.Duration(minCallTime, maxCallTime) })
	m.Read("quote_answers", func(n yamlfile.Node) { c.HideAnswers = n.OneOf("true", "false") == "false" })
	if n.Sound() {
		if _, err := sql.NewRemote(c); err != nil {
			n.Fault("%v", err)
		}
	}
	return RemoteSQLSink{Config: c}
}

// Kind is sql.
func (RemoteSQLSink) Kind() string { return sqlKind }

func (s RemoteSQLSink) settings() map[string]string {
	return map[string]string{"target": s.Config.String()}
}

// confidential: the statement may hold a secret.
func (s RemoteSQLSink) confidential() map[string]string {
	return map[string]string{"statement": s.Config.Statement}
}

// dispatch has the records of a checkpoint in one transaction of the target, and
// leaves the server the time to end a statement, which says more than the end of
// the call.
func (s RemoteSQLSink) dispatch(d dependencies) (processor.Dispatch, time.Duration, error) {
	dispatch, err := openPipeline(d, s, func(s RemoteSQLSink) (*sql.Remote, error) { return sql.NewRemote(s.Config) })
	timeout := s.Config.Timeout
	if timeout == 0 {
		timeout = defaultRemoteTime
	}
	return dispatch, min(timeout+callMargin, maxCallTime), err
}

const defaultRemoteTime = 30 * time.Second

// examine checks the target, what it says against the statements, and the right of
// its role.
func (s RemoteSQLSink) examine(ctx context.Context, d *doctor, process string) error {
	sink, err := sql.NewRemote(s.Config)
	if err != nil {
		return err
	}
	err = sink.Check(ctx)
	switch {
	case errors.Is(err, sql.ErrNoTables):
		d.find(process, Refuse, commented("in "+sink.String()+", as the owner of the schema:")+"\n"+sink.Tables(), "%v", err)
		return nil
	case err != nil && !denied(err):
		d.find(process, Refuse, "fix the sink's url or statement, or the target", "%v", err)
		return nil
	}
	lacking, lackingErr := sink.Lacking(ctx)
	for _, p := range lacking {
		d.find(process, Refuse, commented("in "+sink.String()+":")+"\n"+privilege.Grant(sink.Role(), p), "%s: role %s lacks %s on %s", sink, sink.Role(), p, p.Name)
	}
	switch {
	case len(lacking) > 0:
	case err != nil:
		d.find(process, Refuse, "let the role in there, as the owner: GRANT USAGE ON SCHEMA … TO "+quoted(sink.Role()), "%v", err)
	case denied(lackingErr):
		d.find(process, Note, "", "whether the role may run the sink's statement is not known: %v", lackingErr)
	default:
		return lackingErr
	}
	return nil
}

// needsElsewhere is the SQL for the target: its tables if they are missing, and
// what its role needs.
func (s RemoteSQLSink) needsElsewhere(ctx context.Context) (string, error) {
	sink, err := sql.NewRemote(s.Config)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "To be run in another place, %s, by the owner of what is named:\n", sink)
	err = sink.Check(ctx)
	if errors.Is(err, sql.ErrNoTables) {
		b.WriteString(sink.Tables() + "\n")
		err = nil
	}
	needs, needsErr := sink.Needs(ctx)
	for _, on := range privilege.ByObject(needs.Privileges) {
		b.WriteString(privilege.Grant(sink.Role(), on...) + ";\n")
	}
	if len(needs.BlindSpots) > 0 {
		fmt.Fprintf(&b, "Not looked into, so add what they need: %s.\n", strings.Join(needs.BlindSpots, ", "))
	}
	return b.String(), errors.Join(err, needsErr)
}
