package notify_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/notify"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
)

var since = time.Date(2026, 11, 28, 10, 32, 5, 0, time.UTC)

// halted is a message about a halt.
var halted = notify.Message{ID: "alarm_1", At: since.Add(time.Second), Worker: "pod-1", Console: "https://console.example", Alarms: []notify.Alarm{{
	ID: "1", Process: "booking_sms", Event: notify.Halt, Status: notify.Raised, Since: since, State: "halted", Class: "permanent", Attempts: 1,
	Next: "ordered-dispatcher status booking_sms", Runbook: "https://runbook.example#halt",
}}}

const haltedText = `booking_sms is halted (since 2026-11-28 10:32:05 UTC)
Cause: the receiver rejected the record for good (class permanent, after 1 attempt).
Nothing after that record is delivered until someone decides.
Next: ordered-dispatcher status booking_sms
Runbook: https://runbook.example#halt

Console: https://console.example
`

func sender(t testing.TB, target notify.Target) *notify.Sender {
	t.Helper()
	target.Name = "on_call"
	s, err := notify.New(target)
	require.NoError(t, err)
	return s
}

// request is what a receiver got.
type request struct {
	header http.Header
	body   []byte
	path   string
}

// receiver answers with a status, and keeps the requests.
func receiver(t testing.TB, status int, answer string) (string, <-chan request) {
	t.Helper()
	got := make(chan request, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- request{r.Header, body, r.URL.Path}
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}

func TestWebhook_IsSignedAsStandardWebhooksDescribe(t *testing.T) {
	t.Parallel()
	url, got := receiver(t, http.StatusNoContent, "")
	const old, new = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
	s := sender(t, notify.Target{Webhook: &notify.Webhook{URL: url + "/alarms", Secret: old + " " + new, Headers: map[string]string{"authorization": "Bearer hunter2-token"}}})
	require.NoError(t, s.Send(t.Context(), halted))
	r := <-got
	for _, secret := range []string{old, new} {
		verifier, err := standardwebhooks.NewWebhook(secret)
		require.NoError(t, err)
		require.NoError(t, verifier.Verify(r.body, r.header))
		require.Error(t, verifier.Verify(append(r.body, ' '), r.header))
	}
	require.Equal(t, "alarm_1", r.header.Get("webhook-id"))
	require.Equal(t, "application/json", r.header.Get("Content-Type"))
	require.Equal(t, "Bearer hunter2-token", r.header.Get("Authorization"))
	require.Equal(t, "/alarms", r.path)
	require.JSONEq(t, `{"type": "ordered_dispatcher.alarm", "timestamp": "2026-11-28T10:32:06Z", "data": {
		"id": "alarm_1", "at": "2026-11-28T10:32:06Z", "worker": "pod-1", "console": "https://console.example", "alarms": [{
			"id": "1", "process": "booking_sms", "event": "halt", "status": "raised", "since": "2026-11-28T10:32:05Z", "state": "halted",
			"class": "permanent", "attempts": 1, "next": "ordered-dispatcher status booking_sms", "runbook": "https://runbook.example#halt"
		}]
	}}`, string(r.body))
}

func TestWebhook_ErrorsShowNoSecretAndNoWordOfTheReceiver(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusFound, http.StatusNotFound, http.StatusServiceUnavailable} {
		url, got := receiver(t, status, "CANARY")
		err := sender(t, notify.Target{Webhook: &notify.Webhook{URL: url + "/hunter2-token"}}).Send(t.Context(), halted)
		require.ErrorContains(t, err, fmt.Sprintf("tell on_call (webhook to %s): it answered %d", url, status))
		var later *notify.LaterError
		require.True(t, errors.As(err, &later))
		require.Equal(t, 7*time.Second, later.After)
		require.NotContains(t, err.Error(), "CANARY")
		require.NotContains(t, err.Error(), "hunter2")
		<-got
		require.Empty(t, got, "a redirect is not followed, and nothing is sent again")
	}
	err := sender(t, notify.Target{Webhook: &notify.Webhook{URL: "http://127.0.0.1:1/hunter2-token"}}).Send(t.Context(), halted)
	require.ErrorContains(t, err, "connection refused")
	require.NotContains(t, err.Error(), "hunter2")
}

