// Package plaintext finds the hosts to which a password or a record would go over a network without encryption.
package plaintext

import (
	"crypto/tls"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// IsLocal reports whether a host is this machine, so that no one can listen on the way.
func IsLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || host == "localhost" || strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || ip != nil && ip.IsLoopback()
}

// Postgres returns a host to which a connection may be made without TLS; "" if there is none.
func Postgres(c *pgx.ConnConfig) string {
	return hostWhere(c, func(t *tls.Config) bool { return t == nil })
}

// Unverified returns a host whose certificate is not checked; "" if there is none.
func Unverified(c *pgx.ConnConfig) string {
	return hostWhere(c, func(t *tls.Config) bool {
		return t != nil && t.InsecureSkipVerify && t.VerifyPeerCertificate == nil && t.VerifyConnection == nil
	})
}

func hostWhere(c *pgx.ConnConfig, bad func(*tls.Config) bool) string {
	hosts := append([]*pgconn.FallbackConfig{{Host: c.Host, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	for _, h := range hosts {
		if !IsLocal(h.Host) && bad(h.TLSConfig) {
			return h.Host
		}
	}
	return ""
}

// URL returns the host of one of several URLs, with commas between them, to which credentials go without TLS; "" if
// there is none. The credentials are in the URL; if secret is true, there are others besides. A URL with one of the
// schemes has no TLS.
func URL(text string, secret bool, schemes ...string) string {
	for one := range strings.SplitSeq(text, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err == nil && slices.Contains(schemes, u.Scheme) && (secret || u.User != nil) && !IsLocal(u.Hostname()) {
			return u.Hostname()
		}
	}
	return ""
}
