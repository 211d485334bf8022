package notify

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/signature"
)

// Target is who is told. Zero values mean defaults.
type Target struct {
	// Name is the key of the entry in the file.
	Name string
	// Webhook gets a signed request; nil: not this kind. The same holds for the next three.
	//
	// In the file: a signed request with the message as JSON. A target has this key, or one of the next three.
	Webhook *Webhook `knob:"webhook"`
	// Slack gets a message of Slack's form.
	//
	// In the file: an incoming webhook of Slack, or of a service that takes the same, such as Mattermost.
	Slack *Slack `knob:"slack"`
	// SMTP gets an e-mail.
	//
	// In the file: an e-mail.
	SMTP *SMTP `knob:"smtp"`
	// Exec runs a program.
	//
	// In the file: a program that is started for each message.
	Exec *Exec `knob:"exec"`
	// Events are those of which the target is told: events, and Recovery. Default: all.
	//
	// In the file: the events of which the target is told: `halt`, `lag`, `dead_letters` and `recovery`. Default: all.
	Events []string `knob:"events" like:"events: [halt, recovery]"`
	// Processes are those of which the target is told. Default: all.
	//
	// In the file: the processes of which the target is told. Default: all of the file.
	Processes []string `knob:"processes" like:"processes: [booking_sms]"`
}

// Webhook describes a receiver of signed requests.
type Webhook struct {
	// URL is where the requests go. Required.
	//
	// In the file: where the requests go.
	URL string `knob:"url" need:"url: https://on-call.example/alarms" secret:"true"`
	// Secret signs the requests, as that of the webhook sink does: one or several, with spaces between. Default: they
	// are not signed.
	//
	// In the file: signs the requests as [Standard Webhooks](docs/wire.md#signatures) describe: one secret, or
	// several with spaces between. Default: they are not signed.
	Secret string `knob:"secret" like:"secret: ${ALARM_SECRET}" secret:"true"`
	// Headers are sent with each request. Values may be secrets.
	//
	// In the file: headers of each request. Default: none.
	Headers map[string]string `knob:"headers" secret:"true"`
	// TLS has the authorities and the certificate of the connection. Default: the system's authorities.
	TLS *tls.Config `knob:"tls"`
	// Timeout bounds a request.
	Timeout time.Duration `knob:"timeout" default:"10s" min:"1ms" max:"20s"`
}

// Slack describes an incoming webhook of Slack, or of a service that takes the same.
type Slack struct {
	// URL is the address of the webhook, which is a secret. Required.
	//
	// In the file: the address of the webhook, which is a secret.
	URL string `knob:"url" need:"url: ${SLACK_URL}" secret:"true"`
	// TLS has the authorities and the certificate of the connection. Default: the system's authorities.
	TLS *tls.Config `knob:"tls"`
	// Timeout bounds a request.
	Timeout time.Duration `knob:"timeout" default:"10s" min:"1ms" max:"20s"`
}

// SMTP describes a mail server, and who gets the messages.
type SMTP struct {
	// Host is the name of the mail server. Required.
	//
	// In the file: the name of the mail server.
	Host string `knob:"host" need:"host: smtp.example.com"`
	// Port is that of the server. Default: 587, and 465 with TLS from the start.
	//
	// In the file: the port of the server. Default: 587, and 465 with `security: tls`.
	Port int `knob:"port" min:"1" max:"65535"`
	// Security is how the connection is encrypted: starttls asks for it and refuses a server without it, tls begins with
	// it, and none sends everything in the clear.
	//
	// In the file: how the connection is encrypted. `starttls` begins in the clear, and refuses a server that cannot
	// encrypt. `tls` encrypts from the start. `none` sends everything in the clear, and no password.
	Security string `knob:"security" default:"starttls" oneof:"starttls tls none"`
	// User and Password are the login. Default: no login.
	//
	// In the file: the name of the login. Default: no login.
	User string `knob:"user" like:"user: alarms@example.com"`
	// Password is that of User.
	//
	// In the file: the password of the login.
	Password string `knob:"password" like:"password: ${SMTP_PASSWORD}" secret:"true"`
	// From is the sender's address. Required.
	//
	// In the file: the sender's address.
	From string `knob:"from" need:"from: alarms@example.com"`
	// To are the addresses that get the messages. Required.
	//
	// In the file: the addresses that get the messages.
	To []string `knob:"to" need:"to: [on-call@example.com]" one:"true"`
	// TLS has the authorities and the certificate of the connection. Default: the system's authorities.
	TLS *tls.Config `knob:"tls"`
	// Timeout bounds an e-mail.
	Timeout time.Duration `knob:"timeout" default:"15s" min:"1ms" max:"20s"`
}