func TestWebhook_EndsInTime(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	s := sender(t, notify.Target{Webhook: &notify.Webhook{URL: "http://" + listener.Addr().String(), Timeout: 100 * time.Millisecond}})
	require.ErrorIs(t, s.Send(t.Context(), halted), context.DeadlineExceeded)
}

func TestSlack_HasTheFormOfItsWebhooks(t *testing.T) {
	t.Parallel()
	url, got := receiver(t, http.StatusOK, "ok")
	m := halted
	m.Alarms = append([]notify.Alarm{}, m.Alarms...)
	m.Alarms[0].Process = "<!channel> & co, @everyone at https://console.example.evil.example"
	m.Alarms[0].Runbook, m.Console = "https://handbook.example/halt?a=1&b=2", "https://console.example"
	s := sender(t, notify.Target{Slack: &notify.Slack{URL: url + "/services/T0/B0/hunter2"}})
	require.NoError(t, s.Send(t.Context(), m))
	r := <-got
	require.Equal(t, "/services/T0/B0/hunter2", r.path)
	require.Equal(t, "application/json", r.header.Get("Content-Type"))
	var payload map[string]any
	require.NoError(t, json.Unmarshal(r.body, &payload))
	require.Len(t, payload, 1, "services that are compatible know the text alone")
	text := payload["text"].(string)
	require.True(t, strings.HasPrefix(text, "*ordered-dispatcher: &lt;!channel&gt; &amp; co, @\u200beveryone at https:\u200b//console.example.evil.example is halted*\n"), text)
	require.NotContains(t, text, "@everyone")
	require.Contains(t, text, "Runbook: https://handbook.example/halt?a=1&amp;b=2\n")
	require.Contains(t, text, "Console: https://console.example\n")
	require.Equal(t, 2, strings.Count(text, "://"), text)
	require.NotContains(t, text, "<")
	require.NotContains(t, s.String(), "hunter2")
}

// mailbox is a mail server with a login and STARTTLS, or TLS from the start.
type mailbox struct {
	login string // "" if none is needed
	got   chan letter
}

type letter struct {
	from, login string
	to          []string
	message     *mail.Message
	body        string
}

func (m *mailbox) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{mailbox: m}, nil }

type session struct {
	*mailbox
	letter letter
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user+":"+password != s.login {
			return errors.New("wrong " + password)
		}
		s.letter.login = user
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.login != "" && s.letter.login == "" {
		return smtp.ErrAuthRequired
	}
	s.letter.from = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if strings.HasPrefix(to, "nobody@") {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	}
	s.letter.to = append(s.letter.to, to)
	return nil
}

func (s *session) Data(r io.Reader) (err error) {
	if s.letter.message, err = mail.ReadMessage(r); err != nil {
		return err
	}
	body, err := io.ReadAll(s.letter.message.Body)
	s.letter.body = string(body)
	s.got <- s.letter
	return err
}

func (s *session) Reset()        {}
func (s *session) Logout() error { return nil }

