package kafka_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/kafka"
)

func TestNew_NamesEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	_, err := kafka.New(kafka.Config{
		Brokers: []string{"host"}, Topic: "a b", Window: 20_000, MaxBytes: 5, Compression: "rar", Timeout: 2 * time.Hour,
		SASL: kafka.SASL{Mechanism: "GSSAPI", User: "u", Password: "secret-password"},
	})
	for _, want := range []string{
		`broker "host" is not host:port`, `topic "a b": Kafka's topics have`, "window must be between 1 and 10000, got 20000",
		"max_bytes must be between 1024 and 67108864, got 5", `compression must be none, gzip, snappy, lz4 or zstd, got "rar"`, "timeout must be between 1ms and 1h0m0s, got 2h0m0s",
		`sasl.mechanism must be PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, got "GSSAPI"`,
	} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "secret-password")
	_, err = kafka.New(kafka.Config{})
	require.ErrorContains(t, err, "brokers is missing")
	require.ErrorContains(t, err, "topic is missing")
	_, err = kafka.New(kafka.Config{Brokers: []string{"h:1"}, Topic: "{{.Nothing}}", SASL: kafka.SASL{Mechanism: "PLAIN", User: "u"}})
	require.ErrorContains(t, err, "topic: template")
	require.ErrorContains(t, err, "user and password are both needed")
}

func TestString_HidesThePassword(t *testing.T) {
	t.Parallel()
	c := kafka.Config{Brokers: []string{"h:1"}, Topic: "t", SASL: kafka.SASL{Mechanism: "PLAIN", User: "u", Password: "secret-password"}}
	s, err := kafka.New(c)
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %v %+v %#v %v %#v", c, c, c, s, s, s, c.SASL, c.SASL), "secret-password")
}
