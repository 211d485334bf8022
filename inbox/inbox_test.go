package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

func made(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Database(t)
	pgtest.Exec(t, pool, box(t, false).SQL())
	pgtest.Exec(t, pool, "CREATE TABLE public.effect (n int GENERATED ALWAYS AS IDENTITY, key text)")
	return pool
}

func box(t *testing.T, refuseGaps bool) *inbox.Inbox {
	t.Helper()
	i, err := inbox.New(inbox.Config{Receiver: "c", RefuseGaps: refuseGaps})
	require.NoError(t, err)
	return i
}

func message(sequence, epoch int64, key string) inbox.Message {
	return inbox.Message{Process: "p", Origin: "o", Sequence: sequence, Epoch: epoch, DedupKey: key}
}

func replay(sequence, epoch int64, key string) inbox.Message {
	m := message(sequence, epoch, key)
	m.Replay = true
	return m
}

func in(stream string, m inbox.Message) inbox.Message {
	m.Stream = stream
	return m
}

func from(origin string, m inbox.Message) inbox.Message {
	m.Origin = origin
	return m
}

// handle applies a message in a transaction of its own. Its effect is a row.
func handle(t *testing.T, pool *pgxpool.Pool, m inbox.Message) (inbox.Outcome, error) {
	return handleIn(t, box(t, false), pool, m)
}

func handleIn(t *testing.T, i *inbox.Inbox, pool *pgxpool.Pool, m inbox.Message) (outcome inbox.Outcome, err error) {
	ctx := t.Context()
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) (err error) {
		outcome, err = i.Handle(ctx, tx, m, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO public.effect (key) VALUES ($1)", m.DedupKey)
			return err
		})
		return err
	})
	return outcome, err
}

func effects(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	return pgtest.Value[string](t, pool, "SELECT coalesce(string_agg(key, ' ' ORDER BY n), '') FROM public.effect")
}

func TestHandle_AppliesEachRecordOnce(t *testing.T) {
	t.Parallel()
	pool := made(t)
	for _, step := range []struct {
		m    inbox.Message
		want inbox.Outcome
	}{
		{message(1, 1, "a"), inbox.Applied},
		{message(1, 1, "a"), inbox.Duplicate},
		{message(2, 1, "b"), inbox.Applied},
		{message(1, 2, "a"), inbox.Duplicate},  // a take-over
		{message(9, 2, "c"), inbox.Applied},    // a gap
		{message(10, 3, "a"), inbox.Duplicate}, // a seek back
		{replay(3, 4, "d"), inbox.Applied},     // a dead letter
		{message(9, 1, "c"), inbox.Duplicate},  // a broker is set back, or a superseded worker repeats
	} {
		got, err := handle(t, pool, step.m)
		require.NoError(t, err, step.m)
		require.Equal(t, step.want, got, step.m)
	}
	require.Equal(t, "a b c d", effects(t, pool))
	require.Equal(t, notes{Origin: "o", Epoch: 3, Sequence: 10, DedupKeys: []string{"a", "b", "c", "d"}}, noted(t, pool, "p"))
}

func TestHandle_RefusesASupersededWorker(t *testing.T) {
	t.Parallel()
	pool := made(t)
	_, err := handle(t, pool, message(1, 1, "a"))
	require.NoError(t, err)
	_, err = handle(t, pool, message(1, 7, "a")) // a duplicate raises the epoch, too
	require.NoError(t, err)
	_, err = handle(t, pool, message(2, 6, "b"))
	var stale *inbox.StaleError
	require.ErrorAs(t, err, &stale)
	require.EqualValues(t, 7, stale.Seen)
	require.EqualError(t, err, `inbox: record "b" of process "p" has epoch 6, and epoch 7 has come: another worker has taken over`)
	require.Equal(t, "a", effects(t, pool))
}

// Its record was put aside after time-outs, and those after it were sent.
func TestHandle_RefusesALateRequest(t *testing.T) {
	t.Parallel()
	pool := made(t)
	for _, m := range []inbox.Message{message(1, 1, "a"), message(3, 1, "c")} {
		_, err := handle(t, pool, m)
		require.NoError(t, err)
	}
	_, err := handle(t, pool, message(2, 1, "b"))
	var late *inbox.LateError
	require.ErrorAs(t, err, &late)
	require.EqualValues(t, 3, late.Last)
	require.EqualError(t, err, `inbox: record "b" of process "p" comes late: it has number 2, and number 3 has come`)
	_, err = handle(t, pool, replay(2, 2, "b"))
	require.NoError(t, err, "an operator replays it")
	require.Equal(t, "a c b", effects(t, pool))
}

