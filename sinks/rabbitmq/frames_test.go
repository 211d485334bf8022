package rabbitmq_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func frame(kind byte, channel uint16, payload []byte) []byte {
	f := binary.BigEndian.AppendUint16([]byte{kind}, channel)
	f = binary.BigEndian.AppendUint32(f, uint32(len(payload)))
	return append(append(f, payload...), 0xce)
}

func method(channel uint16, id uint32, arguments string) []byte {
	return frame(1, channel, append(binary.BigEndian.AppendUint32(nil, id), arguments...))
}

// returned is a message that comes back, with the size that its header gives it.
func returned(channel uint16, size uint64) []byte {
	header := binary.BigEndian.AppendUint64([]byte{0, 60, 0, 0}, size)
	return append(method(channel, 60<<16|50, "\x01\x38\x01n\x00\x00"), frame(2, channel, append(header, 0, 0))...)
}

// speech is what a hostile broker says on a channel: first, and then endlessly, up to 64 MiB.
type speech struct{ first, endlessly []byte }

// say writes a speech until the other end has had enough. The first part is not kept waiting
// until the rest is made: the client waits 15 s for a word.
func (s speech) say(to io.Writer) error {
	if _, err := to.Write(s.first); err != nil || len(s.endlessly) == 0 {
		return err
	}
	for n := 0; n < 64<<20; n += len(s.endlessly) {
		if _, err := to.Write(s.endlessly); err != nil {
			return err
		}
	}
	return nil
}

// converse takes the login, and answers a publishing with what is hostile.
func converse(conn net.Conn, hostile func(channel uint16) speech) error {
	answers := map[uint32]uint32{10<<16 | 40: 10<<16 | 41, 20<<16 | 10: 20<<16 | 11, 85<<16 | 10: 85<<16 | 11, 40<<16 | 10: 40<<16 | 11}
	arguments := map[uint32]string{10<<16 | 40: "\x00", 20<<16 | 10: "\x00\x00\x00\x00"}
	if _, err := io.ReadFull(conn, make([]byte, 8)); err != nil {
		return err
	}
	out := method(0, 10<<16|10, "\x00\x09\x00\x00\x00\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US")
	for {
		if _, err := conn.Write(out); err != nil {
			return err
		}
		head := make([]byte, 7)
		if _, err := io.ReadFull(conn, head); err != nil {
			return err
		}
		payload := make([]byte, binary.BigEndian.Uint32(head[3:])+1)
		if _, err := io.ReadFull(conn, payload); err != nil {
			return err
		}
		out = nil
		channel, id := binary.BigEndian.Uint16(head[1:]), uint32(0)
		if head[0] == 1 {
			id = binary.BigEndian.Uint32(payload)
		}
		switch {
		case id == 10<<16|11:
			out = method(0, 10<<16|30, "\x07\xff\x00\x02\x00\x00\x00\x00")
		case answers[id] != 0:
			out = method(channel, answers[id], arguments[id])
		case id == 60<<16|40:
			if err := hostile(channel).say(conn); err != nil {
				return err
			}
		}
	}
}

func TestDeliverBatch_ABrokerThatReturnsTooMuchIsNotHeardOut(t *testing.T) {
	t.Parallel()
	const piece = 64 << 10
	for name, c := range map[string]struct {
		hostile func(channel uint16) speech
		fault   string
	}{
		"a body without an end": {func(channel uint16) speech {
			return speech{returned(channel, 1<<50), frame(3, channel, make([]byte, piece))}
		}, "the broker returned a message that was not sent"},
		"more messages than were sent": {func(channel uint16) speech {
			return speech{bytes.Repeat(returned(channel, 0), 2), nil}
		}, "the broker returned a message that was not sent"},
		"a body that begins nowhere": {func(channel uint16) speech {
			return speech{nil, frame(3, channel, make([]byte, piece))}
		}, "the broker returned a message that was not sent"},
		"a body beside another one": {func(channel uint16) speech {
			return speech{returned(channel, 1), frame(3, channel, make([]byte, piece))}
		}, "the broker returned a message that was not sent"},
		"a message of another id": {func(channel uint16) speech {
			return speech{returnedWith(channel, "another", "NO_ROUTE", "k"), nil}
		}, "the broker may have the record: the broker returned a message that was not sent"},
		"a text beyond its frame": {func(uint16) speech {
			return speech{method(0, 10<<16|20, "\x20\x00\x00\x00"), frame(8, 0, nil)}
		}, "the broker sent a method that RabbitMQ does not send"},
		"a short text beyond its frame": {func(channel uint16) speech {
			return speech{method(channel, 60<<16|50, "\x01\x38\xff"), frame(8, 0, nil)}
		}, "the broker sent a method that RabbitMQ does not send"},
		"a method of a consumer": {func(channel uint16) speech {
			return speech{method(channel, 60<<16|60, "\x00"), nil}
		}, "the broker sent a method that RabbitMQ does not send"},
		"confirms of what was not sent": {func(channel uint16) speech {
			return speech{acked(channel, 2), nil}
		}, "the broker sent a method that RabbitMQ does not send"},
		"a frame without an end": {func(uint16) speech {
			return speech{[]byte{3, 0, 1, 0x7f, 0xff, 0xff, 0xff}, make([]byte, piece)}
		}, "the broker sent a frame of more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := tcptest.Serve(t, func(conn net.Conn) { _ = converse(conn, c.hostile) })
			s, err := rabbitmq.New(rabbitmq.Config{URL: "amqp://u:p@" + address, Exchange: "e", RoutingKey: "k", Timeout: time.Minute})
			require.NoError(t, err)
			defer func() { _ = s.Close() }()
			n, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
			require.ErrorContains(t, err, c.fault)
			require.Zero(t, n)
		})
	}
}

// The client reads a text of the first method up to its end, over any number of frames.
func TestOpen_ABrokerWhoseFirstTextHasNoEndIsNotHeardOut(t *testing.T) {
	t.Parallel()
	const size, piece = 512 << 20, 64 << 10
	heard := make(chan int, 1)
	address := tcptest.Serve(t, func(conn net.Conn) {
		sent := 0
		_, err := io.ReadFull(conn, make([]byte, 8))
		if err == nil {
			_, err = conn.Write(method(0, 10<<16|10, "\x00\x09"+string(binary.BigEndian.AppendUint32(nil, size))))
		}
		for body := frame(3, 0, make([]byte, piece)); err == nil && sent < size; {
			var n int
			n, err = conn.Write(body)
			sent += n
		}
		heard <- sent
	})
	s := sinktest.Made(t, rabbitmq.New, rabbitmq.Config{URL: "amqp://u:p@" + address, Exchange: "e", RoutingKey: "k", Timeout: time.Minute})
	_, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "is it RabbitMQ?")
	require.Less(t, waittest.Receive(t, heard, "the broker is hung up on"), 32<<20)
}
