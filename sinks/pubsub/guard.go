package pubsub

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"

	"google.golang.org/grpc/status"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/bounded"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
)

// defaultCredentials is the variable that Application Default Credentials look at first.
const defaultCredentials = "GOOGLE_APPLICATION_CREDENTIALS"

// newGuard reads the credentials again, as a connection does: a client sends parts of
// them for a token, and the answer may repeat them. A file that cannot be read has no
// secret that was sent.
func newGuard(c Config) secret.Guard {
	var g secret.Guard
	if path := cmp.Or(c.Credentials, os.Getenv(defaultCredentials)); path != "" && c.Emulator == "" {
		text, _ := bounded.File(path)
		g.Secrets = secret.New(secretsOf(text)...)
	}
	if c.HideAnswers {
		g.Words = words
	}
	return g
}

// secretsOf are what the JSON of Google's credentials keeps secret, at any depth: one
// account may lend its rights to another.
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

// words are the service's in an error.
func words(err error) []string {
	var answer interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &answer) {
		return nil
	}
	return []string{answer.GRPCStatus().Message()}
}
