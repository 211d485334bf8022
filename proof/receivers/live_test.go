package receivers

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// kills is 30 in make receivers. Here it is small, so that make test stays short.
var kills = flag.Int("kills", 3, "how often the daemon is killed")

// testDir is there as long as the tests run.
var testDir string

func TestMain(m *testing.M) {
	var err error
	if testDir, err = os.MkdirTemp("", "receivers-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(testDir)
	os.Exit(code)
}

// The daemon is killed while bookings come and answers are lost. In between, the operator replays a dead letter, whose
// first request comes late, or seeks back; a superseded worker sends, or another database under the same name.
func TestLive_EachBookingIsMadeOnceInOrder(t *testing.T) {
	t.Parallel()
	for name, programs := range receivers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, program := range programs {
				w.receive(program(t))
			}
			w.start()
			stop := w.produce()
			defer stop()
			events := []func(int){w.replayDeadLetter, w.seekBack, w.sendStale, w.sendOfAnother}
			for i := range *kills {
				before := w.wire.count()
				w.await("ten requests more", func() bool { return w.wire.count() >= before+10 })
				w.kill()
				w.start()
				events[i%len(events)](i)
			}
			stop()
			w.seekBack(*kills) // so that the newest epoch reaches the receiver
			w.await("every booking", func() bool { return w.number(waitingSQL) == 0 && w.seen() == w.epoch() })
			w.kill()
			w.judge()
		})
	}
}

// replayDeadLetter books a room that does not exist yet: the receiver refuses it until the room is there. By then, its
// successors have been applied, so its first request is late. Only the replay may book it.
func (w *world) replayDeadLetter(i int) {
	room := fmt.Sprint("attic ", i)
	require.NoError(w.t, w.book(w.t.Context(), nil, room))
	open := func() int64 { return w.number("SELECT count(*) FROM public.dead_letter WHERE resolution IS NULL") }
	booked := func() int64 { return w.number("SELECT count(*) FROM public.booking WHERE room = $1", room) }
	w.await("a dead letter", func() bool { return open() == 1 })
	require.Zero(w.t, booked())
	pgtest.Exec(w.t, w.pool, "INSERT INTO public.room VALUES ($1)", room)

	first := w.wire.find(w.t, func(p post) bool { return bytes.Contains(p.body, []byte(strconv.Quote(room))) })
	w.await("a record after it", func() bool { return w.last() > first.number(w.t, "ordered-sequence") })
	got := w.send(first.with("ordered-epoch", fmt.Sprint(w.seen())))
	require.Equal(w.t, http.StatusConflict, got.status, "%s", got.body)
	require.NotEmpty(w.t, got.header.Get("ordered-sequence"))
	require.Zero(w.t, booked())

	w.await("the replay", func() bool {
		if err := w.operate("dead-letter", "replay", "--process", "bookings", "--all"); err != nil {
			w.t.Log(err) // the wire may have lost the answer
		}
		return open() == 0
	})
	require.EqualValues(w.t, 1, booked())
	replay := w.wire.find(w.t, func(p post) bool { return bytes.Contains(p.body, []byte(strconv.Quote(room))) })
	require.Equal(w.t, "true", replay.header.Get("ordered-replay"))
	for _, p := range []post{first, replay} {
		require.Equal(w.t, http.StatusOK, w.send(p).status, "a duplicate")
	}
	require.EqualValues(w.t, 1, booked())
	w.replays++
}

// seekBack goes back by a hundred records, or to the start.
func (w *world) seekBack(int) {
	const idSQL = `SELECT id FROM (SELECT id, created_at FROM public.outbox ORDER BY created_at DESC, id DESC LIMIT 100) o ORDER BY created_at, id LIMIT 1`
	require.NoError(w.t, w.operate("seek", "bookings", "--to-id", fmt.Sprint(w.number(idSQL))))
	w.seeks++
}

func (w *world) epoch() int64 { return w.number("SELECT epoch FROM public.cursor") }
func (w *world) seen() int64  { return w.number("SELECT epoch FROM public.inbox_process") }
func (w *world) last() int64  { return w.number("SELECT sequence FROM public.inbox_process") }

// send has the sender sign a request anew, and sends it past the daemon.
func (w *world) send(p post) answer {
	w.t.Helper()
	got, err := w.wire.send(p.signed(w.t))
	require.NoError(w.t, err)
	return got
}

