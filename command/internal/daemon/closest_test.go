package daemon

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClosest_ProposesWhatWasLikelyMeant(t *testing.T) {
	t.Parallel()
	names := []string{"booking_sms", "booking_mails", "pay"}
	for wrong, want := range map[string]string{
		"bokking_sms": "booking_sms", "booking_sm": "booking_sms", "Booking_Mails": "booking_mails", "pai": "pay",
		"invoices": "", "": "", "p": "", "q": "",
	} {
		require.Equal(t, want, closest(wrong, names), wrong)
	}
	require.EqualError(t, unknownProcess("bokking_sms", names), `there is no process "bokking_sms": did you mean booking_sms? There are booking_sms, booking_mails, pay`)
	require.EqualError(t, unknownProcess("invoices", names), `there is no process "invoices": there are booking_sms, booking_mails, pay`)
}

func TestVerdict_CountsWhatWasFound(t *testing.T) {
	t.Parallel()
	require.NoError(t, Verdict([]Finding{{Severity: Note}}))
	err := Verdict([]Finding{{Severity: Refuse}, {Severity: Warn}, {Severity: Warn}, {Severity: Note}})
	require.ErrorIs(t, err, ErrFindings)
	require.EqualError(t, err, "doctor found something: 1 error, 2 warnings. Do what follows each `fix:`, and run doctor again")
	require.EqualError(t, Verdict([]Finding{{Severity: Warn}}), "doctor found something: 1 warning. Do what follows each `fix:`, and run doctor again")
}
