package rabbitmq

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
)

const (
	// maxFrame bounds a frame. RabbitMQ's have at most 128 KiB, unless its frame_max is raised.
	maxFrame = 1 << 20

	versionHead  = 8  // AMQP, and four numbers: the answer to a client whose version the server does not have
	frameHead    = 7  // type, channel and size
	contentHead  = 12 // class, weight and the size of the body
	methodFrame  = 1
	contentFrame = 2 // it begins a message
	bodyFrame    = 3
)

// methods lists what RabbitMQ sends to a client that only publishes, by class and method, with its arguments: a digit
// is that many bytes, s a text of at most 255 bytes, l a text or a table of up to 4 GiB.
var methods = map[uint32]string{
	10<<16 | 10: "11lll", 10<<16 | 20: "l", 10<<16 | 30: "242", 10<<16 | 41: "s", // the login
	10<<16 | 50: "2s22", 10<<16 | 51: "", 10<<16 | 60: "s", 10<<16 | 61: "", // the connection's end, alarms
	20<<16 | 11: "l", 20<<16 | 20: "1", 20<<16 | 21: "1", 20<<16 | 40: "2s22", 20<<16 | 41: "", // the channel
	40<<16 | 11: "", 60<<16 | 50: "2sss", ack: "81", nack: "81", 85<<16 | 11: "", // the exchange, messages, confirms
}

const (
	ack  = 60<<16 | 80
	nack = 60<<16 | 120
)

var (
	errFrame    = fmt.Errorf("the broker sent a frame of more than %d bytes: is it RabbitMQ?", maxFrame)
	errReturned = errors.New("the broker returned a message that was not sent: is it RabbitMQ?")
	errMethod   = errors.New("the broker sent a method that RabbitMQ does not send: is it RabbitMQ?")
)

// otherVersion reports that the server has answered with the version of the protocol that it wants.
type otherVersion struct{ wanted [4]byte }

func (e otherVersion) Error() string {
	return fmt.Sprintf("the server wants another version of the protocol (%d-%d-%d-%d) than AMQP 0-9-1: correct host and port in url, or let the server speak AMQP 0-9-1 there",
		e.wanted[0], e.wanted[1], e.wanted[2], e.wanted[3])
}

// isVersion reports whether the bytes begin such an answer. No frame begins so.
func isVersion(head []byte) bool { return bytes.HasPrefix(head, []byte("AMQP")) }

// frames follows the bytes of the broker, and finds out when they would exhaust the memory: the client keeps the
// frames of a message until it has the size that the broker gave. Here a broker only sends messages of ours that it
// returns. The client reads the texts of a method up to their own ends, and on over the end of the frame. So a method has
// to fill its frame.
type frames struct {
	largest atomic.Int64 // body of ours, in bytes
	due     atomic.Int64 // messages of ours that can be returned
	sent    atomic.Int64 // messages of ours
	head    []byte       // of a frame; all of a method
	rest    int          // bytes that are left of it
	body    uint64       // bytes that are left of a message that comes back
}

// sends notes a message of ours, before it is sent.
func (f *frames) sends(body []byte) {
	f.largest.Store(max(f.largest.Load(), int64(len(body))))
	f.due.Add(1)
	f.sent.Add(1)
}

// follow reads bytes of the broker.
func (f *frames) follow(p []byte) error {
	for len(p) > 0 {
		if n := min(f.rest, len(p)); n > 0 {
			f.rest, p = f.rest-n, p[n:]
			continue
		}
		n := min(f.missing(), len(p))
		f.head, p = append(f.head, p[:n]...), p[n:]
		if err := f.begun(); err != nil {
			return err
		}
	}
	return nil
}

// missing returns how many more bytes of a frame are to be looked at.
func (f *frames) missing() int {
	if len(f.head) < frameHead {
		return frameHead - len(f.head)
	}
	if isVersion(f.head) {
		return versionHead - len(f.head)
	}
	if f.head[0] == methodFrame {
		return frameHead + int(binary.BigEndian.Uint32(f.head[3:])) + 1 - len(f.head)
	}
	return frameHead + contentHead - len(f.head)
}

// begun looks at the beginning of a frame, as far as it has arrived.
func (f *frames) begun() error {
	if len(f.head) < frameHead {
		return nil
	}
	if isVersion(f.head) {
		if len(f.head) < versionHead {
			return nil
		}
		return otherVersion{[4]byte(f.head[4:])}
	}
	size := int64(binary.BigEndian.Uint32(f.head[3:]))
	if size > maxFrame {
		return errFrame
	}
	end := frameHead + int(size) + 1
	switch f.head[0] {
	case methodFrame:
		if len(f.head) < end {
			return nil
		}
		if !f.isMethod(f.head[frameHead : end-1]) {
			return errMethod
		}
	case contentFrame:
		if size < contentHead {
			return errReturned
		}
		if len(f.head) < frameHead+contentHead {
			return nil
		}
		body := binary.BigEndian.Uint64(f.head[frameHead+4:])
		if f.due.Add(-1) < 0 || f.body > 0 || body > uint64(f.largest.Load()) {
			return errReturned
		}
		f.body = body
	case bodyFrame:
		if uint64(size) > f.body {
			return errReturned
		}
		f.body -= uint64(size)
	}
	f.rest, f.head = end-len(f.head), f.head[:0]
	return nil
}

// isMethod reports whether a method is one of methods and ends where its frame does. It must not confirm a message that
// was not sent: the client would keep that confirm.
func (f *frames) isMethod(p []byte) bool {
	if len(p) < 4 {
		return false
	}
	id, p := binary.BigEndian.Uint32(p), p[4:]
	arguments, known := methods[id]
	if known && (id == ack || id == nack) && len(p) >= 8 && binary.BigEndian.Uint64(p) > uint64(f.sent.Load()) {
		return false
	}
	for _, kind := range arguments {
		n := uint64(kind - '0')
		switch {
		case kind == 's' && len(p) >= 1:
			n = 1 + uint64(p[0])
		case kind == 'l' && len(p) >= 4:
			n = 4 + uint64(binary.BigEndian.Uint32(p))
		}
		if n > uint64(len(p)) {
			return false
		}
		p = p[n:]
	}
	return known && len(p) == 0
}
