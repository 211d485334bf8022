package readmodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/packed"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Apply does to the tables what a record says. It uses tx alone, and neither commits nor rolls back. Its errors count as
// those of a processor.TxSink: one that is not marked is tried again.
type Apply func(ctx context.Context, tx pgx.Tx, d processor.Delivery) error

// Handler is what records of some types do. On, Ignore and Otherwise make one.
type Handler struct {
	types []string // none: all that have no other handler
	apply Apply
}

// On applies records of one type. Their payload is decoded as JSON into a T; a field that T does not have is passed over.
// A payload that is not a T can never be applied: it is a poison record. A payload that is a claim check or compressed
// halts the process: the record is not at fault, and processor.Config.Prepare makes it whole (package payload).
func On[T any](recordType string, apply func(ctx context.Context, tx pgx.Tx, value T, d processor.Delivery) error) Handler {
	return Handler{types: []string{recordType}, apply: func(ctx context.Context, tx pgx.Tx, d processor.Delivery) error {
		if err := packed.Fault(d.Headers); err != nil {
			return processor.Refused(fmt.Errorf("apply a record of type %s: %w", named(recordType), err))
		}
		var value T
		if err := json.Unmarshal(d.Payload, &value); err != nil {
			return processor.Permanent(fmt.Errorf("decode the payload of a record of type %s as %T: %w", named(recordType), value, errors.New(d.Redact(err.Error()))))
		}
		return apply(ctx, tx, value, d)
	}}
}

// Ignore passes over records of some types. The cursor advances past them.
func Ignore(recordTypes ...string) Handler {
	return Handler{types: recordTypes, apply: nothing}
}

// Otherwise applies records of the types that have no other handler, and records without a type. Their payload may be a
// claim check or compressed, as their headers have it.
func Otherwise(apply Apply) Handler { return Handler{apply: apply} }

// IgnoreOthers passes over records of the types that have no other handler, and records without a type.
func IgnoreOthers() Handler { return Otherwise(nothing) }

func nothing(context.Context, pgx.Tx, processor.Delivery) error { return nil }

// Model applies records by their types. It implements processor.TxSink, and is safe for concurrent use if its handlers
// are.
type Model struct {
	byType    map[string]Apply
	otherwise Apply
}

var _ processor.TxSink = (*Model)(nil)

// New makes a model. It refuses two handlers of one type, a second Otherwise, a handler of no type and an empty model.
func New(handlers ...Handler) (*Model, error) {
	m := &Model{byType: map[string]Apply{}}
	for _, h := range handlers {
		if err := m.add(h); err != nil {
			return nil, fmt.Errorf("make a read model: %w", err)
		}
	}
	if len(handlers) == 0 {
		return nil, errors.New("make a read model: it has no handler")
	}
	return m, nil
}

func (m *Model) add(h Handler) error {
	switch {
	case h.apply == nil:
		return errors.New("a handler has no function")
	case h.types == nil && m.otherwise != nil:
		return errors.New("two handlers are for the types that have no other")
	case h.types == nil:
		m.otherwise = h.apply
		return nil
	}
	for _, t := range h.types {
		if t == "" {
			return errors.New("a handler is for the type \"\": Otherwise takes records without a type")
		}
		if _, twice := m.byType[t]; twice {
			return fmt.Errorf("two handlers are for the type %s", named(t))
		}
		m.byType[t] = h.apply
	}
	return nil
}

// DeliverTx applies one record.
func (m *Model) DeliverTx(ctx context.Context, tx pgx.Tx, d processor.Delivery) error {
	if apply, ok := m.byType[d.Type]; ok {
		return apply(ctx, tx, d)
	}
	if m.otherwise != nil {
		return m.otherwise(ctx, tx, d)
	}
	what := "records of type " + named(d.Type)
	if d.Type == "" {
		what = "records without a type"
	}
	return processor.Refused(fmt.Errorf("the read model has no handler for %s: deploy a version that has one, or that ignores them, and `retry`", what))
}

// named is a type in a message.
func named(recordType string) string { return fmt.Sprintf("%q", visible.Cut(recordType)) }
