package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/signature"
)

// Beginner begins a transaction: a *pgxpool.Pool, or a *pgx.Conn for one request at a time.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Effect applies a record in the transaction that also notes it. An error of it is answered with 503, so that the
// record comes again; an error that wraps ErrPoison with 422, so that it does not.
type Effect func(ctx context.Context, tx pgx.Tx, r Request) error

// ErrPoison means that a record can never be applied.
var ErrPoison = errors.New("the record can never be applied")

// Request is a record as a webhook sink sends it.
type Request struct {
	Message
	Type, Key string
	Body      []byte
}

// HandlerConfig describes a Handler. Zero values mean defaults.
type HandlerConfig struct {
	// Secret is the secret of the sink, or several with spaces between. Each request must have an ordered-signature of
	// one of them. Default: none is checked, and anybody who reaches the handler can send records.
	Secret string
	// Tolerance is how far the time of a signature may be from the clock. Default 5 min.
	Tolerance time.Duration
	// MaxBytes bounds a body. Default 64 MiB, as max_record_bytes.
	MaxBytes int64
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

const (
	defaultTolerance = 5 * time.Minute
	defaultMaxBytes  = 64 << 20
)

// Handler applies what a webhook sink posts, and answers as docs/wire.md says.
type Handler struct {
	db     Beginner
	inbox  *Inbox
	config HandlerConfig
	keys   signature.Keys
	effect Effect
}

// Handler returns an http.Handler that applies what a sink posts, each record in a transaction of db.
func (i *Inbox) Handler(db Beginner, config HandlerConfig, effect Effect) (*Handler, error) {
	keys, err := signature.Parse(config.Secret)
	if err != nil {
		return nil, fmt.Errorf("inbox: the secret %w", err)
	}
	config.Tolerance = cmp.Or(config.Tolerance, defaultTolerance)
	config.MaxBytes = cmp.Or(config.MaxBytes, defaultMaxBytes)
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Handler{db: db, inbox: i, config: config, keys: keys, effect: effect}, nil
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r, err := h.read(w, req)
	if err == nil {
		err = h.apply(req.Context(), r)
	}
	answer(w, err)
}

// apply commits the effect of a record together with the note of it.
func (h *Handler) apply(ctx context.Context, r Request) error {
	return pgx.BeginFunc(ctx, h.db, func(tx pgx.Tx) error {
		_, err := h.inbox.Handle(ctx, tx, r.Message, func(ctx context.Context, tx pgx.Tx) error { return h.effect(ctx, tx, r) })
		return err
	})
}
