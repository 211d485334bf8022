package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/packed"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Version of the contract: a receiver that knows this version understands every message of it. It grows when a name
// changes its meaning or is removed, and not when a name is added.
const Version = "1"

// The names of the contract, as every protocol with headers or attributes carries them. HTTP spells them with capitals.
const (
	HeaderVersion   = "ordered-version"
	HeaderProcess   = "ordered-process"
	HeaderSequence  = "ordered-sequence"
	HeaderEpoch     = "ordered-epoch"
	HeaderAttempt   = "ordered-attempt"
	HeaderPosition  = "ordered-position"
	HeaderDedupKey  = "ordered-dedup-key"
	HeaderKey       = "ordered-key"
	HeaderType      = "ordered-type"
	HeaderCreatedAt = "ordered-created-at"
	HeaderOrigin    = "ordered-origin"  // a random name of the process's cursor
	HeaderReplay    = "ordered-replay"  // "true" for a record out of its turn: a dead letter that is replayed, or one that was asked for
	HeaderAmended   = "ordered-amended" // "true" for a record whose payload an operator has replaced
	HeaderTest      = "ordered-test"    // "true" for a test, which is no record

	// Both are for a payload that is not whole, because its process passes it on as it is.
	HeaderClaimCheck      = "ordered-claim-check"      // "true" if it is a reference to an object
	HeaderContentEncoding = "ordered-content-encoding" // how it is encoded, or that object

	// Only HTTP has this, with a secret: see package internal/signature.
	HeaderSignature = "ordered-signature"

	// Only claims of NATS have this: see package nats.
	HeaderWorker = "ordered-worker"

	HeaderContentType = "content-type"
	ContentType       = "application/json"
)

// Count is how many headers Each yields at most.
const Count = 17

// Each calls yield for every header of a delivery, in a fixed order. Origin, key, type and created-at are left out where the
// delivery has none, replay where it is in its turn, amended and test where it is neither, and the two of a payload that is not whole where it is. A sink escapes and bounds the values as its protocol needs.
func Each(d processor.Delivery, yield func(name, value string)) {
	yield(HeaderVersion, Version)
	yield(HeaderProcess, d.Process)
	yield(HeaderSequence, strconv.FormatInt(d.Sequence, 10))
	yield(HeaderEpoch, strconv.FormatInt(int64(d.Epoch), 10))
	yield(HeaderAttempt, strconv.Itoa(d.Attempt))
	yield(HeaderPosition, string(d.Position))
	yield(HeaderDedupKey, d.DedupKey())
	if d.Origin != "" {
		yield(HeaderOrigin, d.Origin)
	}
	if IsReplay(d) {
		yield(HeaderReplay, "true")
	}
	if d.Amended {
		yield(HeaderAmended, "true")
	}
	if IsTest(d) {
		yield(HeaderTest, "true")
	}
	if packed.Claimed(d.Headers) {
		yield(HeaderClaimCheck, "true")
	}
	if encoding := packed.Encoded(d.Headers); encoding != "" {
		yield(HeaderContentEncoding, encoding)
	}
	if d.Key != "" {
		yield(HeaderKey, d.Key)
	}
	if d.Type != "" {
		yield(HeaderType, d.Type)
	}
	if !d.CreatedAt.IsZero() {
		yield(HeaderCreatedAt, d.CreatedAt.UTC().Format(time.RFC3339Nano))
	}
	yield(HeaderContentType, ContentType)
}

// IsReplay reports a record out of its turn: a dead letter that is replayed, or a record that a receiver asked for.
func IsReplay(d processor.Delivery) bool { return d.Position != "" && d.After == d.Position }

// IsTest reports a test, which is no record: see processor.Test. Tests have a table that no source has.
func IsTest(d processor.Delivery) bool { return d.Table == processor.TestTable }

// ShortKey returns the dedup key of a delivery as a protocol with a bound carries it: the key itself if it fits, else
// its SHA-256. So receivers can compare two keys in either form.
func ShortKey(d processor.Delivery, fits func(string) bool) string {
	key := d.DedupKey()
	if fits(key) {
		return key
	}
	digest := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(digest[:])
}
