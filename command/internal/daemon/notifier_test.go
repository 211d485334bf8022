package daemon_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/notify"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

const alarmSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// onCall is a receiver of alarms that verifies their signatures.
type onCall struct {
	*httptest.Server
	mu     sync.Mutex
	alarms []notify.Alarm
	ids    []string
	fail   atomic.Int64                  // how many requests it still refuses
	hold   atomic.Pointer[chan struct{}] // answers once this is closed
	tried  atomic.Int64
}

func newOnCall(t testing.TB) *onCall {
	t.Helper()
	verifier, err := standardwebhooks.NewWebhook(alarmSecret)
	require.NoError(t, err)
	o := &onCall{}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.tried.Add(1)
		body, err := io.ReadAll(r.Body) // the server notices that a client has gone only after that
		if hold := o.hold.Load(); hold != nil {
			select {
			case <-*hold:
			case <-r.Context().Done():
			}
		}
		if err != nil || verifier.Verify(body, r.Header) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if o.fail.Add(-1) >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var message struct{ Data notify.Message }
		if json.Unmarshal(body, &message) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.alarms = append(o.alarms, message.Data.Alarms...)
		o.ids = append(o.ids, r.Header.Get("webhook-id"))
	}))
	t.Cleanup(o.Close)
	return o
}

// got are the alarms so far, each in one line.
func (o *onCall) got() (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.alarms {
		all = append(all, fmt.Sprintf("%s %s %s", a.Process, a.Event, a.Status))
	}
	return all
}

func (o *onCall) alarm(at int) notify.Alarm {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.alarms[at]
}

func (o *onCall) until(t testing.TB, want ...string) {
	t.Helper()
	require.Eventually(t, func() bool { return slices.Equal(want, o.got()) }, patience, 5*time.Millisecond, "%v", want)
}

// alarming is a configuration that tells an on-call service, and is settled soon.
func alarming(t testing.TB, o *onCall, processes string) daemon.Config {
	t.Helper()
	config := configure(t, pgtest.URL(t), processes)
	config.Notify = daemon.Notify{Settle: 200 * time.Millisecond, Targets: []notify.Target{
		{Name: "on_call", Webhook: &notify.Webhook{URL: o.URL, Secret: alarmSecret}},
	}}
	return config
}

// workers are the notifiers of several workers with one configuration.
func workers(t testing.TB, config daemon.Config, n int) []daemon.Notifier {
	t.Helper()
	all := make([]daemon.Notifier, n)
	for i := range all {
		all[i] = daemon.NewNotifier(t, config)
	}
	return all
}

// together makes all workers look at once.
func together(t testing.TB, all []daemon.Notifier) {
	t.Helper()
	var looking sync.WaitGroup
	for _, n := range all {
		looking.Go(func() { n.Round(t.Context()) })
	}
	looking.Wait()
}

// halt makes the cursor of process a, and halts it at a record that is rejected.
func halt(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	created(t, pool)
	haltAt(t, pool, "1")
}

// haltAt halts process a at a record.
func haltAt(t testing.TB, pool *pgxpool.Pool, id string) {
	t.Helper()
	exec(t, pool, fmt.Sprintf(`UPDATE od.cursor SET state = 'halted', failed_position = 'int:%s', failed_record_id = '%[1]s', failed_attempts = 1,
		first_failed_at = clock_timestamp(), last_failed_at = clock_timestamp(), failed_error = 'the receiver said CANARY', failed_class = 'permanent'`, id))
}

// goOn lets process a go on.
func goOn(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	exec(t, pool, `UPDATE od.cursor SET state = 'running', failed_position = NULL, failed_record_id = NULL, failed_attempts = 0,
		first_failed_at = NULL, last_failed_at = NULL, failed_error = NULL, failed_class = NULL`)
}

