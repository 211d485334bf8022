package main_test

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// A receiver that follows docs/wire.md answers a test and does nothing, before and after real records.
func TestSendTest_ReachesTheReceiverAndChangesNothing(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 3)
	const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	var applied atomic.Int32
	box, err := inbox.New(inbox.Config{Receiver: "test", RefuseGaps: true})
	require.NoError(t, err)
	pgtest.Exec(t, pool, box.SQL())
	handler, err := box.Handler(pool, inbox.HandlerConfig{Secret: secret}, func(context.Context, pgx.Tx, inbox.Request) error {
		applied.Add(1)
		return nil
	})
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	config := processes(t, map[string]string{"a": "webhook: {url: '" + server.URL + "', secret: '" + secret + "'}"})
	sent := func() {
		t.Helper()
		notes := func() string {
			return pgtest.Value[string](t, pool, "SELECT coalesce((SELECT string_agg(p::text, ';') FROM public.inbox_process p), '') || (SELECT count(*) FROM public.inbox)")
		}
		cursors := func() string {
			return pgtest.Value[string](t, pool, "SELECT coalesce(string_agg(c::text, ';'), '') FROM public.cursor c")
		}
		before, rows, calls := notes(), cursors(), applied.Load()
		code, stdout, stderr := do(t, address, "send-test", "a", "-c", config)
		require.Zero(t, code, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "the receiver of a took the test in")
		require.Contains(t, strings.Join(strings.Fields(stderr), " "), "(dedup key ordered-test/")
		require.Equal(t, before, notes())
		require.Equal(t, rows, cursors())
		require.Equal(t, calls, applied.Load())
	}
	sent()
	code, _, stderr := do(t, address, "run", "--drain", "-c", config)
	require.Zero(t, code, stderr)
	require.EqualValues(t, 3, applied.Load())
	sent()
	insert(t, pool, 2)
	code, _, stderr = do(t, address, "run", "--drain", "-c", config)
	require.Zero(t, code, stderr)
	require.EqualValues(t, 5, applied.Load())

	wrong := processes(t, map[string]string{"a": "webhook: {url: '" + server.URL + "', secret: 'whsec_d3Jvbmd3cm9uZ3dyb25nd3Jvbmd3cm9uZ3dyb25n'}"})
	code, _, stderr = do(t, address, "send-test", "a", "-c", wrong)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "the receiver of a did not take the test")
	require.Contains(t, stderr, "401")
}

func TestSendTest_OfSinksInTheDatabaseAndOfLines(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 1)
	pgtest.Exec(t, pool, "CREATE TABLE public.effect (id text)")
	config := processes(t, map[string]string{
		"statement": "sql: {statement: 'INSERT INTO public.effect VALUES (@id)'}",
		"broken":    "sql: {statement: 'INSERT INTO public.nothing VALUES (@id)'}",
		"lines":     "stdout: {}",
		"elsewhere": "sql: {url: '" + address + "', statement: 'INSERT INTO public.effect VALUES (@id)'}",
		"stream":    "nats: {url: 'nats://127.0.0.1:1', stream: S, subject: s}",
		"appended":  "redis: {url: 'redis://127.0.0.1:1', stream: s}",
		"fenced":    "kafka: {brokers: ['127.0.0.1:1'], topic: t, transactional_id: x}",
		"away":      "webhook: {url: 'http://127.0.0.1:1/'}",
	})
	code, _, stderr := do(t, address, "send-test", "statement", "-c", config)
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "and were rolled back")
	require.Zero(t, pgtest.Value[int](t, pool, "SELECT count(*)::int FROM public.effect"))
	code, stdout, stderr := do(t, address, "send-test", "lines", "-c", config)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, `"test":true`)
	require.Contains(t, stdout, `"payload":{"at":`)
	for process, want := range map[string]struct {
		code int
		text string
	}{
		"broken":    {1, "did not take the test"},
		"elsewhere": {2, "takes no test: the statements would be committed"},
		"stream":    {2, "takes no test: each record of the stream names the one before it"},
		"appended":  {2, "takes no test"},
		"fenced":    {2, "Kafka would fence the worker"},
		"away":      {1, "did not take the test"},
		"nobody":    {2, `there is no process "nobody"`},
	} {
		code, _, stderr := do(t, address, "send-test", process, "-c", config)
		require.Equal(t, want.code, code, process)
		require.Contains(t, strings.Join(strings.Fields(stderr), " "), want.text, process)
	}
}

// A broker gets the test with its mark, and the record after it as if it had not been there.
func TestSendTest_ReachesBrokersAndChildren(t *testing.T) {
	t.Parallel()
	rabbit, k := brokertest.SharedRabbitMQ(t), brokertest.SharedKafka(t)
	connection, err := amqp.Dial(rabbit.URL(rabbit.Addr()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	channel, err := connection.Channel()
	require.NoError(t, err)
	const name = "tests of send-test"
	_, err = channel.QueueDeclare(name, true, false, false, false, nil)
	require.NoError(t, err)
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Addr()), kgo.ConsumeTopics("send-test"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	_, err = kadm.NewClient(client).CreateTopic(t.Context(), 1, 1, nil, "send-test")
	require.NoError(t, err)
	child := `while read -r line; do echo "$line" | sed "s/.*\"dedup_key\":\(.*\)}/{\"dedup_key\":\1,\"attempt\":1,\"ok\":true}/"; done`
	config := processes(t, map[string]string{
		"rabbit": `rabbitmq: {url: "` + rabbit.URL(rabbit.Addr()) + `", routing_key: "` + name + `"}`,
		"kafka":  `kafka: {brokers: ["` + k.Addr() + `"], topic: send-test}`,
		"child":  "exec: {command: [sh, -c, '" + child + "']}",
	})
	address, _ := database(t, 1)
	for _, process := range []string{"rabbit", "kafka", "child"} {
		code, _, stderr := do(t, address, "send-test", process, "-c", config)
		require.Zero(t, code, "%s: %s", process, stderr)
	}
	code, _, stderr := do(t, address, "run", "--drain", "-c", config)
	require.Zero(t, code, stderr)
	for _, want := range []any{"true", nil} {
		d, ok, err := channel.Get(name, true)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, want, d.Headers["ordered-test"])
	}
	var marks []bool
	for len(marks) < 2 {
		fetches := client.PollFetches(t.Context())
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			marks = append(marks, slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == "ordered-test" && string(h.Value) == "true" }))
		})
	}
	require.Equal(t, []bool{true, false}, marks)
}
