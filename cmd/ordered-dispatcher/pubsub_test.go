package main_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"github.com/stretchr/testify/require"
)

// The configuration of docs/sinks/pubsub.md, for the table and the server of this
// test.
func TestDrain_IntoPubSub(t *testing.T) {
	t.Parallel()
	server := pstest.NewServer()
	t.Cleanup(func() { _ = server.Close() })
	const topic = "projects/shop/topics/orders"
	_, err := server.GServer.CreateTopic(t.Context(), &pb.Topic{Name: topic})
	require.NoError(t, err)

	page, err := os.ReadFile("../../docs/sinks/pubsub.md")
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	text = strings.Replace(text, "table: public.orders", "table: public.bookings", 1)
	text = regexp.MustCompile(`(?m)^ +credentials: .*\n`).ReplaceAllLiteralString(text, "")
	text = regexp.MustCompile(`endpoint: .*`).ReplaceAllLiteralString(text, "emulator: "+strconv.Quote(server.Addr))
	config := file(t, text)
	address, _ := database(t, 20)

	code, stdout, stderr := do(t, address, "doctor", "-c", config)
	require.Equal(t, 1, code, stdout+stderr)
	require.Contains(t, stdout, "the topic has no subscription and retains no messages")
	_, err = server.GServer.CreateSubscription(t.Context(), &pb.Subscription{
		Name: "projects/shop/subscriptions/all", Topic: topic, AckDeadlineSeconds: 60, EnableMessageOrdering: true})
	require.NoError(t, err)
	for _, args := range [][]string{{"doctor"}, {"run", "--drain"}} {
		code, stdout, stderr := do(t, address, append(args, "-c", config)...)
		require.Zero(t, code, "%v: %s%s", args, stdout, stderr)
	}
	all := server.Messages()
	require.Len(t, all, 20)
	for i, m := range all {
		require.Equal(t, strconv.Itoa(i+1), m.Attributes["ordered-sequence"])
		require.Equal(t, "orders", m.OrderingKey, "no column is mapped to the key")
	}
}