// earlier moves the times that the table has into the past, as if time had passed.
func earlier(t testing.TB, pool *pgxpool.Pool, by string) {
	t.Helper()
	exec(t, pool, fmt.Sprintf("UPDATE od.cursor_alarm SET told_at = told_at - interval '%s', gone_since = gone_since - interval '%[1]s', claimed_until = claimed_until - interval '%[1]s'", by))
}

func TestNotify_WorkersThatLookAtOnceSendOneMessage(t *testing.T) {
	t.Parallel()
	pool, o := database(t), newOnCall(t)
	all := workers(t, alarming(t, o, stdoutProcess), 5)
	halt(t, pool)
	for range 5 {
		together(t, all)
	}
	require.Equal(t, []string{"a halt raised"}, o.got())
	goOn(t, pool)
	together(t, all)
	require.Len(t, o.got(), 1, "it is not settled")
	earlier(t, pool, "1 minute")
	for range 5 {
		together(t, all)
	}
	require.Equal(t, []string{"a halt raised", "a halt recovered"}, o.got())
	require.EqualValues(t, 2, o.tried.Load(), "no other request either")
}

func TestNotify_NoOtherWorkerTellsWhileOneDoes(t *testing.T) {
	t.Parallel()
	pool, o := database(t), newOnCall(t)
	all := workers(t, alarming(t, o, stdoutProcess), 2)
	halt(t, pool)
	hold, done := make(chan struct{}), make(chan struct{})
	o.hold.Store(&hold)
	go func() {
		defer close(done)
		all[0].Round(t.Context())
	}()
	require.Eventually(t, func() bool { return o.tried.Load() == 1 }, patience, time.Millisecond)
	for range 3 {
		all[1].Round(t.Context())
	}
	require.EqualValues(t, 1, o.tried.Load())
	close(hold)
	<-done
	require.Equal(t, []string{"a halt raised"}, o.got())
}

func TestNotify_NoOtherWorkerTellsWhatWasToldSinceItLooked(t *testing.T) {
	t.Parallel()
	pool, o := database(t), newOnCall(t)
	all := workers(t, alarming(t, o, stdoutProcess), 2)
	halt(t, pool)
	all[1].Between(t, func() { all[0].Round(t.Context()) })
	require.Equal(t, []string{"a halt raised"}, o.got())
}

// A recovery without an alarm would be noise after each start.
func TestNotify_NoRecoveryWithoutAnAlarm(t *testing.T) {
	t.Parallel()
	pool, o := database(t), newOnCall(t)
	all := workers(t, alarming(t, o, stdoutProcess), 2)
	created(t, pool)
	for range 3 {
		together(t, all)
	}
	require.Empty(t, o.got())
}

func TestNotify_AWorkerThatTakesOverSendsNothingAgain(t *testing.T) {
	t.Parallel()
	pool, o := database(t), newOnCall(t)
	config := alarming(t, o, stdoutProcess)
	halt(t, pool)
	workers(t, config, 1)[0].Round(t.Context())
	require.Equal(t, []string{"a halt raised"}, o.got())
	goOn(t, pool)
	later := workers(t, config, 1)[0]
	later.Round(t.Context())
	earlier(t, pool, "1 minute")
	workers(t, config, 1)[0].Round(t.Context())
	require.Equal(t, []string{"a halt raised", "a halt recovered"}, o.got(), "it has seen the cause neither come nor go")
}

// The worker dies between the message and its note.
func TestNotify_AMessageThatWasNotNotedComesAgainUnderTheSameID(t *testing.T) {
	t.Parallel()
	pool, o := database(t), newOnCall(t)
	config := alarming(t, o, stdoutProcess)
	halt(t, pool)
	exec(t, pool, `CREATE FUNCTION public.lost() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
		CREATE TRIGGER lost BEFORE UPDATE ON od.cursor_alarm FOR EACH ROW WHEN (NEW.messages > OLD.messages) EXECUTE FUNCTION public.lost()`)
	all := workers(t, config, 2)
	all[0].Round(t.Context())
	all[1].Round(t.Context())
	require.Equal(t, []string{"a halt raised"}, o.got(), "the claim holds")
	exec(t, pool, "DROP TRIGGER lost ON od.cursor_alarm")
	earlier(t, pool, "10 minutes")
	together(t, all)
	require.Equal(t, []string{"a halt raised", "a halt raised"}, o.got())
	require.Equal(t, o.ids[0], o.ids[1])
	require.Equal(t, o.alarm(0).ID, o.alarm(1).ID)
	together(t, all)
	require.Len(t, o.got(), 2)
}

