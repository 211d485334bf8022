package operator_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// fail leaves a record behind that failed, at p5 behind p4.
func fail(t testing.TB, s *cursor.Store, halt bool) {
	t.Helper()
	lease := acquire(t, s)
	require.NoError(t, lease.Advance(t.Context(), "p4", 4))
	f := cursor.Failure{Position: "p5", RecordID: "5", Attempts: 3, First: time.Now(), Last: time.Now(), Wait: time.Hour, Error: "422"}
	if halt {
		require.NoError(t, lease.Halt(t.Context(), f))
	} else {
		require.NoError(t, lease.Fail(t.Context(), f))
	}
}

// actions by name. A seek goes back, to p2.
func actions(o *operator.Operator) map[string]func(context.Context, string, cursor.Decision) (operator.Change, error) {
	return map[string]func(context.Context, string, cursor.Decision) (operator.Change, error){
		"pause": o.Pause, "resume": o.Resume, "retry": o.Retry, "skip": o.Skip,
		"seek": func(ctx context.Context, process string, d cursor.Decision) (operator.Change, error) {
			return o.Seek(ctx, process, "p2", d)
		},
	}
}

// TestDecision_InEachState: what each action does to a process in each state, and
// that a refused one, or a rehearsed one, does nothing.
func TestDecision_InEachState(t *testing.T) {
	t.Parallel()
	type want struct {
		state    cursor.State
		position cursor.Position
		failing  bool
		err      error
		idle     bool // nothing is written
	}
	for state, wants := range map[string]map[string]want{
		"running": {
			"pause":  {state: cursor.Paused, position: "p4"},
			"resume": {state: cursor.Running, position: "p4", idle: true},
			"retry":  {err: operator.ErrNotFailing},
			"skip":   {err: operator.ErrNotFailing},
			"seek":   {state: cursor.Running, position: "p2"},
		},
		"failing": {
			"pause":  {state: cursor.Paused, position: "p4", failing: true},
			"resume": {state: cursor.Running, position: "p4", failing: true, idle: true},
			"retry":  {state: cursor.Running, position: "p4"},
			"skip":   {state: cursor.Running, position: "p5"},
			"seek":   {state: cursor.Running, position: "p2"},
		},
		"halted": {
			"pause":  {err: cursor.ErrHalted},
			"resume": {err: cursor.ErrHalted},
			"retry":  {state: cursor.Running, position: "p4"},
			"skip":   {state: cursor.Running, position: "p5"},
			"seek":   {state: cursor.Running, position: "p2"},
		},
		"halted, since the receiver refuses us": {
			"pause":  {err: cursor.ErrHalted},
			"resume": {err: cursor.ErrHalted},
			"retry":  {state: cursor.Running, position: "p4"},
			"skip":   {err: operator.ErrNotFailing},
			"seek":   {state: cursor.Running, position: "p2"},
		},
		"paused": {
			"pause":  {state: cursor.Paused, position: "p4", idle: true},
			"resume": {state: cursor.Running, position: "p4"},
			"retry":  {err: operator.ErrNotFailing},
			"skip":   {err: operator.ErrNotFailing},
			"seek":   {state: cursor.Paused, position: "p2"},
		},
		"paused and failing": {
			"pause":  {state: cursor.Paused, position: "p4", failing: true, idle: true},
			"resume": {state: cursor.Running, position: "p4", failing: true},
			"retry":  {state: cursor.Paused, position: "p4"},
			"skip":   {state: cursor.Paused, position: "p5"},
			"seek":   {state: cursor.Paused, position: "p2"},
		},
	} {
		for name, want := range wants {
			t.Run(state+": "+name, func(t *testing.T) {
				t.Parallel()
				pool := database(t)
				s := created(t, pool, "a")
				fail(t, s, strings.HasPrefix(state, "halted"))
				if strings.Contains(state, "refuses us") {
					exec(t, pool, `UPDATE dispatch.cursor SET failed_class = 'refused'`)
				}
				if !strings.Contains(state, "failing") && !strings.HasPrefix(state, "halted") {
					_, err := operator.New(s).Retry(t.Context(), "sms", alice)
					require.NoError(t, err)
				}
				if strings.Contains(state, "paused") {
					_, err := operator.New(s).Pause(t.Context(), "sms", alice)
					require.NoError(t, err)
				}
				before, events := look(t, s), history(t, s)

				rehearsal := alice
				rehearsal.DryRun = true
				rehearsed, rehearsedErr := actions(operator.New(s))[name](t.Context(), "sms", rehearsal)
				require.Equal(t, before.UpdatedAt, look(t, s).UpdatedAt, "a rehearsal changes nothing")

				change, err := actions(operator.New(s))[name](t.Context(), "sms", alice)
				after := look(t, s)
				if want.err != nil {
					require.ErrorIs(t, err, want.err)
					require.ErrorIs(t, rehearsedErr, want.err)
				} else {
					require.NoError(t, err)
					require.NoError(t, rehearsedErr)
					require.Equal(t, want.state, after.State)
					require.Equal(t, want.position, after.Position)
					require.Equal(t, want.failing, after.Failure != nil)
					require.Equal(t, []any{after.State, after.Position, after.Sequence, after.Epoch, after.Failure == nil},
						[]any{change.After.State, change.After.Position, change.After.Sequence, change.After.Epoch, change.After.Failure == nil})
					require.Equal(t, rehearsed.After.Position, change.After.Position)
					require.Equal(t, rehearsed.After.State, change.After.State)
					require.Equal(t, rehearsed.Changed, change.Changed)
				}
				if want.err != nil || want.idle {
					require.False(t, change.Changed)
					require.Equal(t, before.UpdatedAt, after.UpdatedAt)
					require.Equal(t, events, history(t, s))
					return
				}
				require.True(t, change.Changed)
				require.Equal(t, name != "pause", after.Epoch > before.Epoch, "what a worker knows is over")
				event := history(t, s)[0]
				require.Equal(t, []any{name, "alice", "deploy", cursor.Position("p4"), want.position},
					[]any{event.Action, event.Actor, event.Reason, event.From, event.To})
				require.Contains(t, string(event.Detail), fmt.Sprintf(`"to_state": "%s"`, want.state))
			})
		}
	}
}