func (w *world) isNoted(key string) bool {
	return w.number("SELECT count(*) FROM public.inbox WHERE dedup_key = $1", key) > 0
}

// sendStale sends what the worker before had on its way: a booking that was made, and one that the receiver does not
// know.
func (w *world) sendStale(i int) {
	w.await("a request of the new worker", func() bool { return w.seen() > w.wire.last(w.t, w.epoch()).epoch() })
	newest := w.seen()
	stale := w.wire.find(w.t, func(p post) bool { return p.epoch() < newest && w.isNoted(p.header.Get("ordered-dedup-key")) })
	require.Equal(w.t, http.StatusOK, w.send(stale).status, "a duplicate does no harm")
	unknown := fmt.Sprint("public.outbox/stale/", i)
	got := w.send(stale.keyed(unknown))
	require.Equal(w.t, http.StatusConflict, got.status, "%s", got.body)
	seen, err := strconv.ParseInt(got.header.Get("ordered-epoch"), 10, 64)
	require.NoError(w.t, err)
	require.Greater(w.t, seen, stale.epoch())
	require.False(w.t, w.isNoted(unknown))
}

// sendOfAnother sends what a database with a process of the same name would: with numbers and an epoch that are larger.
func (w *world) sendOfAnother(i int) {
	unknown := fmt.Sprint("public.outbox/another/", i)
	ours := w.wire.last(w.t, math.MaxInt64)
	another := ours.keyed(unknown).with("ordered-origin", "another").with("ordered-epoch", "1000000").with("ordered-sequence", "1000000")
	got := w.send(another)
	require.Equal(w.t, http.StatusConflict, got.status, "%s", got.body)
	require.Equal(w.t, ours.header.Get("ordered-origin"), got.header.Get("ordered-origin"))
	require.False(w.t, w.isNoted(unknown))
	require.Less(w.t, w.seen(), int64(1000000))
}

// Both ends of the wire: the bookings that were committed, and those that were made, in their order.
const (
	wantSQL = `SELECT string_agg(payload->>'id', ' ' ORDER BY created_at, id) FROM public.outbox WHERE payload->>'room' = 'blue'`
	gotSQL  = `SELECT string_agg(id::text, ' ' ORDER BY n) FROM public.booking WHERE room = 'blue'`
	// stateSQL is what a receiver has, as one text.
	stateSQL = `SELECT concat_ws(' ',
		(SELECT string_agg(b::text, '' ORDER BY n) FROM public.booking b),
		(SELECT string_agg(i::text, '' ORDER BY dedup_key) FROM public.inbox i),
		(SELECT string_agg(p::text, '') FROM public.inbox_process p))`
)

// judge compares both ends, and then sends once more what must change nothing.
func (w *world) judge() {
	const (
		// Dead letters came later than their place.
		wantLateSQL = `SELECT coalesce(string_agg(payload->>'id', ' ' ORDER BY created_at, id), '') FROM public.outbox WHERE payload->>'room' <> 'blue'`
		gotLateSQL  = `SELECT coalesce(string_agg(id::text, ' ' ORDER BY n), '') FROM public.booking WHERE room <> 'blue'`
	)
	text := w.text
	require.Equal(w.t, text(wantSQL), text(gotSQL))
	require.Equal(w.t, text(wantLateSQL), text(gotLateSQL))
	require.Greater(w.t, w.epoch(), int64(*kills), "the killed daemons were at work")

	before := text(stateSQL)
	w.sendStale(*kills)
	w.sendOfAnother(*kills)
	newest := w.wire.last(w.t, w.seen()+1)
	require.Equal(w.t, http.StatusOK, w.send(newest).status, "a duplicate")
	got, err := w.wire.send(newest.keyed("unsigned"))
	require.NoError(w.t, err)
	require.Equal(w.t, http.StatusUnauthorized, got.status)
	for name, value := range map[string]string{"ordered-claim-check": "true", "ordered-content-encoding": "zstd"} {
		packed := newest.keyed("packed").with(name, value).with("ordered-sequence", fmt.Sprint(w.last()+1))
		require.Equal(w.t, http.StatusUnprocessableEntity, w.send(packed).status, name)
	}
	require.Equal(w.t, before, text(stateSQL))
	w.t.Logf("%d bookings, %d requests, %d kills, %d replays, %d seeks, epoch %d: none lost, none twice, none out of order",
		w.number("SELECT count(*) FROM public.booking"), w.wire.count(), *kills, w.replays, w.seeks, w.epoch())
}
