package redis

import (
	"bytes"
	"errors"
	"strconv"
	"sync/atomic"
)

const (
	maxReplies = 4 << 20   // bytes of what Redis says between two writes
	maxText    = 256 << 10 // bytes of one text of it
	// maxElements of all lists between two writes: two for each record of the largest window, and a few hundred. So it
	// bounds how deep lists are in lists, too.
	maxElements = 2*10_000 + 480
)

// errTooMuch: the client takes memory for what a reply promises to have.
var errTooMuch = errors.New("the server there sends more than Redis does")

// replies follows what Redis says, in RESP, up to what would exhaust the memory. It is used by one reader, and begin by one
// writer.
type replies struct {
	total    atomic.Int64 // bytes since the last write
	elements atomic.Int64 // that lists have promised since then
	line     []byte       // the line so far
	skip     int64        // bytes of a text that are still to come
}

func (r *replies) begin() {
	r.total.Store(0)
	r.elements.Store(0)
}

func (r *replies) follow(p []byte) error {
	if r.total.Add(int64(len(p))) > maxReplies {
		return errTooMuch
	}
	for len(p) > 0 {
		if n := min(r.skip, int64(len(p))); n > 0 {
			r.skip -= n
			p = p[n:]
			continue
		}
		part, rest, whole := bytes.Cut(p, []byte("\n"))
		if len(r.line)+len(part) > maxText {
			return errTooMuch
		}
		r.line, p = append(r.line, part...), rest
		if !whole {
			return nil
		}
		if err := r.header(); err != nil {
			return err
		}
		r.line = r.line[:0]
	}
	return nil
}

// header takes up a line: the beginning of a text or of a list, or a reply of its own. The client asks for version 2 of
// RESP, whose only lists are arrays. It would read others too, and calls itself for each attribute.
func (r *replies) header() error {
	line := bytes.TrimSuffix(r.line, []byte("\r"))
	if len(line) == 0 {
		return nil
	}
	switch line[0] {
	case '$', '=', '!':
		n := length(line)
		if n > maxText {
			return errTooMuch
		}
		if n >= 0 {
			r.skip = n + int64(len("\r\n"))
		}
	case '*':
		if n := length(line); n > maxElements || n > 0 && r.elements.Add(n) > maxElements {
			return errTooMuch
		}
	case '%', '~', '>', '|':
		return errTooMuch
	}
	return nil
}

// length is the number after the first byte of a line. One that is none is for the client to refuse.
func length(line []byte) int64 {
	n, err := strconv.ParseInt(string(line[1:]), 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		return maxReplies
	}
	if err != nil {
		return -1
	}
	return n
}
