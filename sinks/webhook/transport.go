package webhook

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

const (
	// connectTimeout bounds the look-up and dial, and again the TLS handshake,
	// so that an error can say which of them hangs.
	connectTimeout = 5 * time.Second
	// idleTimeout is below that of most receivers and of the address tables on
	// the way (60 s and more), so that a delivery seldom meets a dead connection.
	idleTimeout   = 30 * time.Second
	connectionAge = 5 * time.Minute
	// maxAnswerHeader bounds the answer's header.
	maxAnswerHeader = 64 << 10
)

// newTransport makes a transport with one connection: an attempt that was given
// up has left its connection before the next one is opened. What comes after
// the handshake is bounded by Deliver's own timer.
func newTransport(timeout time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: min(connectTimeout, timeout), Control: refuseLinkLocal}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    min(connectTimeout, timeout),
		IdleConnTimeout:        idleTimeout,
		MaxConnsPerHost:        1,
		MaxIdleConns:           1,
		MaxResponseHeaderBytes: maxAnswerHeader,
		DisableCompression:     true,
		Protocols:              protocols,
	}
}

// metadataIPv6 is where one cloud serves its credentials; the others, and its
// IPv4 address, are link-local.
var metadataIPv6 = netip.MustParseAddr("fd00:ec2::254")

// refuseLinkLocal sees each address after the name look-up, so no name that
// changes its address gets around it.
func refuseLinkLocal(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("parse address %q: %w", address, err)
	}
	ip := ap.Addr().WithZone("")
	if ip.IsLinkLocalUnicast() || ip == metadataIPv6 {
		return fmt.Errorf("refuse %v: link-local addresses hold cloud credentials; point the url's host elsewhere", ip)
	}
	return nil
}
