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

// The numbers are those of docs/console.md and of openapi.yaml.
func TestKind_EachHasItsStatus(t *testing.T) {
	t.Parallel()
	for kind, want := range map[Kind]int{
		KindUsage: 400, KindUnknown: 404, KindMoved: 409, KindLocked: 409, KindRefused: 422, KindOldPrimary: 422, KindPruned: 422,
		KindBusy: 429, KindUncertain: 500, KindAway: 503, "": 503,
	} {
		require.Equal(t, want, kind.Status(), kind)
	}
}
