package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// sinkFunc answers by its token.
type sinkFunc func() error

func (f sinkFunc) DeliverBatch(context.Context, []processor.Delivery) (int, error) { return 0, f() }

// answering is a sink with the token of a file, which it looks at with each call. It notes the tokens of
// its calls.
func answering(t testing.TB, file secretFile, answer func(token string) error) (call func() error, calls *[]string) {
	t.Helper()
	config, err := daemon.Parse("f.yaml", []byte(of(fmt.Sprintf("{webhook: {url: 'http://h', bearer: '%s'}}", file))), environment(nil), kinds)
	require.NoError(t, err)
	calls = new([]string)
	renewed := daemon.Renewed(config, func(token string) sinkFunc {
		return func() error {
			*calls = append(*calls, token)
			return answer(token)
		}
	})
	return func() error { return renewed(t.Context()) }, calls
}

// A stream of NATS was set back, and its file changes in the same moment: a new sink would go on.
func TestRenew_ASinkThatKnowsOfALossIsKept(t *testing.T) {
	t.Parallel()
	token, decided := newSecretFile(t, "first-token"), false
	call, calls := answering(t, token, func(string) error {
		token.hold(t, "second-token")
		if decided {
			return nil
		}
		return processor.Refused(outcome.ReportedOnce(errors.New("the stream was set back")))
	})
	for range 2 {
		err := call()
		require.True(t, processor.IsRefused(err), err)
	}
	decided = true
	require.NoError(t, call())
	require.NoError(t, call())
	require.Equal(t, []string{"first-token", "first-token", "first-token", "second-token"}, *calls)
}

// Kafka has fenced this worker, and its file changes in the same moment: a new sink would put the
// other worker out.
func TestRenew_AReceiverThatAskedForADelayIsNotCalledAgainAtOnce(t *testing.T) {
	t.Parallel()
	for name, mark := range map[string]func(error) error{"unreached": processor.Unreached, "refused": processor.Refused} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			token := newSecretFile(t, "first-token")
			call, calls := answering(t, token, func(is string) error {
				token.hold(t, "second-token")
				if is == "second-token" {
					return nil
				}
				return mark(processor.RetryAfter(errors.New("fenced"), 10*time.Second))
			})
			err := call()
			require.True(t, processor.IsUnreached(err), err)
			require.False(t, processor.IsRefused(err), err)
			require.Equal(t, 10*time.Second, processor.RetryAfterDelay(err))
			require.NoError(t, call())
			require.Equal(t, []string{"first-token", "second-token"}, *calls)
		})
	}
}

// However often the secrets of sinks change.
func TestRenew_ThePasswordOfTheDatabaseStaysOutOfMessages(t *testing.T) {
	t.Parallel()
	token := newSecretFile(t, "token-0")
	config, err := daemon.Parse("f.yaml", []byte("database: postgres://u:database-password@h/d\n"+
		of(fmt.Sprintf("{webhook: {url: 'http://h', bearer: '%s'}}", token))), environment(nil), kinds)
	require.NoError(t, err)
	require.Equal(t, "[secret]", config.Secrets().Replace("database-password"))
	call := daemon.Renewed(config, func(string) sinkFunc { return func() error { return nil } })
	for i := range 40 {
		token.hold(t, fmt.Sprint("token-", i+1))
		require.NoError(t, call(t.Context()))
	}
	require.Equal(t, "[secret] [secret] token-0", config.Secrets().Replace("database-password token-39 token-0"))
}

// pipes are what a secret is read from once: each makes one that holds a text.
var pipes = map[string]func(t testing.TB, text string) (path string){
	"a pipe with a name": func(t testing.TB, text string) string {
		path := filepath.Join(t.TempDir(), "pipe")
		require.NoError(t, syscall.Mkfifo(path, 0o600))
		go func() { _ = os.WriteFile(path, []byte(text), 0o600) }()
		return path
	},
	"a process substitution": func(t testing.TB, text string) string {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		t.Cleanup(func() { _ = r.Close() })
		_, err = w.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return fmt.Sprintf("/dev/fd/%d", r.Fd())
	},
}

