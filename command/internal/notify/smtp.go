package notify

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/mail"

	gomail "github.com/wneessen/go-mail"
)

// mailer sends e-mails.
type mailer struct{ SMTP }

func newMailer(c SMTP) mailer { return mailer{c} }

// String names the server.
func (s mailer) String() string { return fmt.Sprintf("e-mail by %s", s.Host) }

// client makes a client for one connection.
func (s mailer) client() (*gomail.Client, error) {
	config := &tls.Config{}
	if s.TLS != nil {
		config = s.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = s.Host
	}
	config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	// The library takes that time twice: to connect and log in, and to send.
	options := []gomail.Option{gomail.WithTimeout(s.Timeout / 2), gomail.WithTLSConfig(config)}
	switch s.Security {
	case "tls":
		options = append(options, gomail.WithSSL(), gomail.WithPort(gomail.DefaultPortSSL))
	case "none":
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS), gomail.WithPort(gomail.DefaultPortTLS))
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory), gomail.WithPort(gomail.DefaultPortTLS))
	}
	if s.Port != 0 {
		options = append(options, gomail.WithPort(s.Port))
	}
	if s.User != "" {
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(s.User), gomail.WithPassword(s.Password))
	}
	return gomail.NewClient(s.Host, options...)
}

func (s mailer) send(ctx context.Context, m Message) error {
	e, err := s.email(m)
	if err != nil {
		return err
	}
	client, err := s.client()
	if err != nil {
		return err
	}
	return client.DialAndSendWithContext(ctx, e)
}

// email returns the message as an e-mail.
func (s mailer) email(m Message) (*gomail.Msg, error) {
	e := gomail.NewMsg()
	if err := e.From(s.From); err != nil {
		return nil, err
	}
	if err := e.To(s.To...); err != nil {
		return nil, err
	}
	e.Subject(m.Subject())
	e.SetDateWithValue(m.At)
	e.SetMessageIDWithValue(m.ID + "@" + s.domain())
	e.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no out-of-office reply
	e.SetBodyString(gomail.TypeTextPlain, m.Text())
	return e, nil
}

// domain is that of the sender's address.
func (s mailer) domain() string {
	address, err := mail.ParseAddress(s.From)
	if err != nil {
		return s.Host
	}
	for i := len(address.Address) - 1; i >= 0; i-- {
		if address.Address[i] == '@' {
			return address.Address[i+1:]
		}
	}
	return s.Host
}

// reach connects, encrypts and logs in, and sends nothing.
func (s mailer) reach(ctx context.Context) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	if err := client.DialWithContext(ctx); err != nil {
		return err
	}
	return client.Close()
}