// TestSkipAndSeek_NoNumberEverStandsForTwoRecords: a record that is passed over
// keeps its number, whoever may have seen it, and what an older worker still has
// on the wire carries an older epoch.
func TestSkipAndSeek_NoNumberEverStandsForTwoRecords(t *testing.T) {
	t.Parallel()
	s := created(t, database(t), "a")
	fail(t, s, true) // record p5 has been sent as number 5
	before := look(t, s)
	_, err := operator.New(s).Skip(t.Context(), "sms", alice)
	require.NoError(t, err)
	skipped := look(t, s)
	require.Equal(t, before.Sequence+1, skipped.Sequence)
	require.Equal(t, before.Epoch+1, skipped.Epoch)
	_, err = operator.New(s).Seek(t.Context(), "sms", "", alice)
	require.NoError(t, err)
	sought := look(t, s)
	require.Equal(t, skipped.Sequence+cursor.SeekGap, sought.Sequence)
	require.Equal(t, skipped.Epoch+1, sought.Epoch)
	require.Equal(t, cursor.Position(""), sought.Position)

	lease := acquire(t, s)
	require.Equal(t, sought.Epoch, lease.Epoch(), "the worker is the same")
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
}

func TestDecision_IsRefusedWhenTheCursorMoved(t *testing.T) {
	t.Parallel()
	for name := range actions(nil) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := created(t, database(t), "a")
			fail(t, s, false)
			before, events := look(t, s), history(t, s)
			seen := cursor.Position("p3")
			d := alice
			d.Expect = &seen
			_, err := actions(operator.New(s))[name](t.Context(), "sms", d)
			require.ErrorIs(t, err, cursor.ErrMoved)
			at := expected(name)
			require.ErrorContains(t, err, strconv.Quote(string(at)))
			d.DryRun = true
			_, err = actions(operator.New(s))[name](t.Context(), "sms", d)
			require.ErrorIs(t, err, cursor.ErrMoved)
			require.Equal(t, before.UpdatedAt, look(t, s).UpdatedAt)
			require.Equal(t, events, history(t, s))

			seen = at
			d.DryRun = false
			_, err = actions(operator.New(s))[name](t.Context(), "sms", d)
			require.NoError(t, err)
		})
	}
}