func TestRenew_APipeIsReadOnce(t *testing.T) {
	t.Parallel()
	for name, pipe := range pipes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			insert(t, pool, 1)
			receiver := newDoor(t, "first-token")
			url, token := pipe(t, pgtest.URL(t)), pipe(t, "first-token")
			r := runDaemon(t, "database: '${file:"+url+"}'\n"+of(receiver.sink(secretFile{token})), lookEvery(always))
			passed(t, pool, 1)
			insert(t, pool, 1)
			passed(t, pool, 2)
			require.Equal(t, []string{"first-token 1/1", "first-token 2/1"}, receiver.notes())
			require.NotContains(t, r.log.String(), "cannot be read")
		})
	}
}

// The one who wrote it removes the pipe, or makes it anew: there is nothing to follow.
func TestRenew_APipeThatIsGoneIsNoLoss(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	receiver := newDoor(t, "first-token")
	path := pipes["a pipe with a name"](t, "first-token")
	r := runDaemon(t, of(receiver.sink(secretFile{path})), lookEvery(always))
	require.NoError(t, os.Remove(path))
	insert(t, pool, 1)
	passed(t, pool, 2)
	require.NotContains(t, r.log.String(), "cannot be read")
}

// A secret store replaces a file by removing it first: it was taken for a pipe, and never read again.
func TestRenew_AFileThatIsGoneForAMomentAtTheStartIsReadAgain(t *testing.T) {
	t.Parallel()
	token := newSecretFile(t, "first-token")
	text := of(fmt.Sprintf("{webhook: {url: 'http://h', bearer: '%s'}}", token)) + "  b: {source: {table: public.bookings}, sink: {webhook: {url: 'http://${HOST}'}}}\n"
	config, err := daemon.Parse("f.yaml", []byte(text), func(string) (string, bool) {
		require.NoError(t, os.Remove(token.path)) // after it was read
		return "host", true
	}, kinds)
	require.NoError(t, err)
	var calls []string
	call := daemon.Renewed(config, func(token string) sinkFunc {
		return func() error { calls = append(calls, token); return nil }
	})
	token.hold(t, "second-token")
	require.NoError(t, call(t.Context()))
	require.NoError(t, call(t.Context()))
	require.Contains(t, calls, "second-token")
}

func TestRenew_AFileThatBecomesAPipeKeepsItsFormerValue(t *testing.T) {
	t.Parallel()
	pool, receiver, token, r := atADoor(t, always, "first-token", "second-token")
	require.NoError(t, syscall.Mkfifo(token.path+".pipe", 0o600))
	require.NoError(t, os.Rename(token.path+".pipe", token.path))
	insert(t, pool, 1)
	passed(t, pool, 2)
	token.hold(t, "second-token")
	insert(t, pool, 1)
	passed(t, pool, 3)
	require.Equal(t, []string{"first-token 1/1", "first-token 2/1", "second-token 3/1"}, receiver.notes())
	require.NotContains(t, r.log.String(), "cannot be read")
}

// Kafka said NOT_ENOUGH_REPLICAS (or was silent), so nobody knows the outcome; the secret's file changes at that moment.
func TestRenewed_WhatMayHaveArrivedInAnOutageIsAnotherAttempt(t *testing.T) {
	t.Parallel()
	token := newSecretFile(t, "first-token")
	call, calls := answering(t, token, func(secret string) error {
		if secret == "second-token" {
			return nil
		}
		token.hold(t, "second-token")
		return processor.Unreached(outcome.Outage(errors.New("the broker may have the record")))
	})
	err := call()
	require.Len(t, *calls, 1, "what may have arrived is another attempt")
	require.True(t, outcome.IsOutage(err), err)
}

// The same with a delay or without time for another call: the word that it is unknown is lost.
func TestRenewed_AnOutageStaysOneWhereTheNextAttemptIsLater(t *testing.T) {
	t.Parallel()
	token := newSecretFile(t, "first-token")
	call, _ := answering(t, token, func(string) error {
		token.hold(t, "second-token")
		return processor.RetryAfter(processor.Unreached(outcome.Outage(errors.New("the broker may have the record"))), time.Second)
	})
	err := call()
	require.True(t, outcome.IsOutage(err), err)
}
