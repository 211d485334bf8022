package sql_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// markedError is an error of PostgreSQL of which each field has the marker.
func markedError(string) *pgproto3.ErrorResponse {
	return &pgproto3.ErrorResponse{Severity: sinktest.Marker, SeverityUnlocalized: sinktest.Marker, Code: "53300", Message: "no\nfor " + sinktest.Marker,
		Detail: sinktest.Marker, Hint: sinktest.Marker, Where: sinktest.Marker, Routine: sinktest.Marker}
}

// hiding is a sink that quotes none of its target, which has these hosts.
func hiding(t *testing.T, hosts ...string) *sql.Remote {
	t.Helper()
	return sinktest.Made(t, sql.NewRemote, sql.Config{URL: "postgres://u:pw@" + strings.Join(hosts, ",") + "/d?sslmode=disable&connect_timeout=1", Statements: []string{"SELECT 1"}, HideAnswers: true, Timeout: 5 * time.Second})
}

func TestRemote_HiddenAnswersAreThoseOfEveryHost(t *testing.T) {
	t.Parallel()
	first, second := tcptest.Postgres(t, tcptest.Login, markedError), tcptest.Postgres(t, tcptest.Login, markedError)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	for name, hosts := range map[string][]string{
		"one": {first}, "two": {first, second}, "a silent one first": {silent.Addr().String(), first}, "a silent one last": {first, silent.Addr().String()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := hiding(t, hosts...)
			ours := append([]string{"nothing was sent", "failed to connect", "SQLSTATE 53300"}, hosts...)
			err := sinktest.Hides(t, s, ours...)
			require.Equal(t, "unreached", sinktest.Class(err), err)
			sinktest.RequireHidden(t, s.Check(t.Context()), ours...)
		})
	}
}

// TestRemoteConfig_NamesEveryHost: an error is that of the one that answered, and that may be any.
func TestRemoteConfig_NamesEveryHost(t *testing.T) {
	t.Parallel()
	for hosts, want := range map[string]string{
		"a:1": "a:1", "a:1,b:2": "a:1 or b:2", "a,b,a": "a:5432 or b:5432",
	} {
		require.Equal(t, fmt.Sprintf("database %q of %s", "ledger", want), sql.Config{URL: "postgres://me:secret@" + hosts + "/ledger"}.String())
	}
}

// A server that counts the rounds of its hash in words is quoted by the package that reads numbers.
func TestRemote_HiddenAnswersHaveNothingOfALogin(t *testing.T) {
	t.Parallel()
	address := tcptest.Serve(t, func(conn net.Conn) {
		server := pgproto3.NewBackend(conn, conn)
		if _, err := server.ReceiveStartupMessage(); err != nil {
			return
		}
		server.Send(&pgproto3.AuthenticationSASL{AuthMechanisms: []string{"SCRAM-SHA-256"}})
		if errors.Join(server.SetAuthType(pgproto3.AuthTypeSASL), server.Flush()) != nil {
			return
		}
		message, err := server.Receive()
		if err != nil {
			return
		}
		login, _ := message.(*pgproto3.SASLInitialResponse)
		_, nonce, _ := strings.Cut(string(login.Data), "r=")
		server.Send(&pgproto3.AuthenticationSASLContinue{Data: []byte("r=" + nonce + "x,s=eA==,i=" + sinktest.Marker)})
		_ = server.Flush()
		_, _ = server.Receive()
	})
	sinktest.Hides(t, hiding(t, address), "the answer has a number that cannot be read")
}

func TestRemote_HiddenAnswersHaveNothingOfARefusalThatCouldNotBeNoted(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	s := r.sink(t, func(c *sql.Config) {
		c.HideAnswers, c.Statements = true, []string{"SELECT ('" + sinktest.Marker + "' || @id::text)::uuid"}
	})
	sinktest.Hides(t, s, `apply record "1": statement 1 of 1: ERROR: […] (SQLSTATE 22P02); correct the row or the statement`)
	r.exec(t, "DROP TABLE public.ordered_dispatcher_refused")
	err := sinktest.Hides(t, s, "(SQLSTATE 22P02)", "and the target could not note that", "ERROR: […] (SQLSTATE 42P01)")
	require.False(t, processor.IsPermanent(err), "it is not given up: %v", err)
}

// A word of the server that is one of ours, too, is hidden where the server said it.
func TestRemote_HiddenAnswersHideNoWordOfOurs(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	for _, word := range []string{"record", "1", "e", "ERROR", "statement 1 of 1", "(SQLSTATE P0001)"} {
		r.exec(t, "CREATE OR REPLACE FUNCTION public.f(text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '"+word+"'; END $$")
		s := r.sink(t, func(c *sql.Config) { c.HideAnswers, c.Statements = true, []string{"SELECT public.f(@id::text)"} })
		_, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
		require.EqualError(t, err, s.String()+`: apply record "1": statement 1 of 1: ERROR: […] (SQLSTATE P0001)`, word)
	}
}

func TestRemote_NoWordOfAServerBreaksALine(t *testing.T) {
	t.Parallel()
	s := sinktest.Made(t, sql.NewRemote, sql.Config{URL: "postgres://u:pw@" + tcptest.Postgres(t, tcptest.Login, markedError) + "/d?sslmode=disable", Statements: []string{"SELECT 1"}})
	_, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "no for "+sinktest.Marker)
	require.ErrorContains(t, s.Check(t.Context()), "no for "+sinktest.Marker)
}
