// Package packed finds, by the headers of a record, that its payload has to be unpacked before it can be decoded.
//
//	headers of a record ──► Fault ──► nil: the payload may be decoded
//
// # Nouns
//
//   - Packed: a payload that is a claim check, which is a reference to an object, or that is encoded, as by compression.
//
// # Invariants
//
//   - A program that decodes payloads asks Fault first: a reference is JSON, too, and would be decoded as an empty value.
//   - A program that passes payloads on passes on that they are packed.
//
// # Left out
//
// Unpacking: see package payload.
package packed

import (
	"errors"
	"strings"
)

// The headers of a record whose payload is packed.
const (
	Claim    = "claim-check"      // the payload is a reference: see package claim
	Encoding = "content-encoding" // as HTTP has it
)

// Claimed reports that the payload is a reference.
func Claimed(headers map[string]string) bool {
	_, claimed := headers[Claim]
	return claimed
}

// Encoded returns how the payload is encoded, or the object of a claim check; "" if it is not. A text that names no
// encoding is "unknown": it comes from a row.
func Encoded(headers map[string]string) string {
	name, encoded := headers[Encoding]
	switch {
	case !encoded || name == "" || name == "identity":
		return ""
	case len(name) > 64 || strings.ContainsFunc(name, isOutsideToken):
		return "unknown"
	default:
		return name
	}
}

// isOutsideToken is for names of encodings, of which some are a list: RFC 9110 section 8.4.
func isOutsideToken(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.+, ", r)
}

// Fault returns why a payload must not be decoded as it is; nil if it may be. It quotes nothing of the record.
func Fault(headers map[string]string) error {
	switch {
	case Claimed(headers):
		return errors.New("its payload is a claim check, which this process passes on: resolve it first, with the key `claims`, or in Go with payload.Resolve")
	case Encoded(headers) != "":
		return errors.New("its payload is compressed, which this process passes on: decompress it first, with the key `compressed`, or in Go with payload.Decompress")
	default:
		return nil
	}
}