// Decision 9: a worker ends in a call, and the rows of that call are deleted before the next one reads them.
func TestHandle_TheNextWorkerMayGiveANumberToAnotherRecord(t *testing.T) {
	t.Parallel()
	pool := made(t)
	for i, key := range []string{"a", "b", "c"} {
		_, err := handle(t, pool, message(int64(i+1), 1, key))
		require.NoError(t, err)
	}
	failed := errors.New("failed")
	for _, effect := range []error{failed, nil} {
		for i, key := range []string{"d", "e", "f"} {
			err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				_, err := box(t, false).Handle(t.Context(), tx, message(int64(i+2), 2, key), func(context.Context, pgx.Tx) error { return effect })
				return err
			})
			require.ErrorIs(t, err, effect, key)
		}
	}
	require.Equal(t, notes{Origin: "o", Epoch: 2, Sequence: 4, DedupKeys: []string{"a", "b", "c", "d", "e", "f"}}, noted(t, pool, "p"))
}

// As above, but an answer of GET /records, or a dead letter, comes before the first record of the new epoch.
func TestHandle_AReplayBeginsNoEpoch(t *testing.T) {
	t.Parallel()
	pool, strict := made(t), box(t, true)
	for _, m := range []inbox.Message{
		message(9, 1, "a"), message(10, 1, "b"), message(11, 1, "c"),
		replay(4, 2, "d"), replay(10, 2, "e"),
		message(10, 2, "f"), message(11, 2, "g"),
	} {
		_, err := handleIn(t, strict, pool, m)
		require.NoError(t, err, m)
	}
	require.Equal(t, "a b c d e f g", effects(t, pool))
	var stale *inbox.StaleError
	_, err := handle(t, pool, replay(4, 1, "h"))
	require.ErrorAs(t, err, &stale)
}

// A receiver of a broker could not apply a message, and puts it aside: its transaction with Handle is rolled back.
func TestNoteEpoch_RefusesASupersededWorkerAfterAMessageThatWasPutAside(t *testing.T) {
	t.Parallel()
	pool, i := made(t), box(t, false)
	note := func(m inbox.Message) error {
		return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return i.NoteEpoch(t.Context(), tx, m) })
	}
	_, err := handle(t, pool, in("q", message(1, 1, "a")))
	require.NoError(t, err)
	require.NoError(t, note(in("q", message(2, 2, "poison"))))
	var stale *inbox.StaleError
	_, err = handle(t, pool, in("q", message(2, 1, "b")))
	require.ErrorAs(t, err, &stale)
	_, err = handle(t, pool, in("q", message(3, 2, "c")))
	require.NoError(t, err)
	require.NoError(t, note(in("q", message(3, 1, "d"))), "it never falls")
	require.Equal(t, "a c", effects(t, pool))

	var origin *inbox.OriginError
	require.ErrorAs(t, note(from("other", in("q", message(4, 9, "e")))), &origin)
	require.ErrorIs(t, note(inbox.Message{}), inbox.ErrMessage)
}

func TestHandle_RefusesGapsIfToldTo(t *testing.T) {
	t.Parallel()
	pool, strict := made(t), box(t, true)
	_, err := handleIn(t, strict, pool, message(5, 1, "a"))
	require.NoError(t, err, "the first is no gap")
	_, err = handleIn(t, strict, pool, message(7, 2, "c"))
	var gap *inbox.GapError
	require.ErrorAs(t, err, &gap)
	require.EqualValues(t, 5, gap.Last)
	_, err = handleIn(t, strict, pool, message(6, 2, "b"))
	require.NoError(t, err)
	_, err = handleIn(t, strict, pool, message(7, 2, "c"))
	require.NoError(t, err)
	require.Equal(t, "a b c", effects(t, pool))
}

func TestHandle_ASeekToBeforeTheLastRecordClosesAGap(t *testing.T) {
	t.Parallel()
	pool, strict := made(t), box(t, true)
	var gap *inbox.GapError
	for _, step := range []struct {
		m   inbox.Message
		gap bool
	}{
		{message(1, 1, "a"), false},
		{message(3, 1, "c"), true},
		{message(10_004, 2, "b"), true}, // a seek to after the last record
		{message(20_003, 3, "a"), false},
		{message(20_004, 3, "b"), false},
		{message(20_005, 3, "c"), false},
	} {
		_, err := handleIn(t, strict, pool, step.m)
		require.Equal(t, step.gap, errors.As(err, &gap), "%v: %v", step.m, err)
	}
	require.Equal(t, "a b c", effects(t, pool))
}

