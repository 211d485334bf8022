package webhook

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

const (
	// connectTimeout bounds the look-up and dial, and then again the TLS handshake, so that an error can name the step
	// that hangs.
	connectTimeout = 5 * time.Second
	// idleTimeout is below the idle time-outs of most receivers and of the address tables on the way (60 s and more).
	// So a delivery seldom meets a dead connection.
	idleTimeout   = 30 * time.Second
	connectionAge = 5 * time.Minute
	// maxAnswerHeader bounds the answer's header.
	maxAnswerHeader = 64 << 10
)

// newTransport makes the transport that opens connections. exchange's own timer bounds everything after the
// handshake.
func newTransport(c Config) *http.Transport {
	dialer := &net.Dialer{Timeout: min(connectTimeout, c.Timeout), Control: refuse(c.BlockPrivate)}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        clientTLS(c.TLS),
		TLSHandshakeTimeout:    min(connectTimeout, c.Timeout),
		MaxResponseHeaderBytes: maxAnswerHeader,
		DisableCompression:     true,
		Protocols:              protocols,
	}
}

func clientTLS(given *tls.Config) *tls.Config {
	if given == nil {
		given = new(tls.Config)
	}
	own := given.Clone()
	if own.MinVersion == 0 {
		own.MinVersion = tls.VersionTLS12
	}
	return own
}
