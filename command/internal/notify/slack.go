package notify

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
)

// slack sends messages in the form that incoming webhooks of Slack take.
type slack struct{ caller }

func newSlack(c Slack) slack { return slack{newCaller(c.URL, c.TLS)} }

// String names scheme and host. The rest of the address is a secret.
func (s slack) String() string { return "Slack webhook at " + s.caller.String() }

// escaped makes a text one in which nothing is a link, a mention or a command to Slack. Services that take the same form
// also know a mention and a link that are written plainly: a space of no width breaks them. Our own links stay links.
var escaped = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "@\u200b", "://", ":\u200b//")

func (s slack) send(ctx context.Context, m Message) error {
	text := "*" + escaped.Replace(m.Subject()) + "*\n"
	for line := range strings.Lines(m.Text()) {
		broken := escaped.Replace(line)
		if m.isLink(strings.TrimSuffix(line, "\n")) {
			broken = strings.ReplaceAll(broken, "\u200b", "")
		}
		text += broken
	}
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		return err
	}
	return s.post(ctx, http.Header{}, body)
}
