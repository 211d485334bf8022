package operator_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// five is an amendment of the record that fail leaves behind.
var five = operator.Amended{Position: "p5", DedupKey: "t/5", Table: "public.t", RecordID: "5", Row: []byte("old"), Payload: []byte("new\x00\xff")}

func TestAmend_KeepsThePayloadAndTriesAgain(t *testing.T) {
	t.Parallel()
	for name, halt := range map[string]bool{"halted": true, "failing": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			s := created(t, pool, "a")
			fail(t, s, halt)
			o := operator.New(s)
			before := look(t, s)
			amendments := func() []cursor.Amendment {
				t.Helper()
				all, err := o.Amendments(t.Context(), "sms", "", "q")
				require.NoError(t, err)
				return all
			}
			rehearsal := alice
			rehearsal.DryRun = true
			change, err := o.Amend(t.Context(), "sms", five, rehearsal)
			require.NoError(t, err)
			require.Equal(t, cursor.Position("p5"), change.Expect)
			require.Equal(t, before.Epoch, look(t, s).Epoch)
			require.Empty(t, amendments())
			another := five
			another.Position = "p6"
			_, err = o.Amend(t.Context(), "sms", another, alice)
			require.ErrorIs(t, err, cursor.ErrMoved)
			silent := alice
			silent.Reason = ""
			_, err = o.Amend(t.Context(), "sms", five, silent)
			require.Error(t, err)
			require.Empty(t, amendments())

			_, err = o.Amend(t.Context(), "sms", five, alice)
			require.NoError(t, err)
			now := look(t, s)
			require.Equal(t, cursor.Running, now.State)
			require.Nil(t, now.Failure)
			require.Equal(t, before.Epoch+1, now.Epoch)
			require.Equal(t, before.Position, now.Position)
			all := amendments()
			require.Len(t, all, 1)
			require.Equal(t, five.Payload, all[0].Payload)
			require.Equal(t, "cba06b5736faf67e54b07b561eae94395e774c517a7d910a54369e1263ccfbd4", all[0].Original) // sha256 of old
			require.Equal(t, "alice", all[0].Actor)
			event := history(t, s)[0]
			require.Equal(t, "amend", event.Action)
			require.NotContains(t, string(event.Detail), all[0].Original)
			require.NotContains(t, string(event.Detail), "new")
			_, err = o.Amend(t.Context(), "sms", five, alice)
			require.ErrorIs(t, err, operator.ErrNotFailing)

			lease := acquire(t, s)
			next, err := lease.NextAmended(t.Context(), "p1")
			require.NoError(t, err)
			require.Equal(t, cursor.Position("p5"), next)
			next, err = lease.NextAmended(t.Context(), "p5~")
			require.NoError(t, err)
			require.Empty(t, next)
			payload, found, err := lease.Amended(t.Context(), "p5", "t/5")
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, five.Payload, payload)
			_, found, err = lease.Amended(t.Context(), "p5", "t/6")
			require.NoError(t, err)
			require.False(t, found)
			lease.Release()

			_, err = o.Rename(t.Context(), "sms", "mail", alice)
			require.NoError(t, err)
			require.Empty(t, amendments())
			_, err = o.Unamend(t.Context(), "mail", "p5", alice)
			require.NoError(t, err)
		})
	}
}

// A worker that may not see amendments goes on while there can be none. Once there is one, it sends nothing.
func TestNextAmended_OfARoleThatMayNotSeeIt(t *testing.T) {
	t.Parallel()
	pool := database(t)
	worker := granted(t, pool, "a", operator.DutyDeliver, operator.DutyCreate)
	s := created(t, pool, "b")
	fail(t, s, true)
	pgtest.Exec(t, pool, "REVOKE ALL ON dispatch.cursor_amended FROM "+pgtest.Value[string](t, worker.Pool(), "SELECT quote_ident(current_user)"))
	o := operator.New(s)
	_, err := o.Retry(t.Context(), "sms", alice)
	require.NoError(t, err)
	lease := acquire(t, worker)
	next, err := lease.NextAmended(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, next)
	require.NoError(t, lease.Advance(t.Context(), "p4~", 1))
	require.NoError(t, lease.Halt(t.Context(), poison("p5")))
	_, err = o.Amend(t.Context(), "sms", five, alice)
	require.NoError(t, err)
	lease = acquire(t, worker)
	_, err = lease.NextAmended(t.Context(), "")
	require.ErrorIs(t, err, cursor.ErrAmendmentsHidden)
	lease.Release()

	pgtest.Exec(t, pool, "DROP TABLE dispatch.cursor_amended") // as before the migration
	lease = acquire(t, s)
	next, err = lease.NextAmended(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, next)
}

// The rights of the duties are enough, and no duty but one sees a payload.
func TestAmend_WithTheRightsOfItsDuty(t *testing.T) {
	t.Parallel()
	pool := database(t)
	created(t, pool, "a")
	fail(t, store(t, pool, "a"), true)
	decider := operator.New(granted(t, pool, "c", operator.DutyDecide))
	_, err := decider.Amend(t.Context(), "sms", five, alice)
	denied(t, err)
	both := operator.New(granted(t, pool, "d", operator.DutyDecide, operator.DutyAmend))
	_, err = both.Amend(t.Context(), "sms", five, alice)
	require.NoError(t, err)
	_, err = decider.Amendments(t.Context(), "sms", "", "q")
	denied(t, err)
	_, err = both.Unamend(t.Context(), "sms", "p5", alice)
	require.NoError(t, err)
}

func TestEraseLetters_ForgetsAmendments(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := created(t, pool, "a")
	fail(t, s, true)
	o := operator.New(s)
	_, err := o.Amend(t.Context(), "sms", five, alice)
	require.NoError(t, err)
	for _, records := range [][]string{{"6"}, {"5"}} {
		all, err := o.Amendments(t.Context(), "sms", "", "q")
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := o.EraseLetters(t.Context(), tx, []operator.LettersOf{{Process: "sms", Table: "public.t", Records: records}})
			return err
		}))
	}
	all, err := o.Amendments(t.Context(), "sms", "", "q")
	require.NoError(t, err)
	require.Empty(t, all)
}
