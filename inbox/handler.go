package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/signature"
)

// Beginner begins a transaction: a *pgxpool.Pool, or a *pgx.Conn for one request at a time.
type Beginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// readCommitted is what Handle needs: a call that waited has to see what the one before committed. The role may have
// another default.
var readCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted}

// Effect applies a record in the transaction that also notes it. An error of it is answered with 503, so that the
// record comes again; an error that wraps ErrPoison with 422, so that it does not.
type Effect func(ctx context.Context, tx pgx.Tx, r Request) error

// ErrPoison means that a record can never be applied. Its text goes to the sender, and to whom the sender shows it.
var ErrPoison = errors.New("the record can never be applied")

// Handler applies what a webhook sink posts, and answers as docs/wire.md says.
type Handler struct {
	db     Beginner
	inbox  *Inbox
	config HandlerConfig
	keys   signature.Keys
	effect Effect
}

// Handler returns an http.Handler that applies what a sink posts, each record in a transaction of db. Its server should
// have a ReadTimeout, since a body may come slowly.
//
// It answers 405 to everything but POST. So the sink needs no probe: the inbox recognizes a record that comes again.
func (i *Inbox) Handler(db Beginner, config HandlerConfig, effect Effect) (*Handler, error) {
	config = config.withDefaults()
	keys, err := config.validate(db, effect)
	if err != nil {
		return nil, err
	}
	return &Handler{db: db, inbox: i, config: config, keys: keys, effect: effect}, nil
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r, err := h.read(w, req)
	if err != nil {
		h.logRequest(req, err)
	} else if r.Test {
		err = r.validate()
	} else if err = h.apply(req.Context(), r); err != nil {
		h.log(req.Context(), r.Message, err)
	}
	answer(w, err)
}

// logRequest reports a request that was refused before its record was looked at: otherwise a wrong secret would leave no
// trace here. Another method than POST is no record, but a health check or a probe.
func (h *Handler) logRequest(req *http.Request, err error) {
	if errors.Is(err, errMethod) {
		return
	}
	status, _ := statusOf(err)
	h.config.Logger.LogAttrs(req.Context(), slog.LevelWarn, "the request was refused", slog.String("remote", req.RemoteAddr),
		slog.Int("status", status), slog.Any("err", err))
}

// apply commits the effect of a record together with the note of it. A record that is not applied leaves a larger epoch
// noted, so that a superseded worker is refused from then on.
func (h *Handler) apply(ctx context.Context, r Request) error {
	var refused error
	err := pgx.BeginTxFunc(ctx, h.db, readCommitted, func(tx pgx.Tx) error {
		before, err := h.inbox.enter(ctx, tx, r.Message)
		if err != nil {
			return err
		}
		refused = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { // a savepoint
			_, err := h.inbox.settle(ctx, tx, before, r.Message, func(ctx context.Context, tx pgx.Tx) error { return h.effect(ctx, tx, r) })
			return err
		})
		return nil
	})
	switch {
	case err == nil:
		return refused
	case refused != nil: // the log needs it; a COMMIT that failed has noted nothing, so what was refused is no answer
		return fmt.Errorf("%w, after: %v", err, refused)
	default:
		return err
	}
}

// log reports a record that was not applied: the sender gets no details of what failed here.
func (h *Handler) log(ctx context.Context, m Message, err error) {
	level, text := slog.LevelError, "the record was not applied"
	if status, _ := statusOf(err); status == http.StatusConflict || status == http.StatusPreconditionRequired {
		level, text = slog.LevelWarn, "the record was refused"
	}
	h.config.Logger.LogAttrs(ctx, level, text, slog.String("process", m.Process), slog.Int64("sequence", m.Sequence),
		slog.Int64("epoch", m.Epoch), slog.String("dedup_key", m.DedupKey), slog.Any("err", err))
}

// answer answers a request, as in docs/wire.md.
func answer(w http.ResponseWriter, err error) {
	var other *VersionError
	var origin *OriginError
	var stale *StaleError
	var late *LateError
	var gap *GapError
	switch {
	case err == nil:
		return
	case errors.As(err, &other):
		w.Header().Set("Ordered-Version", knownVersion)
	case errors.As(err, &origin):
		w.Header().Set("Ordered-Origin", escape(origin.Noted))
	case errors.As(err, &stale):
		w.Header().Set("Ordered-Epoch", strconv.FormatInt(stale.Seen, 10))
	case errors.As(err, &late):
		w.Header().Set("Ordered-Sequence", strconv.FormatInt(late.Last, 10))
	case errors.As(err, &gap):
		w.Header().Set("Ordered-Sequence", strconv.FormatInt(gap.Last, 10))
	case errors.Is(err, errMethod):
		w.Header().Set("Allow", http.MethodPost)
	}
	status, shown := statusOf(err)
	http.Error(w, shown, status)
}

// statusOf returns the status for an error, and the text that the sender may see.
func statusOf(err error) (status int, shown string) {
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(errMethod):
		status = http.StatusMethodNotAllowed
	case is(ErrSignature):
		status = http.StatusUnauthorized
	case is(ErrMessage):
		status = http.StatusBadRequest
	case is(errTooLarge):
		status = http.StatusRequestEntityTooLarge
	case is(errIncomplete):
		status = http.StatusRequestTimeout
	case asType[*VersionError](err), asType[*OriginError](err), asType[*StaleError](err), asType[*LateError](err):
		status = http.StatusConflict
	case asType[*GapError](err):
		status = http.StatusPreconditionRequired
	case is(ErrPoison):
		status = http.StatusUnprocessableEntity
	default:
		return http.StatusServiceUnavailable, "the record was not applied: try again"
	}
	return status, err.Error()
}

func asType[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}