// expected is what a decision expects of a cursor at p4 whose record p5 fails.
func expected(action string) cursor.Position {
	if action == "skip" || action == "retry" {
		return "p5"
	}
	return "p4"
}

// TestSkip_IsRefusedWhenAnotherRecordFailsByThen: the one that the operator saw was
// deleted, and the cursor has not moved.
func TestSkip_IsRefusedWhenAnotherRecordFailsByThen(t *testing.T) {
	t.Parallel()
	s := created(t, database(t), "a")
	fail(t, s, true)
	d := alice
	d.DryRun = true
	seen, err := operator.New(s).Skip(t.Context(), "sms", d)
	require.NoError(t, err)
	require.Equal(t, cursor.Position("p5"), seen.Expect)
	d.DryRun, d.Expect = false, &seen.Expect

	_, err = operator.New(s).Retry(t.Context(), "sms", alice)
	require.NoError(t, err)
	_, err = operator.New(s).Skip(t.Context(), "sms", d)
	require.ErrorIs(t, err, cursor.ErrMoved, "none fails")
	require.NoError(t, acquire(t, s).Halt(t.Context(), cursor.Failure{Position: "p6", RecordID: "6", Attempts: 1, Error: "422"}))
	for name, act := range map[string]func() (operator.Change, error){
		"skip":  func() (operator.Change, error) { return operator.New(s).Skip(t.Context(), "sms", d) },
		"retry": func() (operator.Change, error) { return operator.New(s).Retry(t.Context(), "sms", d) },
	} {
		_, err = act()
		require.ErrorIs(t, err, cursor.ErrMoved, name)
		require.ErrorContains(t, err, `record 6 at "p6" fails, and the one at "p5" was expected to`, name)
	}
	require.Equal(t, cursor.Position("p4"), look(t, s).Position)
}

func TestSkip_ByTwoOperatorsAtOncePassesOverOneRecord(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	fail(t, s, true)
	held := pgtest.Begin(t, pool, `SELECT FROM dispatch.cursor FOR UPDATE`)
	seen := cursor.Position("p5")
	d := alice
	d.Expect = &seen
	outcomes := make(chan error, 2)
	for range cap(outcomes) {
		go func() {
			_, err := operator.New(s).Skip(t.Context(), "sms", d)
			outcomes <- err
		}()
	}
	require.Eventually(t, func() bool {
		var waiting int
		err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		return err == nil && waiting == cap(outcomes)
	}, patience, time.Millisecond)
	require.NoError(t, held.Rollback(t.Context()))
	first, second := <-outcomes, <-outcomes
	if first != nil {
		first, second = second, first
	}
	require.NoError(t, first)
	require.ErrorIs(t, second, cursor.ErrMoved)
	require.Equal(t, cursor.Position("p5"), look(t, s).Position)
}

func TestDecision_NamesWhatItLacks(t *testing.T) {
	t.Parallel()
	s := created(t, database(t), "a")
	for name, act := range actions(operator.New(s)) {
		_, err := act(t.Context(), "sms", cursor.Decision{Actor: " ", Timeout: 2 * time.Hour})
		require.ErrorContains(t, err, "no actor", name)
		require.ErrorContains(t, err, "timeout must be between 1ms and 1h0m0s, got 2h0m0s", name)
		if name == "skip" || name == "seek" {
			require.ErrorContains(t, err, "no reason", name)
		}
		_, err = act(t.Context(), "smss", alice)
		require.ErrorIs(t, err, cursor.ErrUnknown)
		d := alice
		d.DryRun = true
		_, err = act(t.Context(), "smss", d)
		require.ErrorIs(t, err, cursor.ErrUnknown)
	}
	_, err := operator.New(s).History(t.Context(), "sms", 0)
	require.ErrorContains(t, err, "limit must be between 1 and 10000, got 0")
}

