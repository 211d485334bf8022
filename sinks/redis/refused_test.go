package redis_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/redis"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// talk speaks RESP: answer is what it says to a command, as it goes over the wire.
func talk(conn net.Conn, answer func(command []string) string) {
	r := bufio.NewReader(conn)
	for {
		command, err := readCommand(r)
		if err != nil {
			return
		}
		if _, err := io.WriteString(conn, answer(command)); err != nil {
			return
		}
	}
}

func readCommand(r *bufio.Reader) ([]string, error) {
	list, err := reply(r)
	words, ok := list.([]any)
	if err != nil || !ok {
		return nil, fmt.Errorf("no command: %w", err)
	}
	var command []string
	for _, word := range words {
		command = append(command, fmt.Sprint(word))
	}
	return command, nil
}

// asRedis answers as Redis does up to the first record.
func asRedis(toRecord string) func(command []string) string {
	return func(command []string) string {
		switch strings.ToLower(command[0]) {
		case "hello":
			return "-ERR unknown command\r\n"
		case "config":
			return "-NOPERM this user has no permissions\r\n"
		case "eval", "evalsha":
			return toRecord
		default:
			return "+OK\r\n"
		}
	}
}

// talking is a sink to a server that answers so.
func talking(t *testing.T, answer func(command []string) string, change func(*redis.Config)) *redis.Sink {
	t.Helper()
	address := tcptest.Serve(t, func(conn net.Conn) { talk(conn, answer) })
	return sinktest.Made(t, redis.New, redis.Config{URL: "redis://" + address, Stream: stream, Timeout: 5 * time.Second}, change)
}

func TestDeliverBatch_SortsWhatRedisSays(t *testing.T) {
	t.Parallel()
	for code, c := range map[string]struct {
		fix     string
		refused bool
	}{
		"NOAUTH": {"correct user and password", true}, "NOPERM": {"give the user the rights that docs/sinks/redis.md lists", true},
		"WRONGTYPE": {"correct stream or state", true}, "MOVED": {"this is a node of a cluster", true}, "CROSSSLOT": {"this is a node of a cluster", true},
		"ERR": {"if it is about a right, give the user", true},
		"OOM": {"set max_len, or raise maxmemory", false}, "LOADING": {"Redis is reading its data", false}, "READONLY": {"name the master in url", false},
		"MASTERDOWN": {"name the master in url", false}, "CLUSTERDOWN": {"this is a node of a cluster", false}, "MISCONF": {"cannot write its data to the disk", false},
		"BUSY": {"SCRIPT KILL", false}, "NOREPLICAS": {"start them", false}, "NEWCODE": {"", false},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			s := talking(t, asRedis("-"+code+" what it says\r\n"), nil)
			n, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 2))
			require.Zero(t, n)
			require.ErrorContains(t, err, code+" what it says")
			require.ErrorContains(t, err, c.fix)
			require.Equal(t, c.refused, processor.IsRefused(err), err)
			require.True(t, processor.IsUnreached(err), "it is no attempt of the record: %v", err)
			require.False(t, processor.IsPermanent(err) || outcome.IsUnknown(err), err)
		})
	}
}

func TestDeliverBatch_WhatIsNoAnswerLeavesTheOutcomeOpen(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"$-1\r\n", "*1\r\n+appended\r\n", "*2\r\n+what\r\n+else\r\n", ":1\r\n", "?\r\n", "+OK\r\n"} {
		_, err := sinktest.Deliver(t, talking(t, asRedis(answer), nil), sinktest.Deliveries(1, 1))
		require.ErrorContains(t, err, "Redis may have the record", answer)
		require.Equal(t, "unknown", sinktest.Class(err), err)
	}
}

// A script cache that never keeps the script: no attempt goes on for ever.
func TestDeliverBatch_AScriptThatNeverStaysIsSaid(t *testing.T) {
	t.Parallel()
	_, err := sinktest.Deliver(t, talking(t, asRedis("-NOSCRIPT No matching script.\r\n"), nil), sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "something removes scripts again and again")
	require.True(t, processor.IsUnreached(err), err)
}

func TestDeliverBatch_RedisSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sink(t, nil)
	sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
	next := 2
	for _, c := range []struct {
		spoil, fix []string
		code       string
	}{
		{[]string{"CONFIG", "SET", "maxmemory", "1"}, []string{"CONFIG", "SET", "maxmemory", "0"}, "OOM"},
		{[]string{"CONFIG", "SET", "min-replicas-to-write", "1"}, []string{"CONFIG", "SET", "min-replicas-to-write", "0"}, "NOREPLICAS"},
		{[]string{"REPLICAOF", "127.0.0.1", "1"}, []string{"REPLICAOF", "NO", "ONE"}, "READONLY"},
	} {
		b.ask(t, c.spoil...)
		_, err := sinktest.Deliver(t, s, sinktest.Deliveries(next, 1))
		require.ErrorContains(t, err, c.code)
		require.Equal(t, "unreached", sinktest.Class(err), err)
		b.ask(t, c.fix...)
		sinktest.Delivered(t, s, sinktest.Deliveries(next, 1))
		next++
	}
	require.Equal(t, "1 2 3 4", b.log(t, stream))
}

// rights are those on the page, without the optional ones.
var rights = []string{"~bookings*", "~ordered-state:*", "-@all", "+eval", "+evalsha", "+hmget", "+hset", "+hsetnx", "+exists", "+lpos", "+ltrim", "+lpush", "+xadd"}

