package daemon_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

const pinnedFor = "vacuum removes no newer dead row of this database, and CREATE INDEX CONCURRENTLY may wait for it: the sink's `timeout` and `checkpoint` bound it to "

// TestStatus_SaysWhatACallKeepsVacuumFrom, and for how long it may.
func TestStatus_SaysWhatACallKeepsVacuumFrom(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s, err := cursor.NewStore(pool, cursor.Config{Schema: schema})
	require.NoError(t, err)
	_, err = s.Create(t.Context(), "a", "")
	require.NoError(t, err)
	lease(t, s)
	exec(t, pool, "SELECT pg_sleep(5.1)")
	var xid *string
	require.NoError(t, pool.QueryRow(t.Context(),
		"SELECT backend_xid::text FROM pg_stat_activity WHERE datname = current_database() AND starts_with(application_name, $1)", cursor.ApplicationLease).Scan(&xid))
	require.NotNil(t, xid, "its transaction id is what vacuum stops at")
	config := configure(t, pgtest.URL(t), "  a: {source: {table: public.bookings}, sink: {webhook: {url: 'http://127.0.0.1:1', timeout: 7s}}, checkpoint: 3}\n")
	var all []daemon.Status
	require.Eventually(t, func() bool { // once the worker has said for how long its call goes on
		all, _, _ = status(t, config, "a")
		return all[0].Hold != nil
	}, patience, 20*time.Millisecond)
	require.Contains(t, all[0].Hold.Text, pinnedFor+"41s") // 5 s for a read, three calls of 7 s and 5 s
	f := requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Note, "a call of the receiver goes on since ", "see what the receiver does"})
	require.Contains(t, f.Problem, pinnedFor+"41s")
}

// TestDoctor_NamesALeaseThatMayBeOpenForLong, before it is.
func TestDoctor_NamesALeaseThatMayBeOpenForLong(t *testing.T) {
	t.Parallel()
	database(t)
	config := configure(t, pgtest.URL(t), "  a: {source: {table: public.bookings}, sink: {webhook: {url: 'http://127.0.0.1:1', timeout: 25s}}, checkpoint: 50}\n")
	requireFinding(t, doctor(t, config), daemon.Finding{"a", daemon.Note, "a transaction of its lease may be open for 25m5s", "lower the sink's `timeout` or `checkpoint`"})
}

// TestMetrics_ShowALeaseThatIsOpenAndWhoLeads while a call goes on.
func TestMetrics_ShowALeaseThatIsOpenAndWhoLeads(t *testing.T) {
	t.Parallel()
	pool := database(t)
	insert(t, pool, 1)
	arrived, answer := make(chan struct{}, 1), make(chan struct{})
	config := configure(t, pgtest.URL(t), webhookTo(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the end of the request goes unnoticed
		arrived <- struct{}{}
		select {
		case <-answer:
		case <-r.Context().Done():
		}
	}))
	sink := config.Processes[0].Sink.Config.(*webhook.Config)
	sink.Timeout = patience
	m := monitor(t, config)
	<-arrived
	require.Positive(t, m.series()["lease_open_seconds"])
	m.until("leads", is(1))
	other := monitor(t, configure(t, pgtest.URL(t), stdoutProcess))
	other.until("epoch", is(1))
	require.Zero(t, other.series()["leads"])
	require.Zero(t, other.series()["lease_open_seconds"])
	require.EqualValues(t, 5+patience.Seconds()+5, m.series()["lease_open_bound_seconds"])
	close(answer)
	m.until("lease_open_seconds", is(0))
	require.Eventually(t, func() bool { return m.series()["leads"]+other.series()["leads"] == 1 }, patience, 20*time.Millisecond, "the other one may take over by now")
}