func TestNotify_ATargetThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	pool, o := database(t), newOnCall(t)
	all := workers(t, alarming(t, o, stdoutProcess), 2)
	halt(t, pool)
	o.fail.Store(3)
	all[0].Round(t.Context())
	all[0].Round(t.Context())
	require.EqualValues(t, 1, o.tried.Load(), "it waits")
	all[1].Round(t.Context())
	require.EqualValues(t, 2, o.tried.Load(), "the claim was released, and another worker may reach it")
	for range 2 {
		all[0].Impatient()
		all[0].Round(t.Context())
	}
	require.Equal(t, []string{"a halt raised"}, o.got())
}

func TestNotify_FlappingIsDamped(t *testing.T) {
	t.Parallel()
	pool, o := database(t), newOnCall(t)
	config := alarming(t, o, stdoutProcess)
	config.Notify.Settle, config.Notify.Remind = time.Minute, 4*time.Hour
	n := workers(t, config, 1)[0]
	halt(t, pool)
	look := func(ago string, want ...string) {
		t.Helper()
		earlier(t, pool, ago)
		n.Round(t.Context())
		n.Round(t.Context())
		require.Equal(t, want, o.got())
		o.mu.Lock()
		defer o.mu.Unlock()
		o.alarms = nil
	}
	look("0", "a halt raised")
	goOn(t, pool)
	look("10 seconds")
	haltAt(t, pool, "1")
	look("10 seconds")
	goOn(t, pool)
	look("10 seconds")
	look("50 seconds")
	look("15 seconds", "a halt recovered")
	haltAt(t, pool, "1")
	look("5 minutes", "a halt raised")
	goOn(t, pool)
	look("5 minutes")
	look("61 seconds")
	look("61 seconds", "a halt recovered")
	haltAt(t, pool, "2")
	look("2 hours", "a halt raised")
	haltAt(t, pool, "3")
	look("30 seconds")
	look("40 seconds", "a halt raised")
	look("3 hours")
	look("2 hours", "a halt reminded")
	goOn(t, pool)
	look("0")
	look("61 seconds", "a halt recovered")
}

const poisoned = `  a: {source: {table: public.bookings}, sink: {sql: {statement: "INSERT INTO public.effects SELECT 1 / (@id::int - 1)"}}, poll: 20ms}
`

// The whole: two daemons, a halt of a real delivery, and a decision.
func TestNotify_TwoDaemonsSendOneMessageOfAHaltAndOneOfTheRecovery(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "CREATE TABLE public.effects (n int)")
	o := newOnCall(t)
	config := alarming(t, o, poisoned)
	one, two := monitor(t, config), monitor(t, config)
	insert(t, pool, 1)
	o.until(t, "a halt raised")
	alarm := o.alarm(0)
	require.Equal(t, "halted", alarm.State)
	require.Equal(t, "permanent", alarm.Class)
	require.Equal(t, "ordered-dispatcher status a", alarm.Next)
	require.NotZero(t, alarm.Since)
	_, err := operatorOf(t, config).Skip(t.Context(), cursor.Decision{Actor: "t", Reason: "r"})
	require.NoError(t, err)
	o.until(t, "a halt raised", "a halt recovered")
	one.stop()
	two.stop()
	require.NoError(t, <-one.done)
	require.NoError(t, <-two.done)
	require.Equal(t, []string{"a halt raised", "a halt recovered"}, o.got())
	require.Equal(t, 2, count(t, pool, "SELECT messages::int FROM od.cursor_alarm"))
}
