package daemon

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/stretchr/testify/require"
)

func TestUnknownProcess_ProposesWhatWasLikelyMeant(t *testing.T) {
	t.Parallel()
	names := []string{"booking_sms", "booking_mails", "pay"}
	require.EqualError(t, unknownProcess("bokking_sms", names), `there is no process "bokking_sms": did you mean booking_sms? There are booking_sms, booking_mails, pay`)
	require.EqualError(t, unknownProcess("invoices", names), `there is no process "invoices": there are booking_sms, booking_mails, pay`)
}

func TestOwnHost_TakesAddressesAndLocalhostAlone(t *testing.T) {
	t.Parallel()
	for _, own := range []string{"127.0.0.1", "127.0.0.1:80", "10.1.2.3:", "[::1]", "[::1]:80", "[fe80::1%25eth0]:80", "localhost", "LocalHost:80"} {
		require.True(t, ownHost(own), own)
	}
	for _, other := range []string{"", ":80", "[]", "rebound.example", "rebound.example:80", "[::1%25eth0", "[::1%25.rebound.example", "]127.0.0.1[", "::1]", "[::1]x", "127.0.0.1:80:80", "localhost]"} {
		require.False(t, ownHost(other), other)
	}
}

// The texts go to a receiver. They have no words of Go's library.
func TestParseAsk_SaysWhatIsWrongWithAParameter(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"after=9223372036854775808": `parameter 'after': it must be a number between 0 and 9223372036854775807`,
		"after=-1":                  `parameter 'after': it must be a number between 0 and 9223372036854775807`,
		"after=":                    `parameter 'after': it must be a number between 0 and 9223372036854775807`,
		"after=1&after=2":           `parameter 'after': give it once`,
		"after=1&limit=ten":         `parameter 'limit': it must be a number between 1 and 1000`,
		"after=1&limit=1001":        `parameter 'limit': it must be a number between 1 and 1000`,
		"after=1&pruned=yes":        `parameter 'pruned': it must be true or false`,
		"after=1&from=x":            `parameter 'from': it is not a place with which an answer ended`,
		"after=1&form=1":            `parameter 'form': there is no such parameter: there are after, from, limit and pruned`,
		"after=0;pruned=1":          "the parameters cannot be read: write & between two of them, and %XX for characters that have a meaning in a URL",
		"after=0&from=%2":           "the parameters cannot be read: write & between two of them, and %XX for characters that have a meaning in a URL",
		"":                          "the parameter after is missing: give the last sequence that you have, 0 for none",
	} {
		_, err := parseAsk(query)
		require.EqualError(t, err, want, query)
	}
	ask, err := parseAsk("after=9223372036854775807&limit=1000&pruned=true&from=int:1")
	require.NoError(t, err)
	require.Equal(t, Ask{After: 1<<63 - 1, Limit: 1000, Pruned: true, From: Place{Position: "int:1"}}, ask)
}

func TestVerdict_CountsWhatWasFound(t *testing.T) {
	t.Parallel()
	require.NoError(t, Verdict([]Finding{{Severity: Note}}))
	err := Verdict([]Finding{{Severity: Refuse}, {Severity: Warn}, {Severity: Warn}, {Severity: Note}})
	require.ErrorIs(t, err, ErrFindings)
	require.EqualError(t, err, "doctor found something: 1 error, 2 warnings. Do what follows each `fix:`, and run doctor again")
	require.EqualError(t, Verdict([]Finding{{Severity: Warn}}), "doctor found something: 1 warning. Do what follows each `fix:`, and run doctor again")
}

func TestDoctor_WarnsOnlyOfWhatIsKnownToHoldForLong(t *testing.T) {
	t.Parallel()
	now := time.Now()
	require.Equal(t, Note, heldFor(now.Add(-time.Second), now))
	require.Equal(t, Warn, heldFor(now.Add(-time.Minute), now))
	require.Equal(t, Note, heldFor(time.Time{}, now), "when it began may not be seen")
}

// transport are the problems that the doctor names of a connection.
func transport(t testing.TB, database string) string {
	t.Helper()
	d := &doctor{pool: lazyPool(t, database)}
	d.transport()
	var text strings.Builder
	for _, f := range d.findings {
		text.WriteString(f.Problem)
	}
	return text.String()
}

func TestDoctor_WarnsOfAConnectionInTheClear(t *testing.T) {
	t.Parallel()
	for host, warned := range map[string]bool{"db.example": true, "127.0.0.1": false, "localhost": false, "/run/postgresql": false} {
		require.Equal(t, warned, strings.Contains(transport(t, "host="+host+" sslmode=prefer"), "unencrypted"), host)
		require.NotContains(t, transport(t, "host="+host+" sslmode=require"), "unencrypted", host)
	}
}

