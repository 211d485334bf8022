package inbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrMessage means that a header is missing, wrong, or there twice. Answer 400.
var ErrMessage = errors.New("inbox: the request is no record")

// knownVersion is the version of the contract that this package knows.
const knownVersion = "1"

// ErrClaim means that the message is a claim of a worker, and not a record, or that the server of NATS wrote it in the
// place of one: the sink nats keeps claims in its stream. Acknowledge it, and go on. It wraps ErrMessage.
var ErrClaim = fmt.Errorf("%w: it is the claim of a worker", ErrMessage)

// Message is what Handle has to know of a record. FromHeaders reads it from the headers of a protocol.
type Message struct {
	Process  string // "ordered-process"
	Origin   string // "ordered-origin": identifies the cursor of the process
	Sequence int64  // "ordered-sequence", from 1
	Epoch    int64  // "ordered-epoch", from 1
	DedupKey string // "ordered-dedup-key"
	// Replay is true for a record out of its turn: a dead letter that is replayed, or one that the receiver asked for.
	Replay bool
	// Test is true for a test, which is no record: `ordered-dispatcher send-test` sends it. Handle applies nothing.
	Test bool
	// ClaimCheck reports that the payload is a reference to an object, and not the payload itself: see docs/producers.md.
	ClaimCheck bool
	// ContentEncoding is how the payload is encoded, or the object of a reference, such as "zstd"; "" if it is not. Do not
	// decode such a payload before it is unpacked: a reference is JSON, too.
	ContentEncoding string
	// Stream names the part of the process's records that has an order of its own: a partition of Kafka, or an ordering
	// key of Pub/Sub. It is "" where all records have one order, as over HTTP.
	Stream string
}

// FromHeaders reads a message of a stream from headers, properties or attributes: get returns the text of one, "" if it
// is absent. For NATS, call FromNATS. stream is Message.Stream: with Kafka the topic and the partition, and "" where all
// records have one order. The error wraps ErrMessage, and for a claim ErrClaim, or it is a *VersionError.
func FromHeaders(stream string, get func(name string) string) (Message, error) {
	process, key, version := get("ordered-process"), get("ordered-dedup-key"), get("ordered-version")
	if process != "" && key == "" && version == "" { // every record has these two
		return Message{Process: process}, ErrClaim
	}
	if err := requireVersion(version); err != nil {
		return Message{}, err
	}
	m := Message{
		Process: process, Origin: get("ordered-origin"), DedupKey: key,
		Replay: get("ordered-replay") == "true", Test: get("ordered-test") == "true", ClaimCheck: get("ordered-claim-check") == "true", ContentEncoding: get("ordered-content-encoding"),
		Stream: stream,
	}
	var err error
	if m.Sequence, err = number(get, "ordered-sequence"); err != nil {
		return m, err
	}
	if m.Epoch, err = number(get, "ordered-epoch"); err != nil {
		return m, err
	}
	return m, m.validate()
}

// FromNATS does what FromHeaders does with a message of NATS, whose values are percent-encoded. get is the method Get of
// its header.
func FromNATS(stream string, get func(name string) string) (Message, error) {
	if get("ordered-version") == "" && get("Nats-Marker-Reason") != "" {
		return Message{}, ErrClaim
	}
	return FromHeaders(stream, func(name string) string { return unescape(get(name)) })
}

// requireVersion comes first: in another version, names may be missing or mean something else.
func requireVersion(text string) error {
	switch text {
	case knownVersion:
		return nil
	case "":
		return fmt.Errorf("%w: it lacks ordered-version", ErrMessage)
	default:
		return &VersionError{Version: text}
	}
}

// number reads 1 to 19 digits, without a sign: all receivers take the same.
func number(get func(name string) string, name string) (int64, error) {
	text := get(name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || !isDigits(text) {
		return 0, fmt.Errorf("%w: %s is %.50q, which is no number of 64 bits", ErrMessage, name, text)
	}
	return n, nil
}

func isDigits(text string) bool {
	return len(text) <= 19 && strings.Trim(text, "0123456789") == ""
}

func (m Message) validate() error {
	if m.Process == "" || m.Origin == "" || m.DedupKey == "" || m.Sequence < 1 || m.Epoch < 1 {
		return fmt.Errorf("%w: it lacks a process, an origin, a dedup key, a sequence or an epoch: %+v", ErrMessage, m)
	}
	for _, text := range []string{m.Process, m.Origin, m.DedupKey, m.Stream} {
		if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			return fmt.Errorf("%w: %q has a NUL, or is not UTF-8", ErrMessage, text)
		}
	}
	return nil
}

// maxNoted bounds the texts of an index, in bytes. PostgreSQL takes about 2,700 for one entry.
const maxNoted = 500

// noted returns a dedup key or a stream as the tables have it: itself, or its SHA-256 if it is long. Brokers carry a long
// dedup key in the same form.
func noted(text string) string {
	if len(text) <= maxNoted {
		return text
	}
	digest := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(digest[:])
}
