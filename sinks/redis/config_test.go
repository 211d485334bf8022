package redis_test

import (
	"crypto/tls"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/redis"
)

func TestConfig_NamesEachFaultAndNoSecret(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config redis.Config
		fault  string
	}{
		{redis.Config{Stream: "s"}, "url is missing"},
		{redis.Config{URL: "redis://h"}, "stream is missing"},
		{redis.Config{URL: "http://u:CANARY@h", Stream: "s"}, "url cannot be parsed"},
		{redis.Config{URL: "redis://u:CANARY@h/x", Stream: "s"}, "url cannot be parsed"},
		{redis.Config{URL: "redis://u:CANARY@h/?protocol=2", Stream: "s"}, "url cannot be parsed"},
		{redis.Config{URL: "redis://u:CANARY@", Stream: "s"}, "url cannot be parsed"},
		{redis.Config{URL: "redis://u:CANARY%zz@h", Stream: "s"}, "url cannot be parsed"},
		{redis.Config{URL: "redis://u:CANARY@h", Stream: "s", Password: "CANARY"}, "there are two logins"},
		{redis.Config{URL: "redis://u:CANARY@h", Stream: "s", User: "v"}, "there are two logins"},
		{redis.Config{URL: "redis://h", Stream: "s", User: "v"}, "user is given, and no password"},
		{redis.Config{URL: "redis://v@h", Stream: "s"}, "user is given, and no password"},
		{redis.Config{URL: "redis://h", Stream: "s", TLS: &tls.Config{}}, "the url is not rediss://"},
		{redis.Config{URL: "redis://h", Stream: "{{.Nope}}"}, "stream: "},
		{redis.Config{URL: "redis://h", Stream: "ordered-state:x"}, "as the keys of state do"},
		{redis.Config{URL: "redis://h", Stream: "s", MaxLen: -1}, "max_len must be between 1 and"},
		{redis.Config{URL: "redis://h", Stream: "s", Window: 10_001}, "window must be between 1 and 10000"},
	} {
		err := c.config.Validate()
		require.ErrorContains(t, err, c.fault)
		require.NotContains(t, err.Error(), "CANARY")
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", c.config, c.config, c.config), "CANARY")
	}
}

func TestConfig_NamesTheServerAndTheStream(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"redis://u:CANARY@h":       "redis://h:6379/0",
		"redis://:CANARY@h:7000/":  "redis://h:7000/0",
		"rediss://u:CANARY@[::1]/": "rediss://[::1]:6379/0",
		"redis://h/3":              "redis://h:6379/3",
	} {
		c := redis.Config{URL: url, Stream: "orders"}
		require.NoError(t, c.Validate())
		require.Equal(t, map[string]string{"target": `stream "orders" of ` + want, "state": "ordered-state"}, c.Settings())
	}
}

func TestConfig_TellsWhereThePasswordIsExposed(t *testing.T) {
	t.Parallel()
	var _ sinks.Exposed = &redis.Config{}
	require.NotEmpty(t, redis.Config{URL: "redis://u:p@h.example"}.Exposures())
	require.NotEmpty(t, redis.Config{URL: "redis://h.example", Password: "p"}.Exposures())
	require.Empty(t, redis.Config{URL: "redis://h.example"}.Exposures())
	require.Empty(t, redis.Config{URL: "redis://u:p@localhost"}.Exposures())
	require.Empty(t, redis.Config{URL: "rediss://u:p@h.example"}.Exposures())
}

// doctor advises to lower the timeout, and an operator who raises it expects longer calls.
func TestConfig_BoundsACallByTheTimeout(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]time.Duration{
		5 * time.Second: 30 * time.Second, 10 * time.Minute: 10*time.Minute + 5*time.Second, time.Hour: time.Hour,
	} {
		opened, err := redis.Config{URL: "redis://h", Stream: "s", Timeout: timeout}.Open(sinks.Environment{})
		require.NoError(t, err)
		require.Equal(t, want, opened.Timeout)
	}
}
