package rabbitmq_test

import (
	"bytes"
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// shortText is a text of AMQP of at most 255 bytes.
func shortText(text string) string { return string([]byte{byte(len(text))}) + text }

// returnedWith is a message of that id that comes back with the broker's words, and its confirm.
func returnedWith(channel uint16, id, text, key string) []byte {
	header := append(binary.BigEndian.AppendUint64([]byte{0, 60, 0, 0}, 0), 0, 0x80)
	header = append(header, shortText(id)...)
	return bytes.Join([][]byte{
		method(channel, 60<<16|50, "\x01\x38"+shortText(text)+shortText(sinktest.Marker)+shortText(key)), frame(2, channel, header), acked(channel, 1),
	}, nil)
}

func acked(channel uint16, tag uint64) []byte {
	return method(channel, 60<<16|80, string(binary.BigEndian.AppendUint64(nil, tag))+"\x00")
}

func nacked(channel uint16, tag uint64) []byte {
	return method(channel, 60<<16|120, string(binary.BigEndian.AppendUint64(nil, tag))+"\x00")
}

// talkedTo publishes to a broker that answers a publishing so.
func talkedTo(t *testing.T, hostile func(channel uint16) speech, change func(*rabbitmq.Config)) *rabbitmq.Sink {
	t.Helper()
	address := tcptest.Serve(t, func(conn net.Conn) { _ = converse(conn, hostile) })
	return sinktest.Made(t, rabbitmq.New, rabbitmq.Config{URL: "amqp://u:p@" + address, Exchange: "e", RoutingKey: "our.{{.Type}}", Timeout: 2 * time.Second}, change)
}

func TestGuard_HiddenAnswersHaveNothingOfTheBrokers(t *testing.T) {
	t.Parallel()
	const marker = sinktest.Marker
	for name, c := range map[string]struct {
		hostile func(channel uint16) speech
		ours    string
	}{
		"a return": {func(channel uint16) speech {
			return speech{first: returnedWith(channel, sinktest.Deliveries(1, 1)[0].DedupKey(), marker, marker)}
		}, `the broker returned it: 312 […]; bind a queue for routing key "our.made"`},
		"an alarm": {func(uint16) speech { return speech{first: method(0, 10<<16|60, shortText(marker))} },
			"the broker may have the record: no confirm within 2s: context deadline exceeded: the broker takes no messages ([…]); free memory or disk there"},
		"the end of a channel": {func(channel uint16) speech {
			return speech{first: method(channel, 20<<16|40, "\x01\x93"+shortText(marker)+"\x00\x3c\x00\x28")}
		}, `Exception (403) Reason: "[…]"; correct user, password, or the user's rights`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := talkedTo(t, c.hostile, func(c *rabbitmq.Config) { c.HideAnswers = true })
			sinktest.Hides(t, s, c.ours)
		})
	}
}

func TestGuard_NoWordOfARecordIsQuoted(t *testing.T) {
	t.Parallel()
	words := shortText("cannot store " + sinktest.Repeated)
	for name, c := range map[string]struct {
		hostile func(channel uint16) speech
		ours    string
	}{
		"a return": {func(channel uint16) speech {
			return speech{first: returnedWith(channel, sinktest.Private()[0].DedupKey(), words[1:], "k")}
		}, "; bind a queue for routing key \"our.{{.Key}}\""},
		"an alarm": {func(uint16) speech { return speech{first: method(0, 10<<16|60, words)} }, "the broker takes no messages (cannot store"},
		"the end of a channel": {func(channel uint16) speech {
			return speech{first: method(channel, 20<<16|40, "\x01\x96"+words+"\x00\x3c\x00\x28")}
		}, `Exception (406) Reason: "cannot store`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := talkedTo(t, c.hostile, func(c *rabbitmq.Config) { c.RoutingKey = "our.{{.Key}}" })
			_, err := s.DeliverBatch(t.Context(), sinktest.Private())
			sinktest.RequirePrivate(t, err, c.ours)
		})
	}
}

// The routing key of a message that comes back is the one that it was sent with.
func TestDeliverBatch_AReturnNamesOurRoutingKeyInOneLine(t *testing.T) {
	t.Parallel()
	s := talkedTo(t, func(channel uint16) speech {
		return speech{first: returnedWith(channel, sinktest.Deliveries(1, 1)[0].DedupKey(), "NO\nROUTE", sinktest.Marker)}
	}, func(*rabbitmq.Config) {})
	_, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
	sinktest.RequireHidden(t, err, `312 NO ROUTE; bind a queue for routing key "our.made", or correct routing_key`)
}

// The broker refuses the first record of a window, and of the second nobody knows: the broker is silent, or hangs up.
func TestDeliverBatch_ARecordWithoutAConfirmBesideARefusalLeavesTheWindowOpen(t *testing.T) {
	t.Parallel()
	for name, hangsUp := range map[string]bool{"silent": false, "hangs up": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var published atomic.Int64
			address := tcptest.Serve(t, func(conn net.Conn) {
				_ = converse(conn, func(channel uint16) speech {
					if published.Add(1) < 2 {
						return speech{}
					}
					if hangsUp {
						time.AfterFunc(time.Second, func() { _ = conn.Close() })
					}
					return speech{first: nacked(channel, 1)}
				})
			})
			s := sinktest.Made(t, rabbitmq.New, rabbitmq.Config{URL: "amqp://u:p@" + address, Exchange: "e", RoutingKey: "k", Timeout: 3 * time.Second, Window: 2})
			n, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 2))
			require.Zero(t, n)
			require.ErrorContains(t, err, "the broker refused it (nack)")
			require.ErrorContains(t, err, "the broker may have records that were sent after this one")
			require.True(t, outcome.IsOutage(err), "the second may be there, and the first is no attempt: %v", err)
			require.True(t, processor.IsUnreached(err), err)
		})
	}
}

// An alarm cuts off the third record of a window in its middle. The broker returns the first one, and of the second nobody knows.
func TestDeliverBatch_AWriteThatIsCutOffBesideARefusalLeavesTheWindowOpen(t *testing.T) {
	t.Parallel()
	var published atomic.Int64
	ds := sinktest.Deliveries(1, 3)
	ds[2].Payload = bytes.Repeat([]byte("1"), 32<<20)
	address := tcptest.Serve(t, func(conn net.Conn) {
		_ = converse(conn, func(channel uint16) speech {
			if published.Add(1) == 3 {
				_, _ = conn.Write(append(method(0, 10<<16|60, shortText("low on memory")), returnedWith(channel, ds[0].DedupKey(), "NO_ROUTE", "k")...))
				<-t.Context().Done() // it reads nothing more
			}
			return speech{}
		})
	})
	s := sinktest.Made(t, rabbitmq.New, rabbitmq.Config{URL: "amqp://u:p@" + address, Exchange: "e", RoutingKey: "k", Timeout: 3 * time.Second, Window: 3})
	n, err := s.DeliverBatch(t.Context(), ds)
	require.Zero(t, n)
	require.ErrorContains(t, err, "312 […]")
	require.ErrorContains(t, err, "the broker may have records that were sent after this one")
	require.True(t, outcome.IsOutage(err), err)
	require.False(t, s.Pending(), "nothing is to be waited for")
}
