package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// noAnswer is a request that ended without an answer.
type noAnswer struct {
	sent  bool  // there was a connection: part of the request may have arrived
	cause error // why its context ended, or another reason of ours; nil if there is none
	err   error // of the transport
}

func (e *noAnswer) Error() string { return e.err.Error() }

// tooEarly is a 2xx to a part of a request: the receiver, or a proxy in front of it, has accepted a record that it
// has not read.
func tooEarly(status int) *noAnswer {
	err := fmt.Errorf("it answered %d%s before it had the whole request: let it read a request to its end first", status, reason(status))
	return &noAnswer{sent: true, cause: err, err: err}
}

// unanswered returns why no answer came, and whether the receiver may have the record nevertheless.
func (s *Sink) unanswered(d processor.Delivery, none *noAnswer) error {
	err := s.clean(d, none)
	if none.sent {
		return outcome.Unknown(fmt.Errorf("post to %s: the receiver may have the record: %w%s", s.origin, err, s.wanted(err)))
	}
	return processor.Unreached(fmt.Errorf("post to %s: nothing was sent: %w%s", s.origin, outcome.Known(err), fix(err)))
}

// clean returns why no answer came, without secrets and data.
func (s *Sink) clean(d processor.Delivery, none *noAnswer) error {
	var network *net.OpError
	switch err := none.err; {
	case none.cause != nil:
		return none.cause // whatever error the transport makes of it
	case errors.As(err, &network):
		return outcome.Reworded(err, s.secrets.clean(err.Error(), maxErrorText)) // none of it comes from the receiver
	case s.hides:
		return outcome.Reworded(err, "there is no answer that can be read")
	default:
		return outcome.Reworded(err, s.quote(d, err.Error(), maxErrorText))
	}
}

// aboutCertificate is the next step if the receiver ended the connection for a reason of TLS.
const aboutCertificate = "; if it is about the certificate, give the receiver one that it knows in tls"

// wanted returns the next step if a connection broke in the middle of a request. Since TLS 1.3, the receiver reports
// a refused certificate only after our side of the handshake, by an alert. The end of the connection may overtake it.
func (s *Sink) wanted(err error) string {
	var network *net.OpError
	if alert(err) != nil || s.to.base.Scheme == "https" && errors.As(err, &network) && network.Op == "write" {
		return aboutCertificate
	}
	return ""
}

// ofCertificates are the alerts that end a handshake over the client's certificate: RFC 8446, section 6.2, from
// bad_certificate to certificate_unknown, unknown_ca and certificate_required.
var ofCertificates = []tls.AlertError{42, 43, 44, 45, 46, 48, 116}

// alert returns the reason that the receiver gave, by TLS, for the end of a connection.
func alert(err error) *net.OpError {
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "remote error" {
		return network
	}
	return nil
}

// fix returns the next step for an error that prevents a connection.
func fix(err error) string {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		lookup    *net.DNSError
	)
	switch {
	case errors.As(err, &authority):
		return "; give the receiver's authority in tls, or add it to the system's roots, or name its file in SSL_CERT_FILE"
	case errors.As(err, &name):
		return "; let url name a host of the certificate, or set server_name in tls to one"
	case errors.As(err, &invalid):
		return "; the receiver's certificate must be replaced"
	case errors.As(err, &record):
		return "; set url to http://, or to the port that speaks TLS"
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return "; check the host in url"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "; start the receiver, or correct host and port in url"
	case alert(err) != nil:
		return aboutCertificate
	default:
		return ""
	}
}