func TestDeliverBatch_TheRightsOfThePageAreEnough(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ask(t, append([]string{"ACL", "SETUSER", "dispatcher", "on", ">" + password}, rights...)...)
	s := b.sink(t, func(c *redis.Config) {
		c.URL, c.User, c.Password, c.Window = "redis://"+b.link.Addr(), "dispatcher", password, 3
	})
	ds := sinktest.Deliveries(1, 6)
	sinktest.Delivered(t, s, ds[:4])
	sinktest.Delivered(t, b.sink(t, nil), under(4, "two", ds[2:4]))
	for _, right := range []string{"hmget", "exists", "hset", "ltrim", "xadd"} {
		b.ask(t, "ACL", "SETUSER", "dispatcher", "-"+right)
		_, err := sinktest.Deliver(t, s, under(5, "one", ds[4:]))
		require.True(t, processor.IsRefused(err), "%s: %v", right, err)
		require.ErrorContains(t, err, "give the user the rights", right)
		b.ask(t, "ACL", "SETUSER", "dispatcher", "+"+right)
	}
	require.Equal(t, "1 2 3 4", b.log(t, stream), "a right that is missing leaves nothing half done")
	sinktest.Delivered(t, s, under(5, "one", ds[4:]))
}

// A row may choose a key of another type, or one that the user has no right to. The rows after it go on.
func TestDeliverBatch_AKeyThatARecordChoosesIsAFaultOfTheRecord(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string][]string{
		"another type": {"SET", "bookings:session", "x"},
		"no right":     {"ACL", "SETUSER", "dispatcher", "resetkeys", "~bookings:made", "~ordered-state:*"},
	} {
		for _, n := range []int{1, 10} {
			for _, at := range []int{0, 2} { // the first record of the process, and a later one
				t.Run(fmt.Sprint(name, n, at), func(t *testing.T) {
					t.Parallel()
					b := newBench(t)
					b.ask(t, append([]string{"ACL", "SETUSER", "dispatcher", "on", ">" + password}, rights...)...)
					b.ask(t, spoil...)
					other := sinktest.Deliveries(1, 1)
					other[0].Origin = "there"
					sinktest.Delivered(t, b.sink(t, nil), other) // so Redis knows the script
					s := b.sink(t, func(c *redis.Config) {
						c.URL, c.Stream, c.Window = "redis://dispatcher:"+password+"@"+b.link.Addr(), "bookings:{{.Type}}", n
					})
					ds := sinktest.Deliveries(1, 5)
					ds[at].Type = "session"
					done, err := sinktest.Deliver(t, s, ds)
					require.Equal(t, at, done)
					require.Equal(t, "permanent", sinktest.Class(err), err)
					require.ErrorContains(t, err, "skip the record")
					sinktest.Delivered(t, s, ds[at+1:])
					require.Len(t, b.entries(t, "bookings:made"), 4)
				})
			}
		}
	}
}

// One key for all records, or a right that any key needs: no record is at fault.
func TestDeliverBatch_AKeyOfTheConfigurationIsAFaultOfOurs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stream string
		spoil  []string
	}{
		"another type":             {stream, []string{"SET", stream, "x"}},
		"a state of another type":  {"bookings:{{.Type}}", []string{"SET", state, "x"}},
		"marks of another type":    {"bookings:{{.Type}}", []string{"SET", state + ":marks", "x"}},
		"no right to the key":      {stream, []string{"ACL", "SETUSER", "dispatcher", "resetkeys", "~ordered-state:*"}},
		"no right to the state":    {"bookings:{{.Type}}", []string{"ACL", "SETUSER", "dispatcher", "resetkeys", "~bookings:*"}},
		"no right to any key":      {"bookings:{{.Type}}", []string{"ACL", "SETUSER", "dispatcher", "resetkeys"}},
		"no right to the commands": {"bookings:{{.Type}}", []string{"ACL", "SETUSER", "dispatcher", "-xadd", "-exists"}},
		"no right to scripts":      {"bookings:{{.Type}}", []string{"ACL", "SETUSER", "dispatcher", "-eval", "-evalsha"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.ask(t, append([]string{"ACL", "SETUSER", "dispatcher", "on", ">" + password}, rights...)...)
			b.ask(t, c.spoil...)
			_, err := sinktest.Deliver(t, b.sink(t, func(config *redis.Config) {
				config.URL, config.Stream = "redis://dispatcher:"+password+"@"+b.link.Addr(), c.stream
			}), sinktest.Deliveries(1, 2))
			require.True(t, processor.IsRefused(err), err)
			require.True(t, processor.IsUnreached(err), err)
			require.False(t, processor.IsPermanent(err), err)
		})
	}
}

func TestDeliverBatch_ADatabaseThatThereIsNot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := sinktest.Deliver(t, b.sink(t, func(c *redis.Config) { c.URL += "/99" }), sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "nothing was sent")
	require.ErrorContains(t, err, "DB index is out of range")
	require.True(t, processor.IsRefused(err), err)
	sinktest.Delivered(t, b.sink(t, func(c *redis.Config) { c.URL += "/3" }), sinktest.Deliveries(1, 1))
	require.Empty(t, b.entries(t, stream), "it is in another database")
}

// Redis ends the connection over a value that is too large, so the sink asks for the limit once.
func TestDeliverBatch_AValueAboveTheLimitIsNotSent(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	s := talking(t, func(command []string) string {
		if strings.EqualFold(command[0], "config") {
			asked.Add(1)
			return "*2\r\n$18\r\nproto-max-bulk-len\r\n$3\r\n100\r\n"
		}
		return asRedis("*2\r\n+appended\r\n+1-1\r\n")(command)
	}, nil)
	ds := sinktest.Deliveries(1, 2)
	ds[1].Payload = []byte(strings.Repeat("1", 101))
	n, err := sinktest.Deliver(t, s, ds)
	require.Equal(t, 1, n)
	require.True(t, processor.IsPermanent(err), err)
	require.EqualValues(t, 1, asked.Load())
}
