package redis_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/redis"
)

// check is what doctor says of a server.
func (b *bench) check(t *testing.T, change func(*redis.Config)) string {
	t.Helper()
	c := redis.Config{URL: "redis://:" + password + "@" + b.link.Addr(), Stream: stream}
	if change != nil {
		change(&c)
	}
	found, err := c.Check(t.Context(), "sms", sinks.Around{})
	require.NoError(t, err)
	var all []string
	for _, f := range found {
		require.NotEmpty(t, f.Fix)
		all = append(all, fmt.Sprintf("%v: %s", map[cursor.Severity]string{cursor.Note: "note", cursor.Warn: "warning", cursor.Refuse: "error"}[f.Severity], f.Problem))
	}
	return strings.Join(all, "\n")
}

func TestCheck_SaysWhatWeakensThePromises(t *testing.T) {
	t.Parallel()
	b := newBench(t, durable...)
	require.Empty(t, b.check(t, nil))
	require.Contains(t, b.check(t, func(c *redis.Config) { c.MaxLen = 5 }), "warning: stream \"bookings\" of redis://"+b.link.Addr()+"/0 keeps about 5 entries")
	for _, c := range []struct{ name, value, want string }{
		{"appendfsync", "everysec", "note: Redis has appendfsync everysec"},
		{"appendfsync", "no", "warning: Redis has appendfsync no"},
		{"appendonly", "no", "warning: Redis has appendonly off"},
	} {
		b.ask(t, "CONFIG", "SET", c.name, c.value)
		require.Contains(t, b.check(t, nil), c.want)
	}
	b.ask(t, "CONFIG", "SET", "appendonly", "yes", "appendfsync", "always", "maxmemory-policy", "allkeys-lru")
	require.Empty(t, b.check(t, nil), "there is no maxmemory")
	b.ask(t, "CONFIG", "SET", "maxmemory", "1gb")
	require.Contains(t, b.check(t, nil), "warning: Redis has a maxmemory-policy for all keys")
	b.ask(t, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")
	require.Empty(t, b.check(t, nil), "the keys of the sink have no end")

	b.ask(t, append([]string{"ACL", "SETUSER", "dispatcher", "on", ">" + password}, rights...)...)
	as := func(c *redis.Config) { c.URL = strings.Replace(c.URL, "://:", "://dispatcher:", 1) }
	require.Contains(t, b.check(t, as), "note: the user of Redis may not run INFO")

	b.ask(t, "SET", stream, "x")
	require.Contains(t, b.check(t, nil), "error: append to stream \"bookings\"")
	b.ask(t, "DEL", stream)
	b.ask(t, "REPLICAOF", "127.0.0.1", "1")
	require.Contains(t, b.check(t, nil), "error: redis://"+b.link.Addr()+"/0: this is a replica")
	b.link.Away()
	require.Contains(t, b.check(t, nil), "error: append to stream")
}

func TestCheck_AnOldServerAndANodeOfAClusterTakeNothing(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"redis_version:6.2.7\r\nrole:master":                      "Redis has version 6, and the sink needs 7 or later",
		"redis_version:7.2.4\r\nrole:master\r\ncluster_enabled:1": "this is a node of a cluster",
	} {
		s := &redis.Config{}
		talking(t, func(command []string) string {
			switch strings.ToLower(command[0]) {
			case "info":
				return fmt.Sprintf("$%d\r\n%s\r\n", len(said), said)
			case "type":
				return "+none\r\n"
			default:
				return asRedis("")(command)
			}
		}, func(c *redis.Config) { s = c })
		found, err := s.Check(t.Context(), "sms", sinks.Around{})
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Equal(t, cursor.Refuse, found[0].Severity)
		require.Contains(t, found[0].Problem, want)
	}
}