// TestDecision_OnABusyLeaseComesBetweenTwoCheckpoints: an operator is not starved
// by a worker that makes one checkpoint after the other.
func TestDecision_OnABusyLeaseComesBetweenTwoCheckpoints(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"pause", "seek"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			s := created(t, pool, "a")
			lease := acquire(t, s)
			done := make(chan error, 1)
			go func() {
				_, err := actions(operator.New(s))[name](t.Context(), "sms", alice)
				done <- err
			}()
			waitForLock(t, pool)
			n := 0
			for ; cause(lease) == nil; n++ {
				require.Less(t, n, 1_000_000)
				if err := lease.Advance(t.Context(), cursor.Position(fmt.Sprintf("p1%06d", n)), 1); err != nil {
					break
				}
			}
			require.NoError(t, <-done)
			require.ErrorIs(t, over(t, lease), cursor.ErrLeaseLost)
			require.EqualValues(t, n, look(t, s).Sequence%cursor.SeekGap, "every checkpoint counts")
		})
	}
}

func TestDecision_NamesWhoHoldsTheRow(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lock func(t *testing.T, pool *pgxpool.Pool)
		want string
	}{
		"a stranger": {func(t *testing.T, _ *pgxpool.Pool) {
			pgtest.Begin(t, pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{ApplicationName: "psql"}), `SELECT FROM dispatch.cursor FOR UPDATE`)
		}, `pid \d+ \(application "psql", user "\w+"\) since 2.*; end its transaction, or: SELECT pg_terminate_backend\(pid\) FROM pg_stat_activity WHERE pid = \d+ AND xact_start = `},
		"a prepared transaction": {func(t *testing.T, pool *pgxpool.Pool) {
			gid := "it''s " + pool.Config().ConnConfig.Database // one name for all of the server
			exec(t, pool, `BEGIN; UPDATE dispatch.cursor SET holder = 'x'; PREPARE TRANSACTION '`+gid+`'`)
			t.Cleanup(func() { _, _ = pool.Exec(context.Background(), `ROLLBACK PREPARED '`+gid+`'`) })
		}, `the prepared transaction "it's \w+" \(user "\w+"\) since 2.*ROLLBACK PREPARED 'it''s \w+'`},
		"a worker in a call": {func(t *testing.T, pool *pgxpool.Pool) {
			acquire(t, store(t, pool, "b"))
		}, `pid \d+ \(application "ordered-dispatcher lease sms", user "\w+"\) since 2.* is delivering; wait longer`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			s := created(t, pool, "a")
			test.lock(t, pool)
			d := alice
			d.Timeout = 50 * time.Millisecond
			_, err := operator.New(s).Pause(t.Context(), "sms", d)
			require.ErrorIs(t, err, cursor.ErrLocked)
			require.Regexp(t, test.want, err.Error())
			d.DryRun = true
			change, err := operator.New(s).Pause(t.Context(), "sms", d)
			require.NoError(t, err, "a rehearsal waits for nobody")
			require.Equal(t, cursor.Paused, change.After.State)
		})
	}
}

func TestDecision_LeavesNothingInTheSession(t *testing.T) {
	t.Parallel()
	database(t)
	one := pgtest.Pool(t, pgtest.URL(t), pgtest.PoolConfig{MaxConns: 1})
	s := created(t, one, "a")
	const settings = `SELECT current_setting('lock_timeout') || current_setting('statement_timeout') ||
		current_setting('idle_in_transaction_session_timeout') || current_setting('application_name')`
	before := pgtest.Value[string](t, one, settings)
	for name, act := range actions(operator.New(s)) {
		_, _ = act(t.Context(), "sms", alice)
		require.Equal(t, before, pgtest.Value[string](t, one, settings), name)
	}
	require.NoError(t, one.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error {
		require.Equal(t, byte('I'), conn.Conn().PgConn().TxStatus())
		return nil
	}))
}

func TestHistory_IsNewestFirstAndBounded(t *testing.T) {
	t.Parallel()
	s := created(t, database(t), "a")
	fail(t, s, true)
	for _, name := range []string{"skip", "pause", "resume"} {
		_, err := actions(operator.New(s))[name](t.Context(), "sms", alice)
		require.NoError(t, err)
	}
	var all []string
	for _, event := range history(t, s) {
		all = append(all, event.Action)
	}
	require.Equal(t, []string{"resume", "pause", "skip", "halt", "create"}, all)
	two, err := operator.New(s).History(t.Context(), "sms", 2)
	require.NoError(t, err)
	require.Len(t, two, 2)
	require.Equal(t, "resume", two[0].Action)
	require.JSONEq(t, `{"from_state": "halted", "to_state": "running", "record_id": "5", "attempts": 3, "error": "422"}`,
		string(history(t, s)[2].Detail))
	none, err := operator.New(s).History(t.Context(), "smss", 2)
	require.NoError(t, err)
	require.Empty(t, none)
}

