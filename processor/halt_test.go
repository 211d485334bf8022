package processor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// TestHaltError_ProposesAnAmendmentWhereARecordIsRefusedForGood: and not where another payload would not help.
func TestHaltError_ProposesAnAmendmentWhereARecordIsRefusedForGood(t *testing.T) {
	t.Parallel()
	next := func(class cursor.Class) string {
		halt := processor.HaltError{Process: "sms", Failure: cursor.Failure{RecordID: "7", Class: class}}
		return halt.Next()
	}
	const amend = "`ordered-dispatcher amend sms --payload NEW -c FILE --reason …`"
	require.Contains(t, next(cursor.ClassPermanent), amend)
	for _, class := range []cursor.Class{cursor.ClassTransient, cursor.ClassUnknown, cursor.ClassUnreadable, cursor.ClassRefused, cursor.ClassReset} {
		require.NotContains(t, next(class), "amend", class)
	}
}
