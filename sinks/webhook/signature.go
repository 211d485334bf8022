package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	secretPrefix = "whsec_"
	minKey       = 24
	maxKey       = 64
)

// parseSecret returns the keys of a Secret. Its errors quote nothing of it.
func parseSecret(secret string) ([][]byte, error) {
	var keys [][]byte
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
	if encoded, ok := strings.CutPrefix(secret, secretPrefix); ok {
		var err error
		if key, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return nil, errors.New("is not base64 behind whsec_: copy it again, with the = at its end")
		}
	}
	if len(key) < minKey || len(key) > maxKey {
		return nil, fmt.Errorf("has a key of %d bytes, not %d to %d: make one with `openssl rand -base64 32` and put whsec_ before it",
			len(key), minKey, maxKey)
	}
	return key, nil
}

// sign returns the value of webhook-signature: Standard Webhooks 1.0.0,
// "Signature scheme".
func sign(keys [][]byte, id, timestamp string, payload []byte) string {
	var signatures []byte
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		_, _ = io.WriteString(mac, id+"."+timestamp+".") // a hash never fails
		_, _ = mac.Write(payload)
		if i > 0 {
			signatures = append(signatures, ' ')
		}
		signatures = append(signatures, "v1,"...)
		signatures = base64.StdEncoding.AppendEncode(signatures, mac.Sum(nil))
	}
	return string(signatures)
}
