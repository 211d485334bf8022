package pubsub

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"

	"google.golang.org/grpc/status"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/bounded"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
)

// defaultCredentials is the variable that Application Default Credentials look at first.
const defaultCredentials = "GOOGLE_APPLICATION_CREDENTIALS"

// newGuard reads the credentials again, as a connection does. A client sends parts of them to get a token, and the
// answer may repeat those parts. If a file cannot be read, none of its secrets was sent.
func newGuard(c Config) secret.Guard {
	g := secret.Guard{Said: said, Hide: c.HideAnswers}
	if path := cmp.Or(c.Credentials, os.Getenv(defaultCredentials)); path != "" && c.Emulator == "" {
		text, _ := bounded.File(path)
		g.Secrets = secret.New(secretsOf(text)...)
	}
	return g
}

// secretsOf returns the secrets in the JSON of Google's credentials, at any depth: one account may lend its rights to
// another.
func secretsOf(text []byte) (all []string) {
	var file struct {
		Key     string          `json:"private_key"`
		Client  string          `json:"client_secret"`
		Refresh string          `json:"refresh_token"`
		Source  json.RawMessage `json:"source_credentials"`
	}
	if json.Unmarshal(text, &file) != nil {
		return nil
	}
	all = append(all, file.Key, file.Client, file.Refresh)
	if len(file.Source) > 0 {
		all = append(all, secretsOf(file.Source)...)
	}
	return all
}

// said finds the service's words in an error: the message of a status, and its details.
func said(err error) (hidden string, ok bool) {
	switch e := err.(type) { // each error of a chain is checked by itself
	case *undialled:
		return e.text, true
	case interface{ GRPCStatus() *status.Status }:
		return fmt.Sprintf("rpc error: code = %v desc = %s", e.GRPCStatus().Code(), secret.Hidden), true
	default:
		return "", false
	}
}

// dialled matches the client's error for a connection that it could not make. Its errors for other failures may
// contain words of the host that answered: of a certificate, or of a proxy.
var dialled = regexp.MustCompile(`connection error: desc = "transport: Error while dialing: (dial (?:tcp|unix)[^"]*)"$`)

// undialled is the client's error for a connection that could not be made, with only the reason.
type undialled struct {
	error
	text string
}

func (u *undialled) Error() string { return u.text }

func (u *undialled) Unwrap() error { return u.error }

// unheard is the error of a request that has no answer: then a failed dial is the client's own error.
func unheard(err error) error {
	answer, ok := status.FromError(err)
	if !ok {
		return err
	}
	if found := dialled.FindStringSubmatch(answer.Message()); found != nil {
		return &undialled{err, found[1]}
	}
	return err
}
