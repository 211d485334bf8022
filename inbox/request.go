package inbox

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/signature"
)

// Errors of a request, before anything is applied.
var (
	// ErrSignature means that the signature is missing, wrong or too old. Answer 401.
	ErrSignature = errors.New("inbox: the signature is missing, wrong, or too far from the clock")
	// ErrMessage means that a header is missing or wrong, or that the body is too large. Answer 400.
	ErrMessage = errors.New("inbox: the request is no record")
)

// read checks a request, and returns the record in it.
func (h *Handler) read(w http.ResponseWriter, req *http.Request) (Request, error) {
	if req.Method != http.MethodPost {
		return Request{}, fmt.Errorf("%w: its method is %s", ErrMessage, req.Method)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, h.config.MaxBytes))
	if err != nil {
		return Request{}, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	if len(h.keys) > 0 && !h.signed(req.Header, body) {
		return Request{}, ErrSignature
	}
	m, err := FromHeaders(func(name string) string { return unescape(req.Header.Get(name)) })
	return Request{Message: m, Type: unescape(req.Header.Get("ordered-type")), Key: unescape(req.Header.Get("ordered-key")), Body: body}, err
}

func (h *Handler) signed(header http.Header, body []byte) bool {
	m := signature.Message{
		ID: header.Get("webhook-id"), Timestamp: header.Get("webhook-timestamp"), Body: body,
		Process: header.Get("ordered-process"), Sequence: header.Get("ordered-sequence"), Epoch: header.Get("ordered-epoch"),
	}
	seconds, err := strconv.ParseInt(m.Timestamp, 10, 64)
	// The signature covers webhook-id, which is the dedup key.
	return err == nil && h.config.Now().Sub(time.Unix(seconds, 0)).Abs() <= h.config.Tolerance &&
		unescape(m.ID) == unescape(header.Get("ordered-dedup-key")) && h.keys.VerifyOrdered(header.Get("ordered-signature"), m)
}

// FromHeaders reads a message from headers, properties or attributes: get returns the text of one, "" if it is absent.
// Its error wraps ErrMessage.
func FromHeaders(get func(name string) string) (Message, error) {
	m := Message{Process: get("ordered-process"), DedupKey: get("ordered-dedup-key")}
	sequence, err := strconv.ParseInt(get("ordered-sequence"), 10, 64)
	if err != nil {
		return m, fmt.Errorf("%w: ordered-sequence: %w", ErrMessage, err)
	}
	if m.Epoch, err = strconv.ParseInt(get("ordered-epoch"), 10, 64); err != nil {
		return m, fmt.Errorf("%w: ordered-epoch: %w", ErrMessage, err)
	}
	m.Sequence = sequence
	return m, m.validate()
}

// unescape undoes what the webhook sink does to values of a record. It leaves alone what is no escape.
func unescape(value string) string {
	if plain, err := url.PathUnescape(value); err == nil {
		return plain
	}
	return value
}

// answer says what became of a request, as in docs/wire.md.
func answer(w http.ResponseWriter, err error) {
	var stale *StaleError
	var gap *GapError
	switch {
	case err == nil:
		return
	case errors.As(err, &stale):
		w.Header().Set("Ordered-Epoch", strconv.FormatInt(stale.Seen, 10))
		http.Error(w, err.Error(), http.StatusConflict)
	case errors.As(err, &gap):
		w.Header().Set("Ordered-Sequence", strconv.FormatInt(gap.Last, 10))
		http.Error(w, err.Error(), http.StatusPreconditionRequired)
	case errors.Is(err, ErrSignature):
		http.Error(w, err.Error(), http.StatusUnauthorized)
	case errors.Is(err, ErrMessage):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case errors.Is(err, ErrPoison):
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
	default:
		http.Error(w, "the record was not applied: try again", http.StatusServiceUnavailable)
	}
}