func TestDoctor_WarnsOfHostsThatMayBeStandbys(t *testing.T) {
	t.Parallel()
	const warning = "takes the first that answers"
	require.NotContains(t, transport(t, "host=a,b sslmode=require"), warning, "the primary is asked for by itself")
	require.NotContains(t, transport(t, "host=a sslmode=require target_session_attrs=any"), warning)
	require.Contains(t, transport(t, "host=a,b sslmode=require target_session_attrs=any"), warning)
}

func TestDoctor_WarnsOfACertificateThatIsNotChecked(t *testing.T) {
	t.Parallel()
	require.Contains(t, transport(t, "postgres://u:p@db.example/d?sslmode=require"), "is not checked")
	require.NotContains(t, transport(t, "postgres://u:p@db.example/d?sslmode=verify-full"), "is not checked")
	require.NotContains(t, transport(t, "postgres://u:p@localhost/d?sslmode=require"), "is not checked")
}

func TestListen_WithoutAHostIsOpenToThisMachineAlone(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{":0": true, "localhost:0": true, "127.0.0.1:0": true, "0.0.0.0:0": false, "[::]:0": false} {
		listener, err := listen(t.Context(), address)
		require.NoError(t, err)
		require.Equal(t, want, isLoopback(listener.Addr()), address)
		require.NoError(t, listener.Close())
	}
}

// TestRounds_AfterALookThatFailedOneMustHaveRead: a round that ended before proves nothing.
func TestRounds_AfterALookThatFailedOneMustHaveRead(t *testing.T) {
	t.Parallel()
	rounds := rounds{"a": {}, "b": {}}
	require.NoError(t, rounds.fault(time.Time{}), "no look has failed")
	rounds.observe(processor.Event{Process: "a", Kind: processor.EventPass, State: processor.StateIdle})
	failed := time.Now()
	require.Error(t, rounds.fault(failed))
	require.NoError(t, rounds.fault(failed.Add(-time.Minute)), "a process may be in a long call since")
	rounds.observe(processor.Event{Process: "b", Kind: processor.EventPass, State: processor.StateError})
	require.Error(t, rounds.fault(failed))
	rounds.observe(processor.Event{Process: "a", Kind: processor.EventAdvance})
	require.NoError(t, rounds.fault(failed))
}

func TestPulse_FaultsAProcessInWhichNothingHappens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pulse := newPulse("a", time.Minute)
		time.Sleep(time.Minute)
		require.NoError(t, pulse.fault(), "it has not had its time yet")
		time.Sleep(time.Second)
		require.EqualError(t, pulse.fault(), `process "a": its worker has done nothing for 1m1s, and the limit is 1m0s`)
		pulse.beat()
		require.NoError(t, pulse.fault())
		time.Sleep(time.Hour)
		require.Error(t, pulse.fault())
		pulse.over.Store(true)
		require.NoError(t, pulse.fault(), "a process that was drained has nothing to do")
	})
}

// Not parallel: it sets a variable.
func TestSecrets_HaveThePasswordWhereverItCameFrom(t *testing.T) {
	t.Setenv("PGPASSWORD", "of-the-environment")
	require.Equal(t, "[secret]", Config{Database: "postgres://u@h/d"}.Secrets().Replace("of-the-environment"))
	require.Equal(t, "[secret]", Config{Database: "postgres://u:of-the-url@h/d"}.Secrets().Replace("of-the-url"))
	require.Equal(t, "text", Config{Database: "postgres://%"}.Secrets().Replace("text"))
}

func TestMasked_NoAttributeHasASecret(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	secrets := Config{Database: "postgres://u:swordfish@h/d"}.Secrets
	log := masked(NewLogger(&b, slog.LevelInfo), secrets)
	log.With("with", "a swordfish").WithGroup("g").Info("it said swordfish", "err", errors.New("no swordfish"), "n", 7,
		slog.Group("inner", "text", "swordfish"), "list", []string{"swordfish"}, "kept", []string{"x"})
	require.NotContains(t, b.String(), "swordfish")
	require.Contains(t, b.String(), `"with":"a [secret]"`)
	require.Contains(t, b.String(), `"err":"no [secret]","n":7,"inner":{"text":"[secret]"},"list":"[[secret]]","kept":["x"]`)
}

