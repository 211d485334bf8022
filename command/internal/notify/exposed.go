package notify

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/plaintext"
)

// Exposed returns the host to which secrets of the target go without TLS; "" if there is none.
func (t Target) Exposed() string {
	switch {
	case t.Webhook != nil:
		return plaintext.URL(t.Webhook.URL, len(t.Webhook.Headers) > 0 || pathOf(t.Webhook.URL) != "", "http")
	case t.Slack != nil:
		return plaintext.URL(t.Slack.URL, true, "http")
	default:
		return ""
	}
}

// Files returns the program of a target, and the first of its arguments that is a file. If the program is an
// interpreter, that file is its script.
func (t Target) Files() (all []string) {
	if t.Exec == nil || len(t.Exec.Command) == 0 {
		return nil
	}
	at := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(t.Exec.Dir, path)
	}
	program := t.Exec.Command[0]
	if !strings.ContainsRune(program, filepath.Separator) {
		program, _ = exec.LookPath(program)
	}
	if program != "" {
		all = append(all, at(program))
	}
	for _, argument := range t.Exec.Command[1:] {
		if info, err := os.Stat(at(argument)); err == nil && info.Mode().IsRegular() {
			return append(all, at(argument))
		}
	}
	return all
}
