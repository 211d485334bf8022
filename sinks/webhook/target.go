package webhook

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/route"
)

// target is the address of requests: one URL for all records, or one whose path and query a template makes from each
// record.
type target struct {
	base     *url.URL        // the URL, or scheme, user and host of it
	template *route.Template // of path and query; nil: base is the whole URL
	secret   *url.URL        // the part of the URL that is the same for all records
}

// parseTarget never returns an error that quotes its input.
func parseTarget(raw string) (target, error) {
	origin, rest := cutOrigin(raw)
	if strings.Contains(origin, "{{") {
		return target{}, errors.New("has a template before its path: only path and query may be made of a record")
	}
	if !strings.Contains(rest, "{{") {
		u, err := parseURL(raw)
		return target{base: u, secret: u}, err
	}
	base, err := parseURL(origin)
	if err != nil {
		return target{}, err
	}
	template, err := route.Escaped(rest, escapeValue)
	if err != nil {
		return target{}, fmt.Errorf("is not a template: %w", err)
	}
	if err := checkText(template.Skeleton("x")); err != nil {
		return target{}, err
	}
	secret, err := parseURL(origin + template.Skeleton(""))
	return target{base, template, secret}, err
}

// cutOrigin splits a URL after its host and port.
func cutOrigin(raw string) (origin, rest string) {
	_, authority, ok := strings.Cut(raw, "://")
	if !ok {
		return raw, ""
	}
	end := strings.IndexAny(authority, "/?#")
	if end < 0 {
		return raw, ""
	}
	end += len(raw) - len(authority)
	return raw[:end], raw[end:]
}

// checkText checks the part of a template that is used as written: it must be valid in a path and a query. Then only
// the values of a record need escaping.
func checkText(text string) error {
	path, query, _ := strings.Cut(text, "?")
	decoded, err := url.PathUnescape(path)
	switch {
	case strings.Contains(text, "#"):
		return errors.New("has a fragment (#), which is not sent: remove it, or write %23")
	case err != nil || path != "" && (&url.URL{Path: decoded, RawPath: path}).EscapedPath() != path:
		return errors.New("has a character in its path that must be percent-encoded outside of {{ }}")
	case strings.ContainsFunc(query, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return errors.New("has a character in its query that must be percent-encoded outside of {{ }}")
	case isAbove(decoded) || strings.HasPrefix(path, "//"):
		return errors.New("has a path with . or .. or // at its beginning")
	default:
		return nil
	}
}

// of returns the URL for a record. Its error is about the record, and permanent.
func (t target) of(d processor.Delivery) (*url.URL, error) {
	if t.template == nil {
		return t.base, nil
	}
	text, err := t.template.Of(d)
	if err != nil {
		return nil, processor.Permanent(fmt.Errorf("make the url: %w", err))
	}
	path, query, _ := strings.Cut(text, "?") // a value has none
	if strings.Contains(path, markEmpty) {
		return nil, processor.Permanent(errors.New(
			"make the url: a value in its path is empty, and would lead elsewhere; guard it with {{if}}, or skip the record"))
	}
	path = strings.ReplaceAll(path, markDot, "%252E")
	decoded, err := url.PathUnescape(path)
	if err != nil || isAbove(decoded) || strings.HasPrefix(path, "//") {
		return nil, processor.Permanent(errors.New("make the url: its path has . or .. or // at its beginning, and would lead elsewhere"))
	}
	u := *t.base
	u.Path, u.RawPath = decoded, path
	u.RawQuery = strings.NewReplacer(markDot, ".", markEmpty, "").Replace(query)
	return &u, nil
}

// isAbove reports whether a path that was decoded once has a segment that leads out of it. It also covers receivers
// that take a backslash for a slash.
func isAbove(decoded string) bool {
	for segment := range strings.FieldsFuncSeq(decoded, isSeparator) {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

func isSeparator(r rune) bool { return r == '/' || r == '\\' }

// The meaning of a value depends on whether it ends up in the path or in the query. That is known only when the
// template has run. Until then these marks stand for an empty value, and for a full stop at the beginning of a
// segment. No escaped value and no text of a template contains them.
const (
	markEmpty = "\x00"
	markDot   = "\x01"
)

// escapeValue leaves nothing in a value that has a meaning in a path or a query. In a path, full stops at the
// beginning of a segment are encoded twice: many receivers and proxies decode a path before they look for . and .. in
// it.
func escapeValue(value string) (string, error) {
	if value == "" {
		return markEmpty, nil
	}
	const hex = "0123456789ABCDEF"
	escaped := make([]byte, 0, len(value)+16)
	begins := true // a segment
	for i := range len(value) {
		c := value[i]
		switch {
		case c == '.' && begins:
			escaped = append(escaped, markDot...)
			continue
		case isUnreserved(c):
			escaped = append(escaped, c)
		default:
			escaped = append(escaped, '%', hex[c>>4], hex[c&0xF])
		}
		begins = isSeparator(rune(c))
	}
	return string(escaped), nil
}

// isUnreserved reports whether a character is unreserved by RFC 3986 section 2.3.
func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// parseURL never returns the error of url.Parse, which quotes its input.
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
			return nil, errors.New("has no port between 1 and 65535")
		}
	}
	if strings.ContainsAny(u.RawQuery, " \t") {
		return nil, errors.New("has a space in its query: write %20")
	}
	u.Host = strings.TrimSuffix(u.Host, ":") // "host:" is the scheme's port, but no Host header
	return u, nil
}

// origin is the part of a URL that is not secret. A path may be secret: many receivers hand out URLs that
// authenticate by a token in the path.
func origin(raw string) string {
	t, err := parseTarget(raw)
	if err != nil {
		return "an invalid url"
	}
	return t.base.Scheme + "://" + t.base.Host
}
