package desk

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

func TestKindOf_WhatMoreOfTheOperatorsWordAllowsHasAKindOfItsOwn(t *testing.T) {
	t.Parallel()
	code := func(code string) error { return &pgconn.PgError{Code: code} }
	for _, c := range []struct {
		err  error
		want Kind
	}{
		{operator.ErrOldPrimary, KindOldPrimary}, {&operator.PrunedError{}, KindPruned}, {operator.ErrNotFailing, KindRefused}, {cursor.ErrHalted, KindRefused},
		{code("53300"), KindAway}, {code("57P01"), KindAway}, {code("42501"), KindAway}, {errors.New("no route"), KindAway},
		{processor.Permanent(code("23505")), KindRefused}, {processor.Permanent(code("57014")), KindAway},
	} {
		require.Equal(t, c.want, kindOf(fmt.Errorf("decide: %w", c.err)), c.err)
	}
}
