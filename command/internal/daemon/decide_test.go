package daemon_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
)

// TestSkip_OfAHaltOverTheDatabaseSaysWhatItIs: it said "not at the expected position", though the operator had
// named none. Of one that is paused, status named a record that fails and has no id.
func TestSkip_OfAHaltOverTheDatabaseSaysWhatItIs(t *testing.T) {
	t.Parallel()
	clock := func(t *testing.T, s *cursor.Store, is error) string {
		row, err := s.Look(t.Context(), "a")
		require.NoError(t, err)
		require.NotEmpty(t, row.Position)
		require.ErrorIs(t, s.HaltClock(t.Context(), "a", cursor.ClockHalt{At: row.Position, Reason: "the clock stepped back, so `retry`"}), is)
		return "the clock stepped back, so `retry`"
	}
	for name, displace := range map[string]func(t *testing.T, pool *pgxpool.Pool, s *cursor.Store) (reason string){
		"halted as clock": func(t *testing.T, _ *pgxpool.Pool, s *cursor.Store) string { return clock(t, s, cursor.ErrHalted) },
		"paused as clock": func(t *testing.T, _ *pgxpool.Pool, s *cursor.Store) string {
			asBob(t, operator.New(s).Pause)
			return clock(t, s, cursor.ErrPaused)
		},
		"restored": func(t *testing.T, pool *pgxpool.Pool, s *cursor.Store) string {
			exec(t, pool, "UPDATE od.cursor SET system_identifier = 1")
			_, err := s.Acquire(t.Context(), "a")
			require.ErrorIs(t, err, cursor.ErrHalted)
			return "the database is not the one this position belongs to"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, config := drained(t, stdoutProcess)
			s := newStore(t, pool)
			reason := displace(t, pool, s)
			o := operatorOf(t, config)
			for _, d := range []cursor.Decision{{Actor: "alice", Reason: "x"}, {Actor: "alice", Reason: "x", DryRun: true}} {
				_, err := o.Skip(t.Context(), d)
				require.ErrorIs(t, err, operator.ErrNotFailing)
				require.ErrorContains(t, err, "no record is failing: the process is halted over its database, and delivers nothing: "+reason)
				require.ErrorContains(t, err, "retry")
				require.Regexp(t, "; nothing was changed$", err.Error())
			}

			_, text, _ := status(t, config, "")
			require.Contains(t, text, reason)
			require.NotContains(t, text, "record  fails")
		})
	}
}

// TestDecision_OfAHaltOverUsProposesNoSkip: pause and resume proposed it, and skip took it without a word. The record, which was
// never refused, was lost for nothing.
func TestDecision_OfAHaltOverUsProposesNoSkip(t *testing.T) {
	t.Parallel()
	pool, config := drained(t, stdoutProcess)
	s := newStore(t, pool)
	lease, err := s.Acquire(t.Context(), "a")
	require.NoError(t, err)
	now, at := time.Now(), lease.Position()
	refused := cursor.Failure{Position: at[:len(at)-1] + "9", RecordID: "9", Attempts: 1, First: now, Last: now, Error: "401 Unauthorized", Class: cursor.ClassRefused}
	require.NoError(t, lease.Halt(t.Context(), refused))
	lease.Release()
	before, err := s.Look(t.Context(), "a")
	require.NoError(t, err)
	o := operatorOf(t, config)

	decision := cursor.Decision{Actor: "alice", Reason: "x"}
	const fix = "correct what the error names (credentials, address, settings; after a change of the configuration or of a ${NAME}, restart the workers), then `ordered-dispatcher retry a`"
	_, pauseErr := o.Pause(t.Context(), decision)
	_, resumeErr := o.Resume(t.Context(), decision)
	for _, err := range []error{pauseErr, resumeErr} {
		require.ErrorIs(t, err, cursor.ErrHalted)
		require.ErrorContains(t, err, "the receiver or a setting is at fault, not record 9")
		require.ErrorContains(t, err, fix)
		require.NotContains(t, err.Error(), "skip")
	}
	for _, dry := range []bool{true, false} {
		decision.DryRun = dry
		_, err = o.Skip(t.Context(), decision)
		require.ErrorIs(t, err, operator.ErrNotFailing)
		require.ErrorContains(t, err, "the receiver or a setting is at fault, not record 9: 401 Unauthorized")
		require.ErrorContains(t, err, "nothing was changed: "+fix)
		require.ErrorContains(t, err, "`ordered-dispatcher seek a --to-position")
	}
	after, err := s.Look(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, before, after)

	decision.DryRun = false
	outcome, err := o.Retry(t.Context(), decision)
	require.NoError(t, err)
	require.Equal(t, before.Position, outcome.After.Position)
	require.Equal(t, cursor.Running, outcome.After.State)
}

// The first worker of a process makes its cursor while the process is paused: it is no other cursor than the one that was meant.
func TestPause_BesideTheFirstRunPausesItsCursor(t *testing.T) {
	t.Parallel()
	pool, config := drained(t, stdoutProcess)
	config.Processes[0].Name = "new"
	o := operatorOf(t, config)
	worker := session(t, `BEGIN;
		INSERT INTO od.cursor (process_name, position) VALUES ('new', '');
		INSERT INTO od.cursor_event (process_name, actor, action) VALUES ('new', 'w', 'create')`)
	paused := make(chan error, 1)
	go func() {
		_, err := o.Pause(t.Context(), cursor.Decision{Actor: "alice", Reason: "x"})
		paused <- err
	}()
	untilTrue(t, pool, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '/* cursor.prepare */%')")
	exec(t, worker, "COMMIT")
	require.NoError(t, waittest.Receive(t, paused, "the pause"))
	row, err := newStore(t, pool).Look(t.Context(), "new")
	require.NoError(t, err)
	require.Equal(t, cursor.Paused, row.State)
}

// An operator compares what seek printed with status and history, and takes it for --expect.
func TestSeek_PrintsAPositionAsStatusAndHistoryDo(t *testing.T) {
	t.Parallel()
	_, config := drained(t, stdoutProcess)
	o := operatorOf(t, config)
	outcome, err := o.Seek(t.Context(), daemon.ToEnd, byAnn)
	require.NoError(t, err)
	at := string(outcome.After.Position)
	require.Regexp(t, `^at\.int:.*Z/-0{19}$`, at)
	var sought, status, history strings.Builder
	require.NoError(t, screen.NewPage(&sought, noEnv).Wide().Outcome(outcome))
	reader, err := daemon.NewStatusReader(t.Context(), daemon.StatusConfig{Config: config})
	require.NoError(t, err)
	defer reader.Close()
	all, err := reader.Read(t.Context())
	require.NoError(t, err)
	require.NoError(t, screen.NewPage(&status, noEnv).Wide().Status(all, nil))
	events, err := o.History(t.Context(), 1)
	require.NoError(t, err)
	require.NoError(t, screen.NewPage(&history, noEnv).Wide().History(events))
	for _, text := range []string{sought.String(), status.String(), history.String()} {
		require.Contains(t, text, " "+at)
	}
	d := byAnn
	d.Expect = &outcome.After.Position
	_, err = o.Seek(t.Context(), daemon.ToBeginning, d)
	require.NoError(t, err)
}