// awaitSignal waits for a signal, as Run does while its processes go on but those named, and returns what ends the wait for
// more. At the signal, stop is called.
func awaitSignal(t testing.TB, c RunConfig, stop func(), ended ...string) (over func()) {
	t.Helper()
	crew := &crew{going: c.Config.Names(), stop: stop}
	for _, name := range ended {
		crew.ended(name)
	}
	s := newSignals(c, crew)
	s.margin = time.Millisecond
	if len(c.Signals) == 0 {
		s.stop() // another member of the crew has ended
	}
	require.NoError(t, s.wait())
	return s.forget
}

// A call that ignores its context does not keep the program from ending, with a signal or without.
func TestSignals_WhatDoesNotEndAfterTheGraceIsEndedByForce(t *testing.T) {
	t.Parallel()
	for name, received := range map[string][]os.Signal{"a signal": {syscall.SIGTERM}, "an error of another process": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			signals, code := make(chan os.Signal, 1), make(chan int, 1)
			var log bytes.Buffer
			for _, s := range received {
				signals <- s
			}
			over := awaitSignal(t, RunConfig{
				Config:  Config{Processes: []Process{{Name: "done"}, {Name: "hangs"}}},
				Signals: signals, Grace: time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil)),
				Exit: func(c int) { code <- c },
			}, func() {}, "done")
			select {
			case got := <-code:
				require.Equal(t, ExitFailed, got)
			case <-time.After(time.Minute):
				require.Fail(t, "it did not end")
			}
			over()
			require.Contains(t, log.String(), "stopping by force")
			require.Contains(t, log.String(), "not_ended=[hangs]")
		})
	}
}

// After an error of another process, or at the end of a drain, the first signal is still the first: a call goes on.
func TestSignals_OnlyTheSecondOneCutsACall(t *testing.T) {
	t.Parallel()
	signals, code := make(chan os.Signal), make(chan int, 1)
	var log bytes.Buffer
	over := awaitSignal(t, RunConfig{
		Config:  Config{Processes: []Process{{Name: "in a call"}}},
		Signals: signals, Grace: time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Exit: func(c int) { code <- c },
	}, func() {})
	defer over()
	first := time.Now()
	signals <- syscall.SIGTERM
	for again := true; again; {
		select {
		case signals <- syscall.SIGTERM:
		case got := <-code:
			require.Equal(t, ExitFailed, got)
			again = false
		}
	}
	require.GreaterOrEqual(t, time.Since(first), oneSignal, "one that comes at once is the first one again, as timeout(1) sends it")
	require.Regexp(t, "(?s)stopping: running deliveries may finish.*stopping at once", log.String())
}

// What reads the word that the program stops may rely on it.
func TestSignals_NothingIsBegunAfterTheWordThatItStops(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	var log bytes.Buffer
	before := "nothing"
	over := awaitSignal(t, RunConfig{
		Signals: signals, Grace: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil)), Exit: func(int) {},
	}, func() { before = log.String() })
	over()
	require.Empty(t, before, "no process begins another record before it is said")
	require.Contains(t, log.String(), "stopping")
}

// patient is a sink whose receiver is silent until all sinks are being closed.
type patient struct{ begun *sync.WaitGroup }

func (p patient) Close() error {
	p.begun.Done()
	p.begun.Wait()
	return nil
}

func TestRun_TheSinksOfManyProcessesAreClosedAtOnce(t *testing.T) {
	t.Parallel()
	var begun sync.WaitGroup
	begun.Add(3)
	closed := make(chan struct{})
	go func() {
		(&closers{patient{&begun}, patient{&begun}, patient{&begun}}).close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(30 * time.Second):
		t.Fatal("one sink waits for another")
	}
}

func TestExposure_IsLoggedWithItsProcess(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	exposure{"a", "p", "c"}.warn(slog.New(slog.NewJSONHandler(&log, nil)))
	require.Contains(t, log.String(), `"process":"a"`)
	require.Equal(t, 1, strings.Count(log.String(), "\n"))
}

// What the audit does not go back to is not taken for a delivery.
func TestPassedBy_WhatTheAuditDoesNotHave(t *testing.T) {
	t.Parallel()
	standing, omitted := passedBy(operator.Fate{}, nil)
	require.Equal(t, StandingPassed, standing)
	require.Nil(t, omitted)
	standing, _ = passedBy(operator.Fate{Omitted: &operator.Event{Action: "dead_letter"}}, nil)
	require.Equal(t, StandingPutAside, standing)
	standing, _ = passedBy(operator.Fate{}, []cursor.DeadLetter{{Resolution: cursor.Replayed}, {}})
	require.Equal(t, StandingReplayed, standing, "the newest one counts")
}