// TestRetryAndSeek_AdoptADatabaseThatWasRestored: its numbers may have been used in
// the other one, so none of them is used again.
func TestRetryAndSeek_AdoptADatabaseThatWasRestored(t *testing.T) {
	t.Parallel()
	for name, acquire := range map[string]func(*testing.T, *cursor.Store) *cursor.Lease{
		"retry": acquireLooked,
		"seek":  func(t *testing.T, s *cursor.Store) *cursor.Lease { return acquire(t, s) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			s := created(t, pool, "a")
			exec(t, pool, `UPDATE dispatch.cursor SET position = 'p4', sequence = 4, system_identifier = system_identifier + 1`)
			_, err := s.Acquire(t.Context(), "sms")
			require.ErrorIs(t, err, cursor.ErrHalted)
			_, err = operator.New(s).Skip(t.Context(), "sms", alice)
			require.ErrorIs(t, err, operator.ErrNotFailing, "no record is at fault")
			before := look(t, s)
			_, err = actions(operator.New(s))[name](t.Context(), "sms", alice)
			require.NoError(t, err)
			lease := acquire(t, s)
			requireLeap(t, before.Sequence, lease.Sequence())
			require.Greater(t, lease.Epoch(), before.Epoch+999_999)
			require.NotEqual(t, "promoted", history(t, s)[0].Action)
		})
	}
}

// TestDecision_OnALeaseThatOnlyNotesFailures: nor is an operator starved by a
// record that fails again and again.
func TestDecision_OnALeaseThatOnlyNotesFailures(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	lease := acquire(t, s)
	done := make(chan error, 1)
	go func() {
		_, err := operator.New(s).Pause(t.Context(), "sms", alice)
		done <- err
	}()
	waitForLock(t, pool)
	for n := 1; cause(lease) == nil; n++ {
		require.Less(t, n, 1_000_000)
		if err := lease.Note(t.Context(), cursor.Failure{Position: "p5", RecordID: "5", Attempts: n}); err != nil {
			break
		}
	}
	require.NoError(t, <-done)
	require.Equal(t, "5", look(t, s).Failure.RecordID)
}

func TestDecision_WorksThroughPgBouncerInTransactionMode(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	far, err := pgxpool.New(t.Context(), pgtest.PgBouncer(t, pgtest.URL(t)))
	require.NoError(t, err)
	t.Cleanup(far.Close)
	decider := store(t, far, "operator")
	lease := acquire(t, s)
	done := make(chan error, 1)
	go func() {
		_, err := operator.New(decider).Pause(t.Context(), "sms", alice)
		done <- err
	}()
	waitForLock(t, pool)
	lease.Release()
	require.NoError(t, <-done)
	for _, name := range []string{"resume", "seek"} {
		_, err = actions(operator.New(decider))[name](t.Context(), "sms", alice)
		require.NoError(t, err)
	}
	require.Equal(t, cursor.Position("p2"), look(t, decider).Position)
	require.Len(t, history(t, decider), 4)
	var settings int
	require.NoError(t, far.QueryRow(t.Context(), `SELECT count(*) FROM pg_settings
		WHERE name IN ('lock_timeout', 'idle_in_transaction_session_timeout', 'statement_timeout') AND setting <> reset_val`).Scan(&settings))
	require.Zero(t, settings)
}

func TestDecision_ThatIsGivenUpWhileItWaitsChangesNothing(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	lease := acquire(t, store(t, pool, "b"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := operator.New(s).Pause(ctx, "sms", alice)
		done <- err
	}()
	waitForLock(t, pool)
	cancel()
	err := <-done
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "changed nothing")
	require.NoError(t, lease.Advance(t.Context(), "p1", 1))
	require.Equal(t, cursor.Running, look(t, s).State)
}
