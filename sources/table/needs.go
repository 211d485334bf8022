package table

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/privilege"
)

// Needs lists the rights that a role needs to read a table.
type Needs struct {
	privilege.Needs
	// Stats: the order column is stamped at the start of a transaction, so the fence needs to see when the
	// transactions of all sessions began. That takes membership in pg_read_all_stats.
	Stats bool
}

// Needs asks the server which rights it checks when a role reads the table. The role that asks needs no right to the
// table. It needs the right to make temporary functions.
func (s *Source) Needs(ctx context.Context) (Needs, error) {
	var needs Needs
	err := s.inTx(ctx, pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
		cat, sequences, err := readCatalog(ctx, tx, s.located())
		if errors.Is(err, errNoTable) {
			return fmt.Errorf("%s", missingTable(ctx, tx, s.located()))
		}
		if err != nil {
			return err
		}
		e := examination{config: s.config, cat: cat, sequences: sequences}
		l := e.run()
		if len(e.misfits) > 0 { // the server would only report that a part of our statement is wrong
			return misfitError(e.misfits)
		}
		needs.Stats = l.ordersByTime() && l.stamp == stampAtStart
		if needs.Needs, err = privilege.Of(ctx, tx, l.readSQL(s.config, false)); err != nil {
			return err
		}
		if l.ordersByTime() && !s.config.KeysOnly {
			needs.Add(privilege.Needs{Privileges: []privilege.Privilege{{On: privilege.Table, Name: l.sql(), Right: "SELECT", Columns: []string{"xmin"}}}})
		}
		if err := needs.addWatch(ctx, tx, l, s.config); err != nil {
			return err
		}
		if l.sequence != 0 || l.counter != 0 && !s.config.KeysOnly {
			needs.Privileges = append(needs.Privileges, privilege.Privilege{On: privilege.Sequence, Name: sequences[0].Name, Right: "SELECT"})
		}
		return nil
	})
	if err != nil {
		return Needs{}, fmt.Errorf("find out what reading %s needs: %w", s.config.Table, err)
	}
	return needs, nil
}

// addWatch adds the rights that a worker needs to notice a partition that disappears with undelivered records: see
// Undelivered. Operators, who only need the keys, watch no partition.
func (n *Needs) addWatch(ctx context.Context, tx pgx.Tx, l *layout, c Config) error {
	if c.KeysOnly {
		return nil
	}
	statement, err := l.watching(ctx, tx)
	if err != nil || statement == "" {
		return err
	}
	watch, err := privilege.Of(ctx, tx, statement)
	n.Add(watch)
	return err
}

// misfitError returns the problems that doctor would report about the table.
func misfitError(misfits []Finding) error {
	var all []string
	for _, f := range misfits {
		all = append(all, f.String())
	}
	return errors.New(strings.Join(all, "; "))
}