func TestAcceptGap_LetsTheRecordAfterTheGapIn(t *testing.T) {
	t.Parallel()
	pool, strict := made(t), box(t, true)
	accept := func(stream string, through int64) error {
		return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return strict.AcceptGap(t.Context(), tx, "p", stream, through) })
	}
	require.ErrorContains(t, accept("", 5), `receiver "c" has no record of process "p" in stream ""`)
	_, err := handleIn(t, strict, pool, message(1, 1, "a"))
	require.NoError(t, err)
	var gap *inbox.GapError
	_, err = handleIn(t, strict, pool, message(4, 1, "d"))
	require.ErrorAs(t, err, &gap)
	require.NoError(t, accept("", 3))
	require.NoError(t, accept("", 2), "it never falls")
	_, err = handleIn(t, strict, pool, message(4, 2, "d"))
	require.NoError(t, err)
	require.Equal(t, "a d", effects(t, pool))
}

// Two databases have a process of one name, and tables without created_at: their records have the same dedup keys.
func TestHandle_RefusesAnotherSenderUnderTheSameName(t *testing.T) {
	t.Parallel()
	pool, i := made(t), box(t, false)
	var origin *inbox.OriginError
	refused := func(m inbox.Message) {
		t.Helper()
		_, err := handle(t, pool, m)
		require.ErrorAs(t, err, &origin, "%v", m)
	}
	_, err := handle(t, pool, in("1", message(1, 1, "public.t/1")))
	require.NoError(t, err)
	refused(from("other", in("1", message(1, 9, "public.t/1"))))
	refused(from("other", in("2", message(1, 9, "public.t/1")))) // in a stream that has no record yet
	require.Equal(t, "o", origin.Noted)
	require.ErrorContains(t, origin, `has origin "other", and the records before have "o": two senders use one name`)

	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return i.AcceptOrigin(t.Context(), tx, "p", "other") }))
	refused(in("1", message(2, 9, "public.t/2")))
	refused(in("2", message(2, 9, "public.t/2")))
	got, err := handle(t, pool, from("other", in("1", message(1, 1, "public.t/1"))))
	require.NoError(t, err, "its numbers are its own")
	require.Equal(t, inbox.Duplicate, got)
	_, err = handle(t, pool, from("other", in("2", message(2, 1, "public.t/2"))))
	require.NoError(t, err)
	require.Equal(t, "public.t/1 public.t/2", effects(t, pool))
}

// Two first records, of two senders and in two streams, at the same time: one sender is refused.
func TestHandle_StreamsThatBeginAtOnceHaveOneOrigin(t *testing.T) {
	t.Parallel()
	pool := made(t)
	for round := range 20 {
		var errs [8]error
		var group sync.WaitGroup
		for i := range errs {
			m := from(fmt.Sprint(i%2), in(fmt.Sprint(i), message(1, 1, fmt.Sprint(round, "/", i))))
			m.Process = fmt.Sprint(round)
			group.Go(func() { _, errs[i] = handle(t, pool, m) })
		}
		group.Wait()
		for i, err := range errs {
			require.Equal(t, errs[i%2] == nil, err == nil, err)
		}
		require.NotEqual(t, errs[0] == nil, errs[1] == nil)
	}
}

// A partition that lags behind a take-over has records of the worker before.
func TestHandle_EachStreamHasItsOwnEpochAndSequence(t *testing.T) {
	t.Parallel()
	pool := made(t)
	for _, m := range []inbox.Message{in("0", message(2, 1, "b")), in("0", message(3, 2, "c")), in("1", message(1, 1, "a")), in("1", message(4, 2, "d"))} {
		_, err := handle(t, pool, m)
		require.NoError(t, err)
	}
	var stale *inbox.StaleError
	_, err := handle(t, pool, in("1", message(5, 1, "e")))
	require.ErrorAs(t, err, &stale)
	got, err := handle(t, pool, in("1", message(9, 3, "b")))
	require.NoError(t, err)
	require.Equal(t, inbox.Duplicate, got, "dedup keys belong to the process")
	require.Equal(t, "b c a d", effects(t, pool))
}

