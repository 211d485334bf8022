package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Format says what the request looks like besides its payload.
type Format string

const (
	// Plain sends the payload with the headers of this package.
	Plain Format = ""
	// CloudEvents adds the attributes of CloudEvents 1.0 in binary mode. id is
	// the dedup key, source "/" and the table, type the record's type or, if it
	// has none, the table, and time the record's time of creation, if it has one.
	CloudEvents Format = "cloudevents"
)

// Config describes a webhook. Zero values mean defaults.
type Config struct {
	// URL to post to, http or https. A user and password in it are sent as basic
	// authentication. Required.
	URL string
	// Timeout bounds one attempt as a whole, from the name look-up to the end of
	// the answer. Default 10 s, at least 1 ms, at most 1 h.
	Timeout time.Duration
	// Secret signs every attempt by Standard Webhooks. It is "whsec_" and the
	// base64 of the key, or else the key itself; a key has 24 to 64 bytes. While
	// a receiver changes over, give both secrets, separated by a space: each
	// attempt then carries a signature by each. Default: no signature.
	Secret string
	// Format of the request. Default Plain.
	Format Format
	// Headers are sent along with every attempt, for instance Authorization.
	// Those that this package or the transport sets cannot be given.
	Headers map[string]string
}

const (
	defaultTimeout = 10 * time.Second
	minTimeout     = time.Millisecond
	maxTimeout     = time.Hour
)

// String names the receiver and hides everything else, since a configuration
// that is printed by accident holds secrets.
func (c Config) String() string { return "webhook to " + target(c.URL) }

// GoString is String, for the verb %#v.
func (c Config) GoString() string { return c.String() }

func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	return c
}

// validate returns every fault at once. No fault quotes a value that may be
// a secret.
func (c Config) validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	u, err := parseURL(c.URL)
	fault(err != nil, "url: %w", err)
	fault(c.Timeout < minTimeout || c.Timeout > maxTimeout, "timeout %v is not within %v and %v", c.Timeout, minTimeout, maxTimeout)
	fault(c.Format != Plain && c.Format != CloudEvents, "format %q is neither empty nor %q", c.Format, CloudEvents)
	_, err = parseSecret(c.Secret)
	fault(err != nil, "secret: %w", err)
	faults = append(faults, headerFaults(c.Headers)...)
	fault(u != nil && u.User != nil && hasHeader(c.Headers, "Authorization"),
		"url has a user and headers have Authorization: keep one of them")
	return errors.Join(faults...)
}

// parseURL never returns the error of url.Parse, which quotes what it was given.
func parseURL(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, errors.New("is missing: write it as https://host/path")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("cannot be parsed: write it as https://host/path, percent-encode what is special in a password")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("is neither http:// nor https://")
	}
	if u.Hostname() == "" {
		return nil, errors.New("has no host: write it as https://host/path")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, errors.New("has no port within 1 and 65535")
		}
	}
	u.Host = strings.TrimSuffix(u.Host, ":") // "host:" is the scheme's port, but no Host header
	return u, nil
}

// target is the part of a URL that is no secret. A path may be one: many
// receivers hand out URLs that authenticate by a token in it.
func target(raw string) string {
	u, err := parseURL(raw)
	if err != nil {
		return "an invalid url"
	}
	return u.Scheme + "://" + u.Host
}

// refusedHeaders are set by this package, by the transport, or belong to one hop.
var refusedHeaders = []string{
	"Content-Type", "Content-Length", "Content-Encoding", "Idempotency-Key", "X-Idempotency-Key", "Host",
	"Accept-Encoding", "Expect",
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

var refusedPrefixes = []string{"Ordered-", "Webhook-", "Ce-"}

func headerFaults(headers map[string]string) []error {
	var faults []error
	seen := make(map[string]bool, len(headers))
	for _, name := range sortedNames(headers) {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !isHeaderName(name):
			faults = append(faults, fmt.Errorf("header %q is no header name", name))
		case isRefused(canonical):
			faults = append(faults, fmt.Errorf("header %q is set by the dispatcher: remove it", name))
		case seen[canonical]:
			faults = append(faults, fmt.Errorf("header %q is given twice", canonical))
		case strings.ContainsFunc(headers[name], isControl):
			faults = append(faults, fmt.Errorf("header %q has a value with control characters: is there a line break at its end?", name))
		}
		seen[canonical] = true
	}
	return faults
}

// isHeaderName: a token, RFC 9110 section 5.6.2.
func isHeaderName(name string) bool {
	isTokenChar := func(r rune) bool {
		return r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	}
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !isTokenChar(r) })
}

// isControl: what no header value may hold, RFC 9110 section 5.5.
func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

func isRefused(canonical string) bool {
	hasPrefix := func(prefix string) bool { return strings.HasPrefix(canonical, prefix) }
	return slices.Contains(refusedHeaders, canonical) || slices.ContainsFunc(refusedPrefixes, hasPrefix)
}

func hasHeader(headers map[string]string, canonical string) bool {
	for name := range headers {
		if http.CanonicalHeaderKey(name) == canonical {
			return true
		}
	}
	return false
}

func sortedNames(headers map[string]string) []string {
	names := make([]string, 0, len(headers))
	for name := range headers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
