// Package secrettest repeats a secret in the forms in which receivers may repeat it, for tests.
package secrettest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Canary is a secret with letters that some forms escape. Tests look for it.
const Canary = "CANARY/pass+word&9"

// Words are the words of a receiver before it repeats a secret.
const Words = "no user has "

// Forms returns a text repeated in all forms, one after the other.
func Forms(text string) string {
	quoted, _ := json.Marshal(text) // never fails for a string
	return fmt.Sprintf("%s %s %s %s %x %s", text, quoted, url.QueryEscape(text), html.EscapeString(text), text,
		base64.StdEncoding.EncodeToString([]byte("id:"+text)))
}

// RequireNone fails if a text contains a secret, in any of its forms.
func RequireNone(t testing.TB, text, secret string) {
	t.Helper()
	for _, form := range strings.Fields(Forms(secret)) {
		require.NotContains(t, text, form)
		require.NotContains(t, text, form[:len(form)*2/3], "the beginning of a form")
	}
}

// RequireMasked fails unless an error quotes the receiver's Words and masks Canary right
// after them. If hidden, none of it may be quoted.
func RequireMasked(t testing.TB, err error, hidden bool) {
	t.Helper()
	require.Error(t, err)
	RequireNone(t, err.Error(), Canary)
	if hidden {
		require.NotContains(t, err.Error(), Words)
	} else {
		require.Regexp(t, Words+`[\\"]*\[secret\]`, err.Error())
	}
}
