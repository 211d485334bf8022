package nats

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/wire"
)

// The headers that the sink reads back.
const (
	headerProcess  = wire.HeaderProcess
	headerSequence = wire.HeaderSequence
	headerEpoch    = wire.HeaderEpoch
	headerOrigin   = wire.HeaderOrigin
	headerReplay   = wire.HeaderReplay
	headerWorker   = wire.HeaderWorker
)

// maxHead bounds the part of the headers that comes from a record, in bytes before escapes, which make three bytes
// from one. A server takes messages of at most 64 MiB.
const maxHead = 8 << 20

// afterID comes between the id of a record and the sequence of another message that has the same id.
const afterID = "-"

// headSize returns the size that maxHead bounds.
func headSize(d processor.Delivery) int {
	size := len(d.ID) + len(d.Key) + len(d.Type)
	for name, value := range d.Headers {
		size += len(name) + len(value)
	}
	return size
}

// message makes the message of a record, without its expectations. It returns a Permanent error if the protocol
// cannot carry the record.
func message(d processor.Delivery, subject, id string) (*nats.Msg, error) {
	if size := headSize(d); size > maxHead {
		return nil, refused("its key, type, id and headers have %d bytes, and headers of NATS may have %d: make the row smaller", size, maxHead)
	}
	header := make(nats.Header, wire.Count+1+len(d.Headers))
	for name, value := range d.Headers {
		switch {
		case !validName(name):
			return nil, refused("the name of a header is empty, or has a colon or what is no printable ASCII")
		case wire.Ours(name) || wire.NATS(name):
			continue
		}
		header[name] = []string{escape(value)}
	}
	set(header, jetstream.MsgIDHeader, id)
	wire.Each(d, func(name, value string) { set(header, name, escape(value)) })
	return &nats.Msg{Subject: subject, Header: header, Data: d.Payload}, nil
}

// identify names the process and the cursor of a message, and its place.
func identify(header nats.Header, d processor.Delivery) {
	set(header, headerProcess, escape(d.Process))
	if d.Origin != "" {
		set(header, headerOrigin, escape(d.Origin))
	}
	set(header, headerSequence, strconv.FormatInt(d.Sequence, 10))
	set(header, headerEpoch, strconv.FormatInt(int64(d.Epoch), 10))
}

// workerOf names the worker of a claim by a digest, since the worker's name contains its host's name. "" is not
// known.
func workerOf(d processor.Delivery) string {
	if d.Worker == "" {
		return ""
	}
	digest := sha256.Sum256([]byte(d.Worker))
	return hex.EncodeToString(digest[:8])
}

// identity distinguishes one of our messages from every other message in its stream.
func identity(h nats.Header) string {
	names := []string{jetstream.MsgIDHeader, headerProcess, headerOrigin, headerSequence, headerEpoch}
	for i, name := range names {
		names[i] = h.Get(name)
	}
	return strings.Join(names, " ")
}

func set(header nats.Header, name, value string) { header[name] = []string{value} }

func setNumber(header nats.Header, name string, value uint64) {
	set(header, name, strconv.FormatUint(value, 10))
}

// number returns the value of a header that holds a number; ok is false if it does not.
func number(header nats.Header, name string) (value int64, ok bool) {
	value, err := strconv.ParseInt(header.Get(name), 10, 64)
	return value, err == nil
}

func validName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7F || r == ':' })
}

// messageID returns the record's Nats-Msg-Id, by which the server recognizes a message that it has. It has 32
// hexadecimal digits: a digest of the record's owner, its place and its payload. The dedup key alone would match
// other records, too: another process reads the same table, another database has a process of the same name, and ids
// come again. Of the record's number it takes the part that a promotion leaves unchanged: a record that was on its
// way then comes again.
func messageID(d processor.Delivery) string {
	digest := sha256.New()
	for _, part := range []string{cmp.Or(d.Origin, d.Process), strconv.FormatInt(d.Sequence%cursor.HistoryGap, 10), string(d.Position), d.DedupKey()} {
		fmt.Fprintf(digest, "%d:%s,", len(part), part)
	}
	digest.Write(d.Payload)
	return hex.EncodeToString(digest.Sum(nil)[:16])
}

// isOf reports whether a message belongs to the process of a record. It decodes the name, since an earlier version wrote
// UTF-8 as it is.
func isOf(h nats.Header, d processor.Delivery) bool {
	process, err := url.PathUnescape(h.Get(headerProcess))
	return err == nil && process == d.Process
}

// isPlain separates most values from those that need a closer look.
func isPlain(value string) bool {
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c >= 0x7F || c == '%' {
			return false
		}
	}
	return true
}

// escape turns any text into a header's value, which would otherwise be changed on its way. It is ASCII: the client of
// Java refuses a message with other bytes in a header. A URL decoder reverses it.
func escape(value string) string {
	if isPlain(value) {
		return value
	}
	var escaped strings.Builder
	for i := range len(value) {
		end := i == 0 || i == len(value)-1
		if c := value[i]; c > ' ' && c < 0x7F && c != '%' || c == ' ' && !end {
			escaped.WriteByte(c)
		} else {
			fmt.Fprintf(&escaped, "%%%02X", c)
		}
	}
	return escaped.String()
}