// A stream has only some numbers of its process. So each record would be refused for ever, or a loss go unnoticed.
func TestHandle_RefusesNoGapsInStreams(t *testing.T) {
	t.Parallel()
	pool := made(t)
	_, err := handleIn(t, box(t, true), pool, in("topic/0", message(1, 1, "a")))
	require.ErrorIs(t, err, inbox.ErrStreamGaps)
	require.ErrorContains(t, err, `set RefuseGaps to false, or leave Message.Stream empty if all records of the process come in one order: process "p", stream "topic/0"`)
	require.Empty(t, effects(t, pool))
	require.Zero(t, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.inbox_process"), "nothing is noted")
	_, err = handleIn(t, box(t, true), pool, message(1, 1, "a"))
	require.NoError(t, err)
}

func TestHandle_AnEffectThatFailsLeavesNoNote(t *testing.T) {
	t.Parallel()
	pool := made(t)
	broken := errors.New("broken")
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := inbox.Handle(t.Context(), tx, "c", message(1, 1, "a"), func(context.Context, pgx.Tx) error { return broken })
		return err
	})
	require.ErrorIs(t, err, broken)
	got, err := handle(t, pool, message(1, 1, "a"))
	require.NoError(t, err)
	require.Equal(t, inbox.Applied, got)
}

// PostgreSQL answers the COMMIT of such a transaction with a ROLLBACK. After a replay there is no statement that would
// fail before.
func TestHandle_AnEffectThatHidesAnErrorIsNamed(t *testing.T) {
	t.Parallel()
	pool := made(t)
	for _, m := range []inbox.Message{message(1, 1, "a"), replay(1, 1, "a")} {
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			outcome, err := box(t, false).Handle(t.Context(), tx, m, func(ctx context.Context, tx pgx.Tx) error {
				_, _ = tx.Exec(ctx, "SELECT 1/0")
				return nil
			})
			require.Zero(t, outcome)
			return err
		})
		require.ErrorContains(t, err, "a statement of the effect failed, and the effect returned no error, or the effect ended the transaction, or rolled back to a savepoint from before it: return the error, or use a savepoint of the effect")
		require.Zero(t, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.inbox"))
	}
}

// The note of the record is committed with the first part of the effect, and the caller would commit the rest.
func TestHandle_AnEffectThatBeginsAnotherTransactionIsNamed(t *testing.T) {
	t.Parallel()
	pool := made(t)
	for i, ends := range []string{"COMMIT; BEGIN", "ROLLBACK; BEGIN", "COMMIT AND CHAIN"} {
		m := message(int64(i+1), 1, ends)
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := box(t, false).Handle(t.Context(), tx, m, func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Exec(ctx, ends+"; INSERT INTO public.effect (key) VALUES ('the rest')")
				return err
			})
			return err
		})
		require.ErrorContains(t, err, "or the effect ended the transaction", ends)
		require.Empty(t, effects(t, pool), ends)
	}
}

// A savepoint that was set before Handle has the note after it, and so a rollback to it undoes the note.
func TestHandle_AnEffectThatRollsBackItsNoteIsNamed(t *testing.T) {
	t.Parallel()
	pool := made(t)
	for i, undo := range []string{"ROLLBACK TO mine", "ROLLBACK TO mine; RELEASE mine"} {
		for _, m := range []inbox.Message{message(int64(i+1), 1, undo), replay(int64(i+1), 1, undo)} {
			err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				pgtest.Exec(t, tx, "SAVEPOINT mine")
				outcome, err := box(t, false).Handle(t.Context(), tx, m, func(ctx context.Context, tx pgx.Tx) error {
					pgtest.Exec(t, tx, undo+"; INSERT INTO public.effect (key) VALUES ('the rest'); SET LOCAL ROLE pg_monitor")
					return nil
				})
				require.Zero(t, outcome)
				return err
			})
			require.ErrorContains(t, err, "or rolled back to a savepoint from before it", undo)
			require.Empty(t, effects(t, pool), undo)
		}
	}
}

