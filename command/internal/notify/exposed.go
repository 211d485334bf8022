package notify

import "github.com/ordered-dispatcher/ordered-dispatcher/internal/plaintext"

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

// Files returns the program of a target and its script, as child.Program.Files does.
func (t Target) Files() []string {
	if t.Exec == nil {
		return nil
	}
	return t.Exec.program().Files()
}
