package inbox

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/signature"
)

// ErrSignature means that the signature is missing, wrong or too old. The answer is 401.
var ErrSignature = errors.New("inbox: the signature is missing, wrong, or too far from the clock")

// Errors of a request that says nothing about its record.
var (
	errMethod     = errors.New("inbox: send records with POST")
	errTooLarge   = errors.New("inbox: the body is too large")
	errIncomplete = errors.New("inbox: the body did not come in whole")
)

// Request is a record as a webhook sink sends it.
type Request struct {
	Message
	Type, Key string
	Body      []byte
}

// read checks a request, and returns the record in it. It reads the body last, so that a request without a signature,
// or an old one, costs nothing.
func (h *Handler) read(w http.ResponseWriter, req *http.Request) (Request, error) {
	if req.Method != http.MethodPost {
		return Request{}, fmt.Errorf("%w, and not with %s", errMethod, strconv.QuoteToASCII(req.Method))
	}
	if name := signature.Doubled(req.Header); name != "" {
		return Request{}, fmt.Errorf("%w: %s is there twice", ErrMessage, strconv.QuoteToASCII(name))
	}
	signed := !h.config.Unsigned
	if signed && !h.isTimely(req.Header) {
		return Request{}, ErrSignature
	}
	body, err := h.body(w, req)
	if err != nil {
		return Request{}, err
	}
	if signed && !h.keys.VerifyOrdered(signature.Message{Header: req.Header, Body: body}) {
		return Request{}, ErrSignature
	}
	get := func(name string) string { return unescape(req.Header.Get(name)) }
	m, err := FromHeaders("", get)
	return Request{Message: m, Type: get("ordered-type"), Key: get("ordered-key"), Body: body}, err
}

// isTimely reports whether a request has a signature, and a time that is near enough to the clock.
func (h *Handler) isTimely(header http.Header) bool {
	text := header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(text, 10, 64)
	return err == nil && isDigits(text) && header.Get("ordered-signature") != "" && h.config.Now().Sub(time.Unix(seconds, 0)).Abs() <= h.config.Tolerance
}

// body reads a body. One that is cut off or comes too slowly is not the record's fault, so it may come again.
func (h *Handler) body(w http.ResponseWriter, req *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, h.config.MaxBytes))
	switch {
	case asType[*http.MaxBytesError](err):
		return nil, fmt.Errorf("%w: it may have %d bytes", errTooLarge, h.config.MaxBytes)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errIncomplete, err)
	}
	return body, nil
}

// unescape undoes what the sinks webhook and nats do to values of a record. It leaves alone what is no escape.
func unescape(value string) string {
	if plain, err := url.PathUnescape(value); err == nil {
		return plain
	}
	return value
}

// escape is the reverse of unescape, for a value in a header.
func escape(value string) string {
	var escaped strings.Builder
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c >= 0x7F || c == '"' || c == '%' {
			fmt.Fprintf(&escaped, "%%%02X", c)
		} else {
			escaped.WriteByte(c)
		}
	}
	return escaped.String()
}
