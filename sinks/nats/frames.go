package nats

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
)

const (
	// maxLine bounds a line of the protocol. A server's INFO, the longest line, has some kilobytes.
	maxLine = 64 << 10
	// maxFrame bounds a message. Servers allow at most 64 MiB of payload, and less for headers.
	maxFrame = 65 << 20
	// maxElements bounds the commas of a message. All messages that we receive are JSON, which the client decodes, and
	// there an element of three bytes takes a hundred. A message of the stream inside that JSON is in base64, which has
	// no commas.
	maxElements = 100_000
	// maxWithHeaders bounds a message with headers, each of which the client keeps: the server answers so with a status
	// alone. Messages of the stream are read as JSON: see askLeader.
	maxWithHeaders = 64 << 10
)

var errLine = fmt.Errorf("the server sent a line of more than %d bytes: is it a NATS server?", maxLine)

// framed is a connection that follows the protocol as it reads. It ends the connection if a server would exhaust the
// memory. The client keeps a line until its end, however long it is, and believes the size that a server gives a
// message. Over TLS framed sees nothing, but there the server has shown its certificate.
//
// The client forgives a server much: it goes on after any bytes behind a message, and takes a line's end for a part of
// the line after "-ERR ". framed takes only what a NATS server sends. So both see a message begin at the same byte.
type framed struct {
	net.Conn
	opaque  atomic.Bool // TLS has begun; the client writes and reads at the same time
	line    []byte
	payload int // bytes that are left of a message
	after   string
	commas  int          // of a message, so far
	written atomic.Int64 // bytes that the network has taken, or may have
}

// Write notices when the client begins TLS. It does so before it writes anything else. Later such a byte is a record's.
func (f *framed) Write(p []byte) (int, error) {
	const handshake = 0x16
	if len(p) > 0 && p[0] == handshake && f.written.Load() == 0 {
		f.opaque.Store(true)
	}
	f.written.Add(int64(len(p))) // before the write: one that is cut off may be counted while it goes on
	n, err := f.Conn.Write(p)
	f.written.Add(int64(n - len(p)))
	return n, err
}

func (f *framed) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if f.opaque.Load() {
		return n, err
	}
	if fault := f.follow(p[:n]); fault != nil {
		_ = f.Conn.Close()
		return 0, fault
	}
	return n, err
}

// follow reads bytes of the server.
func (f *framed) follow(p []byte) error {
	for len(p) > 0 {
		if f.payload > 0 {
			n := min(f.payload, len(p))
			f.commas += bytes.Count(p[:n], []byte{','})
			if f.commas > maxElements {
				return errElements
			}
			f.payload, p = f.payload-n, p[n:]
			continue
		}
		if f.after != "" {
			if p[0] != f.after[0] {
				return errSyntax
			}
			f.after, p = f.after[1:], p[1:]
			continue
		}
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			end = len(p) - 1
		}
		if len(f.line)+end >= maxLine {
			return errLine
		}
		f.line, p = append(f.line, p[:end+1]...), p[end+1:]
		if f.line[len(f.line)-1] != '\n' {
			return nil
		}
		if err := f.ended(); err != nil {
			return err
		}
	}
	return nil
}

var errElements = fmt.Errorf("the server sent an answer of more than %d elements: is it a NATS server?", maxElements)

var errHeaders = fmt.Errorf("the server sent a message of more than %d bytes with headers: is it a NATS server?", maxWithHeaders)

var errSize = errors.New("the server sent a message whose size cannot be: is it a NATS server?")

var errSyntax = errors.New("the server sent bytes that the protocol does not have: is it a NATS server?")

const lineEnd = "\r\n"

// ended looks at a complete line. The line of a message names its size at the end.
func (f *framed) ended() error {
	line, whole := strings.CutSuffix(string(f.line), lineEnd)
	f.line = f.line[:0]
	if !whole || strings.Contains(line, "\r") {
		return errSyntax
	}
	at := strings.IndexAny(line+" ", " \t")
	verb, words := strings.ToUpper(line[:at]), strings.FieldsFunc(line[at:], func(r rune) bool { return r == ' ' || r == '\t' })
	switch bare := len(line) == at; {
	case bare && (verb == "PING" || verb == "PONG" || verb == "+OK"):
		return nil
	case len(words) == 0: // the client would go on reading after the line's end
		return errSyntax
	case verb == "INFO", verb == "-ERR":
		return nil
	case verb != "MSG" && verb != "HMSG":
		return errSyntax
	}
	size, err := strconv.Atoi(words[len(words)-1])
	if err != nil || size < 0 || size > maxFrame {
		return errSize
	}
	if verb == "HMSG" && size > maxWithHeaders {
		return errHeaders
	}
	f.payload, f.after, f.commas = size, lineEnd, 0
	return nil
}