// The savepoints of an effect, and one of the caller that is released, leave the note. So does an effect that applies
// another message.
func TestHandle_SavepointsThatLeaveTheNoteAreNoFault(t *testing.T) {
	t.Parallel()
	pool := made(t)
	apply := func(sql string) func(context.Context, pgx.Tx) error {
		return func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, sql)
			return err
		}
	}
	const own = "SAVEPOINT own; INSERT INTO public.effect (key) VALUES ('undone'); ROLLBACK TO own; INSERT INTO public.effect (key) VALUES ('a')"
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		pgtest.Exec(t, tx, "SAVEPOINT mine")
		outcome, err := box(t, false).Handle(t.Context(), tx, message(1, 1, "a"), apply(own+"; RELEASE own; RELEASE mine"))
		require.Equal(t, inbox.Applied, outcome)
		return err
	}))
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := box(t, false).Handle(t.Context(), tx, message(2, 1, "b"), func(ctx context.Context, tx pgx.Tx) error {
			_, err := box(t, false).Handle(ctx, tx, message(3, 1, "c"), apply("INSERT INTO public.effect (key) VALUES ('b and c')"))
			return err
		})
		return err
	}))
	require.Equal(t, "a b and c", effects(t, pool))
	require.Equal(t, notes{Origin: "o", Epoch: 1, Sequence: 3, DedupKeys: []string{"a", "b", "c"}}, noted(t, pool, "p"))
}

// Two calls with one message at the same time: one applies it, and the other waits and finds that.
func TestHandle_TwoAtOnceApplyOnce(t *testing.T) {
	t.Parallel()
	pool := made(t)
	for i := range 50 {
		var outcomes [8]inbox.Outcome
		var group sync.WaitGroup
		for j := range outcomes {
			group.Go(func() { outcomes[j], _ = handle(t, pool, message(int64(i+1), 1, string(rune('A'+i)))) })
		}
		group.Wait()
		applied := 0
		for _, o := range outcomes {
			require.NotZero(t, o)
			if o == inbox.Applied {
				applied++
			}
		}
		require.Equal(t, 1, applied)
	}
	require.Equal(t, 50, pgtest.Value[int](t, pool, "SELECT count(*) FROM public.effect"))
}

// Without its stream, a partition's records would look late beside those of another partition.
func TestFromHeaders_TheMessageHasItsStream(t *testing.T) {
	t.Parallel()
	values := map[string]string{"ordered-version": "1", "ordered-process": "p", "ordered-origin": "o", "ordered-sequence": "7", "ordered-epoch": "1", "ordered-dedup-key": "a"}
	get := func(name string) string { return values[name] }
	m, err := inbox.FromHeaders("orders/1", get)
	require.NoError(t, err)
	require.Equal(t, in("orders/1", message(7, 1, "a")), m)
	for _, text := range []string{"", "+7", "-7", " 7", "7 ", "0x7", "7_0", "٧", "9223372036854775808", strings.Repeat("0", 19) + "7"} {
		values["ordered-sequence"] = text
		_, err = inbox.FromHeaders("", get)
		require.ErrorIs(t, err, inbox.ErrMessage, text)
		require.ErrorContains(t, err, "ordered-sequence is ", text)
	}
}

func TestHandle_RefusesWhatIsNoMessage(t *testing.T) {
	t.Parallel()
	pool := made(t)
	_, err := handle(t, pool, inbox.Message{Process: "p", Sequence: 1, Epoch: 1})
	require.ErrorIs(t, err, inbox.ErrMessage)
	require.ErrorContains(t, err, "it lacks a process, an origin, a dedup key, a sequence or an epoch")
}

// An operator renames a process, and its last record comes again under the new name.
func TestRename_KeepsWhatIsKnownOfAProcess(t *testing.T) {
	t.Parallel()
	pool, i := made(t), box(t, false)
	rename := func(from, to string) error {
		return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return i.Rename(t.Context(), tx, from, to) })
	}
	renamed := func(m inbox.Message) inbox.Message {
		m.Process = "renamed"
		return m
	}
	require.EqualError(t, rename("p", "renamed"), `inbox: rename process "p": receiver "c" has no record of it`)
	for n := range int64(2) {
		_, err := handle(t, pool, in(fmt.Sprint(n), message(n+1, 3, fmt.Sprint(n))))
		require.NoError(t, err)
	}
	require.NoError(t, rename("p", "renamed"))
	got, err := handle(t, pool, renamed(in("0", message(1, 4, "0"))))
	require.NoError(t, err)
	require.Equal(t, inbox.Duplicate, got)
	var stale *inbox.StaleError
	_, err = handle(t, pool, renamed(in("1", message(3, 2, "2"))))
	require.ErrorAs(t, err, &stale)
	_, err = handle(t, pool, message(1, 1, "other"))
	require.NoError(t, err, "another process has the old name")
	require.EqualError(t, rename("p", "renamed"), `inbox: rename process "p": receiver "c" has records under the name "renamed" already`)
	require.ErrorContains(t, rename("p", ""), "the new name is empty")
}
