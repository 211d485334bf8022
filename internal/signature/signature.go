// Package signature signs requests, and verifies them: the two signatures of docs/wire.md.
package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
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

// Message is what a signature covers: values of headers as they are sent, and the body.
type Message struct {
	ID, Timestamp            string // webhook-id, webhook-timestamp
	Process, Sequence, Epoch string // ordered-process, ordered-sequence, ordered-epoch
	Body                     []byte
}

// Standard returns the value of webhook-signature: Standard Webhooks 1.0.0, "Signature scheme".
func (k Keys) Standard(m Message) string {
	return k.sign([]byte(m.ID+"."+m.Timestamp+"."), m.Body)
}

// Ordered returns the value of ordered-signature. No value of a header has a line feed, so the lines cannot be mistaken.
func (k Keys) Ordered(m Message) string { return k.sign(m.lines()) }

// VerifyOrdered reports whether a value of ordered-signature has a signature of the message by one of the keys.
func (k Keys) VerifyOrdered(value string, m Message) bool {
	given := strings.Fields(value)
	return slices.ContainsFunc(k, func(key []byte) bool {
		want := []byte(Keys{key}.Ordered(m))
		return slices.ContainsFunc(given, func(one string) bool { return hmac.Equal([]byte(one), want) })
	})
}

func (m Message) lines() []byte {
	digest := sha256.Sum256(m.Body)
	return []byte(strings.Join([]string{"ordered-v1", m.ID, m.Timestamp, m.Process, m.Sequence, m.Epoch, hex.EncodeToString(digest[:])}, "\n"))
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
