package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// forgetAmended removes the amendments of records whose rows are gone (operator.Operator.Amend). Nothing delivers them
// again, and they hold what the rows held. If the tables are of an older version, or the role may not see them, they
// stay.
func (p *pass) forgetAmended(ctx context.Context) error {
	for _, r := range p.Readers {
		all, err := p.Operator.Amendments(ctx, r.Process, "", lastPosition)
		if isHidden(err) {
			return nil
		}
		for _, a := range all {
			if err == nil {
				err = p.forgetIfGone(ctx, r, a)
			}
		}
		if err != nil {
			return fmt.Errorf("forget amendments of rows that are gone: %w", err)
		}
	}
	return nil
}

// lastPosition is after every position of a source.
const lastPosition cursor.Position = "\uffff"

func (p *pass) forgetIfGone(ctx context.Context, r Reader, a cursor.Amendment) error {
	there, err := there(ctx, r.Source, a.Position)
	if err != nil || there {
		return err
	}
	return p.Operator.ForgetAmended(ctx, r.Process, a.Position)
}

// there reports whether the table still has the row at a position.
func there(ctx context.Context, source *table.Source, at cursor.Position) (bool, error) {
	before, err := source.Back(ctx, at, 1)
	if err != nil {
		return false, err
	}
	span, err := source.Between(ctx, before, at, 1)
	return span.Total > 0, err
}

// isHidden reports that there is no table of amendments, or that this role may not read it.
func isHidden(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && slices.Contains([]string{"42P01", "42501"}, pgErr.Code)
}
