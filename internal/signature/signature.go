// Package signature signs requests, and verifies them: the two signatures of docs/wire.md.
package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Prefix is what a secret in base64 begins with.
const Prefix = "whsec_"

const (
	minKey = 24
	maxKey = 64
)

// Keys are the keys of a secret. The sender signs with each, and a receiver accepts each.
type Keys [][]byte

// Parse returns the keys of a secret: one or more, with spaces between, each of 24 to 64 bytes as they are, or in
// base64 after `whsec_`. Its errors quote nothing of it.
func Parse(secret string) (Keys, error) {
	var keys Keys
	for _, s := range strings.Fields(secret) {
		key, err := parseKey(s)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	if secret != "" && len(keys) == 0 {
		return nil, errors.New("is blank: remove it, or is its environment variable unset?")
	}
	return keys, nil
}

func parseKey(secret string) ([]byte, error) {
	key := []byte(secret)
	if encoded, ok := strings.CutPrefix(secret, Prefix); ok {
		var err error
		if key, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return nil, errors.New("is not base64 after whsec_: copy it again, with the = at its end")
		}
	}
	if len(key) < minKey || len(key) > maxKey {
		return nil, fmt.Errorf("has a key of %d bytes, not %d to %d: make one with `openssl rand -base64 32` and put whsec_ before it",
			len(key), minKey, maxKey)
	}
	return key, nil
}

// Message is what is signed: the headers of a request as they are sent, by their canonical names, and its body.
type Message struct {
	Header http.Header
	Body   []byte
}

// The headers that both signatures cover, and the one of ours. Ordered covers all headers that begin with prefix.
const (
	idHeader        = "Webhook-Id"
	timestampHeader = "Webhook-Timestamp"
	orderedHeader   = "Ordered-Signature"
	prefix          = "Ordered-"
)

// Standard returns the value of webhook-signature: Standard Webhooks 1.0.0, "Signature scheme".
func (k Keys) Standard(m Message) string {
	return k.sign([]byte(m.Header.Get(idHeader)+"."+m.Header.Get(timestampHeader)+"."), m.Body)
}

// Ordered returns the value of ordered-signature. No value of a header has a line feed, so the lines cannot be mistaken.
func (k Keys) Ordered(m Message) string { return k.sign(m.lines()) }

// VerifyOrdered reports whether the value of ordered-signature has a signature of the message by one of the keys. Its
// caller has refused a message for which Doubled is not "".
func (k Keys) VerifyOrdered(m Message) bool {
	given := strings.Split(m.Header.Get(orderedHeader), " ")
	return slices.ContainsFunc(k, func(key []byte) bool {
		want := []byte(Keys{key}.Ordered(m))
		return slices.ContainsFunc(given, func(one string) bool { return hmac.Equal([]byte(one), want) })
	})
}

// Doubled returns the name of a header that is signed, or is a signature, and that came more than once; "" if there is
// none. Two parts of a receiver could believe different values of it.
func Doubled(header http.Header) string {
	for name, values := range header {
		if len(values) > 1 && (isOrdered(name) || name == idHeader || name == timestampHeader) {
			return strings.ToLower(name)
		}
	}
	return ""
}

func isOrdered(name string) bool { return strings.HasPrefix(name, prefix) }

// lines returns what Ordered signs: docs/wire.md has its form.
func (m Message) lines() []byte {
	var headers []string
	for name := range m.Header {
		if isOrdered(name) && name != orderedHeader {
			headers = append(headers, strings.ToLower(name)+":"+m.Header.Get(name))
		}
	}
	slices.SortFunc(headers, func(a, b string) int { return strings.Compare(name(a), name(b)) })
	digest := sha256.Sum256(m.Body)
	lines := append([]string{"ordered-v1", m.Header.Get(idHeader), m.Header.Get(timestampHeader)}, headers...)
	return []byte(strings.Join(append(lines, hex.EncodeToString(digest[:])), "\n"))
}

// name returns the part of a line before its colon: a line sorts by that alone.
func name(line string) string {
	before, _, _ := strings.Cut(line, ":")
	return before
}

func (k Keys) sign(parts ...[]byte) string {
	var signatures []byte
	for i, key := range k {
		mac := hmac.New(sha256.New, key)
		for _, part := range parts {
			_, _ = mac.Write(part) // a hash never fails
		}
		if i > 0 {
			signatures = append(signatures, ' ')
		}
		signatures = append(signatures, "v1,"...)
		signatures = base64.StdEncoding.AppendEncode(signatures, mac.Sum(nil))
	}
	return string(signatures)
}
