package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/link"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// longest is far more than all questions of a command wait for their answers: 10 s each.
const longest = 2 * time.Minute

// question is one that the database does not answer.
type question struct {
	text   string // of its SQL
	waited string // what its error says
	ask    func(context.Context, daemon.Config) error
}

// unanswered asks all questions at the same time, each over a network of its own that
// holds its answer up, and returns their errors. Each process has a name of its own.
func unanswered(t *testing.T, questions []question) []error {
	t.Helper()
	insert(t, database(t), 3)
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	errs := make([]error, len(questions))
	var asking sync.WaitGroup
	for i, q := range questions {
		address, l := pgtest.Proxy(t, pgtest.URL(t))
		config := configure(t, address, strings.Replace(stdoutProcess, "a:", fmt.Sprintf("a%d:", i), 1))
		asked := l.Hold(link.Server, func(data []byte) bool { return bytes.Contains(data, []byte(q.text)) })
		asking.Go(func() {
			errs[i] = q.ask(ctx, config)
			select {
			case <-asked:
			case <-ctx.Done():
				t.Errorf("the question was never asked: %s", q.text)
			}
		})
	}
	asking.Wait()
	return errs
}

func askStatus(ctx context.Context, c daemon.Config) error {
	r, err := daemon.NewStatusReader(ctx, daemon.StatusConfig{Config: c})
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = r.Read(ctx)
	return err
}

func askHistory(ctx context.Context, c daemon.Config) error {
	o, err := daemon.NewOperator(ctx, c, c.Processes[0].Name)
	if err != nil {
		return err
	}
	defer o.Close()
	_, err = o.History(ctx, 10)
	return err
}

func askGrants(ctx context.Context, c daemon.Config) error {
	return daemon.Grants(ctx, io.Discard, daemon.GrantsConfig{Config: c, Role: "somebody"})
}

// askDoctor returns what it finds as an error.
func askDoctor(ctx context.Context, c daemon.Config) error {
	findings, err := daemon.Doctor(ctx, c)
	for _, f := range findings {
		err = errors.Join(err, errors.New(f.Problem))
	}
	return err
}

// TestCommands_NoQuestionWaitsForEver: each command names what was not answered.
// doctor goes on to its next check.
func TestCommands_NoQuestionWaitsForEver(t *testing.T) {
	t.Parallel()
	questions := []question{
		{"/* cursor.list */", "list cursors: no answer in time", askStatus},
		{"/* daemon.watched */", "look for the workers: no answer in time", askStatus},
		{"/* cursor.history */", "history of", askHistory},
		{"/* grants.database */", "ask for the database's name: no answer in time", askGrants},
		{"-- ping", "cannot connect: no answer in time", askDoctor},
		{"/* daemon.capacity */", "look up the limits on connections: no answer in time", askDoctor},
		{"/* doctor.backend */", "a check did not end in time|ask for the session's process", askDoctor},
	}
	for i, err := range unanswered(t, questions) {
		require.Regexp(t, questions[i].waited, err)
		require.Regexp(t, "no answer from the database within 10s|the server is silent: no answer for 5s, and none to a new connection within 3s", err, "on a machine that is too busy to answer in 3 s")
	}
}

// TestRun_ANoteThatIsNotAnsweredKeepsNoProcessFromRunning: the processes wait for the
// first attempt to note their configuration.
func TestRun_ANoteThatIsNotAnsweredKeepsNoProcessFromRunning(t *testing.T) {
	t.Parallel()
	run := func(_ context.Context, c daemon.Config) error { return drain(t, c) }
	for _, err := range unanswered(t, []question{
		{"/* cursor.history */", "", run}, {"/* daemon.configure */", "", run}, {"/* daemon.watch */", "", run},
	}) {
		require.NoError(t, err)
	}
}
