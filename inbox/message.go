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

// Message is what Handle has to know of a record. FromHeaders reads it from the headers of a protocol.
type Message struct {
	Process  string // "ordered-process"
	Origin   string // "ordered-origin": identifies the cursor of the process
	Sequence int64  // "ordered-sequence", from 1
	Epoch    int64  // "ordered-epoch", from 1
	DedupKey string // "ordered-dedup-key"
	// Replay is true for a record out of its turn: a dead letter that is replayed, or one that the receiver asked for.
	Replay bool
	// Stream names the part of the process's records that has an order of its own: a partition of Kafka, or an ordering
	// key of Pub/Sub. It is "" where all records have one order, as over HTTP. FromHeaders leaves it "".
	Stream string
}

// FromHeaders reads a message from headers, properties or attributes: get returns the text of one, "" if it is absent.
// Its error wraps ErrMessage.
func FromHeaders(get func(name string) string) (Message, error) {
	m := Message{Process: get("ordered-process"), Origin: get("ordered-origin"), DedupKey: get("ordered-dedup-key"), Replay: get("ordered-replay") == "true"}
	var err error
	if m.Sequence, err = strconv.ParseInt(get("ordered-sequence"), 10, 64); err != nil {
		return m, fmt.Errorf("%w: ordered-sequence: %w", ErrMessage, err)
	}
	if m.Epoch, err = strconv.ParseInt(get("ordered-epoch"), 10, 64); err != nil {
		return m, fmt.Errorf("%w: ordered-epoch: %w", ErrMessage, err)
	}
	return m, m.validate()
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