// mailServer serves a mailbox, and returns the settings that reach it.
func mailServer(t testing.TB, security string) (*mailbox, notify.SMTP) {
	t.Helper()
	m := &mailbox{login: "alarms:hunter2-password", got: make(chan letter, 1)}
	certificates := brokertest.NewCertificates(t)
	certificate, err := tls.X509KeyPair(certificates.ServerCert, certificates.ServerKey)
	require.NoError(t, err)
	authorities := x509.NewCertPool()
	require.True(t, authorities.AppendCertsFromPEM(certificates.CA))
	server := smtp.NewServer(m)
	config := &tls.Config{Certificates: []tls.Certificate{certificate}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	switch security {
	case "tls":
		listener = tls.NewListener(listener, config)
	case "starttls":
		server.TLSConfig = config
	default:
		m.login = ""
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	s := notify.SMTP{
		Host: "localhost", Port: port, Security: security, From: "Alarms <alarms@example.com>", To: []string{"a@example.com", "B <b@example.com>"},
		TLS: &tls.Config{RootCAs: authorities}, Timeout: 20 * time.Second,
	}
	if m.login != "" {
		s.User, s.Password = "alarms", "hunter2-password"
	}
	return m, s
}

func TestSMTP_ReachesRealServers(t *testing.T) {
	t.Parallel()
	for _, security := range []string{"starttls", "tls", "none"} {
		t.Run(security, func(t *testing.T) {
			t.Parallel()
			m, config := mailServer(t, security)
			s := sender(t, notify.Target{SMTP: &config})
			require.NoError(t, s.Reach(t.Context()))
			require.Empty(t, m.got, "to reach it sends nothing")
			require.NoError(t, s.Send(t.Context(), halted))
			got := <-m.got
			require.Equal(t, "alarms@example.com", got.from)
			require.Equal(t, []string{"a@example.com", "b@example.com"}, got.to)
			require.Equal(t, config.User, got.login)
			require.Equal(t, "ordered-dispatcher: booking_sms is halted", got.message.Header.Get("Subject"))
			require.Equal(t, "<alarm_1@example.com>", got.message.Header.Get("Message-ID"))
			require.Equal(t, "auto-generated", got.message.Header.Get("Auto-Submitted"))
			require.Equal(t, haltedText, strings.ReplaceAll(strings.ReplaceAll(got.body, "=\r\n", ""), "\r\n", "\n"))
		})
	}
}

func TestSMTP_SendsNothingWithoutTheEncryptionThatIsAskedFor(t *testing.T) {
	t.Parallel()
	m, config := mailServer(t, "none")
	config.Security = "starttls"
	err := sender(t, notify.Target{SMTP: &config}).Send(t.Context(), halted)
	require.ErrorContains(t, err, "tell on_call (e-mail by localhost): ")
	require.ErrorContains(t, err, "STARTTLS")
	require.Empty(t, m.got)

	_, config = mailServer(t, "starttls")
	config.TLS = nil
	err = sender(t, notify.Target{SMTP: &config}).Reach(t.Context())
	require.ErrorContains(t, err, "certificate")
}

func TestSMTP_ErrorsShowNoPassword(t *testing.T) {
	t.Parallel()
	_, config := mailServer(t, "starttls")
	config.Password = "hunter3-password"
	err := sender(t, notify.Target{SMTP: &config}).Send(t.Context(), halted)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter3", "the server repeats it")
	require.ErrorContains(t, err, "[secret]")

	m, config := mailServer(t, "none")
	config.To = []string{"nobody@example.com"}
	require.ErrorContains(t, sender(t, notify.Target{SMTP: &config}).Send(t.Context(), halted), "no such user")
	require.Empty(t, m.got)
}

func TestSMTP_EndsInTime(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	began := time.Now()
	s := sender(t, notify.Target{SMTP: &notify.SMTP{
		Host: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port, Security: "none", From: "a@example.com", To: []string{"b@example.com"}, Timeout: 200 * time.Millisecond,
	}})
	require.Error(t, s.Send(t.Context(), halted))
	require.Less(t, time.Since(began), 10*time.Second)
}

func TestExec_GetsTheMessageOnStandardInputAndInVariables(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	s := sender(t, notify.Target{Exec: &notify.Exec{
		Command: []string{"sh", "-c", `{ cat; echo "$ALARM_ID|$ALARM_SUBJECT|$TOKEN|${DATABASE_URL-unset}"; printf %s "$ALARM_TEXT"; } >"$0"`, out}, Env: map[string]string{"TOKEN": "hunter2"},
	}})
	require.NoError(t, s.Reach(t.Context()))
	require.NoFileExists(t, out)
	require.NoError(t, s.Send(t.Context(), halted))
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	lines := strings.SplitN(string(text), "\n", 3)
	want, err := halted.JSON()
	require.NoError(t, err)
	require.Equal(t, string(want), lines[0])
	require.Equal(t, "alarm_1|ordered-dispatcher: booking_sms is halted|hunter2|unset", lines[1])
	require.Equal(t, haltedText, lines[2])
}

func TestExec_FailuresAreNamedWithoutSecrets(t *testing.T) {
	t.Parallel()
	s := sender(t, notify.Target{Exec: &notify.Exec{Command: []string{"sh", "-c", `echo "no route for $TOKEN" >&2; exit 3`}, Env: map[string]string{"TOKEN": "hunter2"}}})
	require.EqualError(t, s.Send(t.Context(), halted), `tell on_call (program "sh"): exit status 3; its last words: no route for [secret]`)
	for name, script := range map[string]string{
		"over the end of a line":    `printf 'no route for %.8s\n%s\n' "$TOKEN" "${TOKEN#????????}"; exit 3`,
		"before much of other text": `printf 'no route for %s%0990d' "$TOKEN" 0; exit 3`,
	} {
		s := sender(t, notify.Target{Exec: &notify.Exec{Command: []string{"sh", "-c", script}, Env: map[string]string{"TOKEN": "hunter2-of-the-pager"}}})
		err := s.Send(t.Context(), halted)
		require.ErrorContains(t, err, "exit status 3; its last words: no route for [secret]", name)
		require.NotContains(t, err.Error(), "pager", name)
	}
	missing := sender(t, notify.Target{Exec: &notify.Exec{Command: []string{"/nowhere/at-all"}}})
	require.ErrorContains(t, missing.Send(t.Context(), halted), "no such file")
	require.ErrorContains(t, missing.Reach(t.Context()), "no such file")
}

// A process that left the child's group holds its output open, and lives on.
func TestExec_AnHeirOfTheChildsOutputIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	kept := filepath.Join(t.TempDir(), "kept")
	require.NoError(t, os.WriteFile(kept, nil, 0o600))
	t.Cleanup(func() { _ = os.Remove(kept) })
	s := sender(t, notify.Target{Exec: &notify.Exec{Timeout: 20 * time.Second, Command: []string{
		"sh", "-c", `setsid sh -c 'echo >"$0.left"; while test -e "$0"; do echo busy; sleep 0.01; done' "$0" & while ! test -e "$0.left"; do :; done; exit 3`, kept,
	}}})
	began := time.Now()
	require.ErrorContains(t, s.Send(t.Context(), halted), "exit status 3")
	require.Less(t, time.Since(began), 10*time.Second)
}

// The child and what it has started are gone when Send returns.
func TestExec_EndsInTimeWithItsChildren(t *testing.T) {
	t.Parallel()
	alive, kept := filepath.Join(t.TempDir(), "alive"), filepath.Join(t.TempDir(), "kept")
	require.NoError(t, os.WriteFile(kept, nil, 0o600))
	script := `( while test -e "$1"; do echo x >"$0"; done ) & while test ! -e "$0"; do :; done; wait`
	s := sender(t, notify.Target{Exec: &notify.Exec{Command: []string{"sh", "-c", script, alive, kept}, Timeout: 2 * time.Second}})
	t.Cleanup(func() { _ = os.Remove(kept) })
	require.ErrorContains(t, s.Send(t.Context(), halted), "it did not end in time, and was killed")
	require.FileExists(t, alive)
	require.NoError(t, os.Remove(alive))
	require.Never(t, func() bool { _, err := os.Stat(alive); return err == nil }, 300*time.Millisecond, 10*time.Millisecond)
}
