package main_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
)

// The configuration of docs/sinks/kafka.md, for the table and the broker of this
// test, which has no TLS where it has users.
func TestDrain_IntoKafka(t *testing.T) {
	t.Parallel()
	k := brokertest.SharedKafka(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Addr()))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	_, err = kadm.NewClient(client).CreateTopic(t.Context(), 1, 1, nil, "orders")
	require.NoError(t, err)

	page, err := os.ReadFile("../../docs/sinks/kafka.md")
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	address, _ := database(t, 20)
	code, _, stderr := do(t, address, "check", "-c", file(t, strings.Replace(text, "${KAFKA_PASSWORD}", "x", 1)))
	require.Zero(t, code, stderr)
	for from, to := range map[string]string{
		`table: public.orders, columns: .*}}`: "table: public.bookings}",
		`brokers: .*`:                         `brokers: ["` + k.AddrSASL() + `"]`,
		`\$\{KAFKA_PASSWORD\}`:                broker.KafkaPassword,
		`tls: .*`:                             "",
	} {
		require.Regexp(t, from, text)
		text = regexp.MustCompile(from).ReplaceAllLiteralString(text, to)
	}
	code, _, stderr = do(t, address, "run", "--drain", "-c", file(t, text))
	require.Zero(t, code, stderr)
	require.NotContains(t, stderr, broker.KafkaPassword)
	out, err := exec.CommandContext(t.Context(), "kcat", "-C", "-b", k.Addr(), "-t", "orders", "-o", "beginning", "-e", "-q", "-f", `%h\n`).Output()
	require.NoError(t, err)
	var sequences []string
	for _, match := range regexp.MustCompile(`ordered-sequence=(\d+)`).FindAllStringSubmatch(string(out), -1) {
		sequences = append(sequences, match[1])
	}
	require.Equal(t, "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20", strings.Join(sequences, " "))
}
