package webhook

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode"
)

// refusedHeaders lists headers that this package or the transport sets, or that belong to one hop.
var refusedHeaders = []string{
	"Content-Type", "Content-Length", "Content-Encoding", "Idempotency-Key", "X-Idempotency-Key", "Host",
	"Accept-Encoding", "Expect",
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Traceparent", "Tracestate",
}

var refusedPrefixes = []string{"Ordered-", "Webhook-", "Ce-"}

func headerFaults(headers map[string]string) []error {
	var faults []error
	seen := make(map[string]bool, len(headers))
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !isHeaderName(name):
			faults = append(faults, fmt.Errorf("header %q is not a valid header name", name))
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

// isHeaderName reports whether a name is a token, RFC 9110 section 5.6.2.
func isHeaderName(name string) bool {
	isTokenChar := func(r rune) bool {
		return r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	}
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !isTokenChar(r) })
}

// isControl reports whether a header value may not hold a character, RFC 9110 section 5.5.
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