// Exec describes a program.
type Exec struct {
	// Command is the program and its arguments. There is no shell. Required.
	//
	// In the file: the program and its arguments. There is no shell.
	Command []string `knob:"command" need:"command: [/usr/local/bin/page]"`
	// Dir is the child's working directory. Default: this process's.
	//
	// In the file: the child's working directory. Default: the one of `ordered-dispatcher`.
	Dir string `knob:"dir"`
	// Env is the child's environment, besides those of the exec sink and those with the message. Values may be secrets.
	//
	// In the file: variables of the child, in addition to `PATH HOME LANG LC_ALL TZ TMPDIR` and those of the message.
	// Default: none.
	Env map[string]string `knob:"env" secret:"true"`
	// Timeout bounds a run. Then the child's group is killed.
	//
	// In the file: bounds a run of the program. Then it and its own children are killed.
	Timeout time.Duration `knob:"timeout" default:"15s" min:"1ms" max:"20s"`
}

// MaxTimeout bounds the timeout of any target.
const MaxTimeout = 20 * time.Second

// Takes reports whether the target is told of an event of a process, in that status.
func (t Target) Takes(process string, event Event, status Status) bool {
	word := string(event)
	if status == Recovered {
		word = Recovery
	}
	return t.Concerns(process, event) && (len(t.Events) == 0 || slices.Contains(t.Events, word))
}

// Concerns reports whether the target is told of an event of a process at all.
func (t Target) Concerns(process string, event Event) bool {
	return (len(t.Processes) == 0 || slices.Contains(t.Processes, process)) &&
		(len(t.Events) == 0 || slices.Contains(t.Events, string(event)))
}

// Validate returns every fault at once, and quotes no secret.
func (t Target) Validate() error {
	var faults knob.Faults
	kinds := 0
	for _, given := range []bool{t.Webhook != nil, t.Slack != nil, t.SMTP != nil, t.Exec != nil} {
		if given {
			kinds++
		}
	}
	faults.If(kinds > 1, "it has several kinds: write one target for each")
	known := []string{string(Halt), string(Lag), string(DeadLetters), Recovery}
	for _, event := range t.Events {
		faults.If(!slices.Contains(known, event), "events: %q is not one: write %s", event, knob.Either(known))
	}
	if len(t.Events) > 0 {
		faults.If(!slices.ContainsFunc(t.Events, func(event string) bool { return event != Recovery }), "events has no event that could be recovered from: add halt, lag or dead_letters")
	}
	faults = append(faults, t.kindFaults())
	return errors.Join(faults...)
}

func (t Target) kindFaults() error {
	switch {
	case t.Webhook != nil:
		return t.Webhook.validate()
	case t.Slack != nil:
		return checkURL(t.Slack.URL)
	case t.SMTP != nil:
		return t.SMTP.validate()
	case t.Exec != nil:
		return t.Exec.validate()
	default:
		return errNoKind
	}
}

var errNoKind = errors.New("it has no kind: write webhook, slack, smtp or exec")

func (w Webhook) validate() error {
	var faults knob.Faults
	faults = append(faults, checkURL(w.URL))
	if _, err := signature.Parse(w.Secret); err != nil {
		faults = append(faults, fmt.Errorf("secret %w", err))
	}
	for name, value := range w.Headers {
		name = http.CanonicalHeaderKey(name)
		faults.If(!validHeader(name, value), "headers: %q is not a header that can be sent", name)
		faults.If(ownHeader(name), "headers: %s is set by the program: remove it", name)
	}
	return errors.Join(faults...)
}

// ownHeader reports whether a header belongs to the request itself.
func ownHeader(name string) bool {
	return slices.Contains([]string{"Content-Type", "Content-Length", "Host", "Transfer-Encoding", "Connection"}, name) || strings.HasPrefix(name, "Webhook-")
}

// validHeader reports whether net/http would send a header.
func validHeader(name, value string) bool {
	token := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	}
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !token(r) }) &&
		!strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// checkURL finds faults of a URL, which may be a secret.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return errors.New("url is empty: is its environment variable unset?")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return errors.New("url must begin with https:// or http://, and a host")
	case u.Fragment != "":
		return errors.New("url must not have a fragment (#)")
	default:
		return nil
	}
}

func (s SMTP) validate() error {
	var faults knob.Faults
	faults.If(s.Host == "" || strings.ContainsAny(s.Host, " /\r\n"), "host must be the name of a mail server, such as smtp.example.com")
	faults.If((s.User == "") != (s.Password == ""), "user and password belong together: set both, or neither")
	faults.If(s.Security == "none" && s.Password != "", "security: none would send the password in the clear: write starttls or tls, or remove user and password")
	for _, address := range append([]string{s.From}, s.To...) {
		_, err := mail.ParseAddress(address)
		faults.If(err != nil, "%q is not an e-mail address", address)
	}
	return errors.Join(faults...)
}

func (e Exec) validate() error {
	var faults knob.Faults
	faults = append(faults, e.program().Validate())
	for name := range e.Env {
		faults.If(strings.HasPrefix(name, variablePrefix), "env: names that begin with %s belong to the message", variablePrefix)
	}
	return errors.Join(faults...)
}
