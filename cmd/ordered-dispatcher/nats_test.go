package main_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
)

// The configuration of docs/sinks/nats.md, for the table and the server of this
// test.
func TestDrain_IntoNATS(t *testing.T) {
	t.Parallel()
	server := brokertest.SharedNATS(t)
	page, err := os.ReadFile("../../docs/sinks/nats.md")
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	text = strings.NewReplacer("table: public.orders", "table: public.bookings", "nats://nats:4222", "nats://"+server.Addr(),
		"${NATS_PASSWORD}", broker.NATSPassword).Replace(text)
	config := file(t, text)
	address, _ := database(t, 20)

	code, stdout, stderr := do(t, address, "doctor", "-c", config)
	require.Zero(t, code, stdout+stderr)
	require.Contains(t, stdout, "the first delivery makes it")
	code, stdout, stderr = do(t, address, "run", "--drain", "-c", config)
	require.Zero(t, code, stdout+stderr)
	require.NotContains(t, stdout+stderr, broker.NATSPassword)
	code, stdout, stderr = do(t, address, "doctor", "-c", config)
	require.Zero(t, code, stdout+stderr)
	require.Contains(t, stdout, `stream "ORDERS" remembers a message's id for 2m0s`)
	require.Contains(t, stdout, "sync_interval")

	connection, err := client.Connect(server.URL(server.Addr()))
	require.NoError(t, err)
	t.Cleanup(connection.Close)
	admin, err := jetstream.New(connection)
	require.NoError(t, err)
	orders, err := admin.Stream(t.Context(), "ORDERS")
	require.NoError(t, err)
	first := orders.CachedInfo().State.FirstSeq
	for i := range 20 {
		m, err := orders.GetMsg(t.Context(), first+1+uint64(i)) // after the claim
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(i+1), m.Header.Get("ordered-sequence"))
	}
}

// Two processes declare one stream. Doctor says, before the first record, what the stream of either lacks for the other one.
func TestDoctor_NamesWhatTwoProcessesOfOneStreamOfNATSNeed(t *testing.T) {
	t.Parallel()
	server := brokertest.SharedNATS(t)
	address, _ := database(t, 2)
	drain := func(first, second string) (doctored string, code int) {
		process := func(name, subjects string) string {
			return "  " + name + `: {source: {table: public.bookings}, start: beginning, sink: {nats: {url: "` + server.URL(server.Addr()) +
				`", stream: SHARED, subject: "shared.` + name + `.{{.ID}}", declare: {subjects: "` + subjects + "\"}}}}\n"
		}
		config := file(t, "processes:\n"+process("p1", first)+process("p2", second))
		code, stdout, stderr := do(t, address, "check", "-c", config)
		require.Zero(t, code, stdout+stderr)
		_, doctored, _ = do(t, address, "doctor", "-c", config)
		code, _, _ = do(t, address, "run", "--drain", "-c", config)
		return doctored, code
	}
	doctored, code := drain("shared.>,ordered-fence.p2", "shared.>,ordered-fence.p1")
	require.NotContains(t, doctored, "the declared stream")
	require.Zero(t, code)

	connection, err := client.Connect(server.URL(server.Addr()))
	require.NoError(t, err)
	t.Cleanup(connection.Close)
	admin, err := jetstream.New(connection)
	require.NoError(t, err)
	require.NoError(t, admin.DeleteStream(t.Context(), "SHARED"))
	doctored, _ = drain("shared.>", "shared.>")
	require.Contains(t, doctored, `the declared stream "SHARED" does not take the subjects of process "p2"`)
	require.Contains(t, doctored, `set subjects in declare of this process to 'shared.>,ordered-fence.p2'`)
	require.Contains(t, doctored, `set subjects in declare of this process to 'shared.>,ordered-fence.p1'`)
}
