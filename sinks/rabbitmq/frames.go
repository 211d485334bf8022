package rabbitmq

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
)

const (
	// maxFrame bounds a frame. RabbitMQ's have at most 128 KiB, unless its frame_max is raised.
	maxFrame = 1 << 20

	frameHead    = 7  // type, channel and size
	contentHead  = 12 // class, weight and the size of the body
	contentFrame = 2  // the type of a frame that begins a message
)

var (
	errFrame    = fmt.Errorf("the broker sent a frame of more than %d bytes: is it RabbitMQ?", maxFrame)
	errReturned = errors.New("the broker returned a message that was not sent: is it RabbitMQ?")
)

// frames follows the bytes of the broker, and finds out when they would exhaust the memory: the client keeps the
// frames of a message until it has the size that the broker gave. Here a broker only sends messages of ours that it
// returns.
type frames struct {
	largest atomic.Int64 // body of ours, in bytes
	due     atomic.Int64 // messages of ours that can be returned
	head    []byte       // of a frame
	rest    int          // bytes that are left of it
}

// sends notes a message of ours, before it is sent.
func (f *frames) sends(body []byte) {
	f.largest.Store(max(f.largest.Load(), int64(len(body))))
	f.due.Add(1)
}

// follow reads bytes of the broker.
func (f *frames) follow(p []byte) error {
	for len(p) > 0 {
		if n := min(f.rest, len(p)); n > 0 {
			f.rest, p = f.rest-n, p[n:]
			continue
		}
		f.head, p = append(f.head, p[0]), p[1:]
		if err := f.begun(); err != nil {
			return err
		}
	}
	return nil
}

// begun looks at the beginning of a frame, as far as it has arrived.
func (f *frames) begun() error {
	if len(f.head) < frameHead {
		return nil
	}
	size := int64(binary.BigEndian.Uint32(f.head[3:]))
	if size > maxFrame {
		return errFrame
	}
	end := frameHead + int(size) + 1
	if f.head[0] == contentFrame && size >= contentHead {
		if len(f.head) < frameHead+contentHead {
			return nil
		}
		body := binary.BigEndian.Uint64(f.head[frameHead+4:])
		if f.due.Add(-1) < 0 || body > uint64(f.largest.Load()) {
			return errReturned
		}
	}
	f.rest, f.head = end-len(f.head), f.head[:0]
	return nil
}
